import Core
import CoreHTTP
import Foundation
import JSON

/// A file as Strapi's clients know one (contracts: the file object): the same fields in the same order wherever media
/// is shown. A file that is not ready says so in `state`, after all the others, and why it was rejected.
enum MediaBody {
    /// `{id, name, …}`, as the upload routes and flat relations have it.
    static func writeFlat(_ media: Media, links: MediaLinks, to json: inout JSONWriter) {
        json.field("id", media.id.value)
        writeFile(media, links: links, to: &json)
    }

    /// All but the id, or what was chosen of it: `{name, alternativeText, caption, width, height, formats, …,
    /// updatedAt}`.
    static func writeFile(
        _ media: Media, _ fields: Set<EntryField>? = nil, links: MediaLinks, to json: inout JSONWriter
    ) {
        let chosen = ChosenFields(fields)
        let whole = Sheet(media, links: links)
        if chosen.has(.media(.name)) { json.field("name", media.name) }
        if chosen.has(.media(.alternativeText)) { json.field("alternativeText", orNull: media.alternativeText) }
        if chosen.has(.media(.caption)) { json.field("caption", orNull: media.caption) }
        if chosen.has(.media(.width)) { json.field("width", orNull: media.width) }
        if chosen.has(.media(.height)) { json.field("height", orNull: media.height) }
        if chosen.has(.media(.formats)) {
            if media.kind == .logo {
                // A logo that is not ready is shown as the placeholder, in all its sizes too.
                writeLogoFormats(media.state == .ready ? whole : .placeholder, of: media, links: links, to: &json)
            } else {
                writeFormats(of: media, links: links, to: &json)
            }
        }
        if chosen.has(.media(.hash)) { json.field("hash", media.hash) }
        writeRest(whole, chosen, createdAt: media.createdAt, updatedAt: media.updatedAt, to: &json)
        if media.state != .ready {
            json.field("state", media.state.rawValue)
            json.field("rejection", orNull: media.rejectionMessage)
        }
    }

    /// For a company without a logo: the client's list fails as a whole when one is missing.
    static func writeNoLogo(_ fields: Set<EntryField>? = nil, to json: inout JSONWriter) {
        let chosen = ChosenFields(fields)
        let sheet = Sheet.placeholder
        if chosen.has(.media(.name)) { json.field("name", sheet.name) }
        if chosen.has(.media(.alternativeText)) { json.nullField("alternativeText") }
        if chosen.has(.media(.caption)) { json.nullField("caption") }
        if chosen.has(.media(.width)) { json.field("width", orNull: sheet.width) }
        if chosen.has(.media(.height)) { json.field("height", orNull: sheet.height) }
        if chosen.has(.media(.formats)) { writeLogoFormats(sheet, of: nil, links: nil, to: &json) }
        if chosen.has(.media(.hash)) { json.field("hash", sheet.hash) }
        writeRest(sheet, chosen, createdAt: Placeholder.drawnAt, updatedAt: Placeholder.drawnAt, to: &json)
    }

    private static func writeRest(
        _ sheet: Sheet, _ chosen: ChosenFields, createdAt: Date, updatedAt: Date, to json: inout JSONWriter
    ) {
        if chosen.has(.media(.ext)) { json.field("ext", sheet.ext) }
        if chosen.has(.media(.mime)) { json.field("mime", sheet.mime) }
        if chosen.has(.media(.size)) { json.field("size", sheet.kilobytes) }
        if chosen.has(.media(.url)) { json.field("url", sheet.url) }
        if chosen.has(.media(.previewURL)) { json.nullField("previewUrl") }
        if chosen.has(.media(.provider)) { json.field("provider", "local") }
        if chosen.fields == nil { json.nullField("provider_metadata") }
        if chosen.has(.media(.createdAt)) { json.field("createdAt", createdAt) }
        if chosen.has(.media(.updatedAt)) { json.field("updatedAt", updatedAt) }
    }

    /// The sizes there are; null for what is no image, and for an image that is too small to have any.
    private static func writeFormats(of media: Media, links: MediaLinks, to json: inout JSONWriter) {
        let formats = media.formats
        guard !formats.isEmpty else { return json.nullField("formats") }
        json.object("formats") { json in
            for variant in formats {
                writeFormat(variant.name, Sheet(variant, of: media, links: links), of: media.name, to: &json)
            }
        }
    }

    /// Sizes of a logo, from small to large: the stock client reads every one of them.
    private static let sizes = ["thumbnail", "small", "medium", "large"]

    /// All four, always: for a missing one stands the next larger there is, and at last the image itself.
    private static func writeLogoFormats(
        _ whole: Sheet, of media: Media?, links: MediaLinks?, to json: inout JSONWriter
    ) {
        var sheets = Array(repeating: whole, count: sizes.count)
        if let media, let links, media.state == .ready {
            for index in sizes.indices.reversed() {
                if let variant = media.variants.first(where: { $0.name == sizes[index] }) {
                    sheets[index] = Sheet(variant, of: media, links: links)
                } else if index + 1 < sizes.count {
                    sheets[index] = sheets[index + 1]
                }
            }
        }
        json.object("formats") { json in
            for (size, sheet) in zip(sizes, sheets) { writeFormat(size, sheet, of: whole.name, to: &json) }
        }
    }

    private static func writeFormat(_ size: String, _ sheet: Sheet, of name: String, to json: inout JSONWriter) {
        json.key(text: size)
        json.object { json in
            json.field("name", "\(size)_\(name)")
            json.field("hash", sheet.hash)
            json.field("ext", sheet.ext)
            json.field("mime", sheet.mime)
            json.nullField("path")
            json.field("width", orNull: sheet.width)
            json.field("height", orNull: sheet.height)
            json.field("size", sheet.kilobytes)
            json.field("sizeInBytes", sheet.bytes)
            json.field("url", sheet.url)
        }
    }

    /// What its address gives: of an image the one that was written anew.
    private struct Sheet {
        let name: String
        let hash: String
        let ext: String
        let mime: String
        let bytes: Int64
        let width: Int?
        let height: Int?
        let url: String

        /// Thousands of bytes with two decimals, as Strapi counts.
        var kilobytes: Double { (Double(bytes) / 10).rounded() / 100 }

        static let placeholder = Sheet()

        private init() {
            name = "placeholder_logo.png"
            hash = "placeholder_logo"
            (ext, mime) = (".png", "image/png")
            bytes = Int64(Placeholder.png.count)
            (width, height) = (Placeholder.side, Placeholder.side)
            url = MediaLinks.placeholder
        }

        init(_ media: Media, links: MediaLinks) {
            let upright = media.upright
            name = media.name
            hash = media.hash
            ext = upright?.ext ?? media.ext ?? ""
            mime = upright?.mime ?? media.mime ?? ""
            bytes = upright?.bytes ?? media.bytes
            (width, height) = (media.width, media.height)
            url = links.url(media)
        }

        init(_ variant: Media.Variant, of media: Media, links: MediaLinks) {
            name = media.name
            hash = variant.hash
            (ext, mime, bytes) = (variant.ext, variant.mime, variant.bytes)
            (width, height) = (variant.width, variant.height)
            url = links.url(variant, of: media)
        }
    }
}
