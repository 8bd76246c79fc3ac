import Core
import CoreHTTP
import Crypto
import Foundation
import JSON
import ServiceKit
import Testing

@testable import GatewayApp

@Suite("The file object")
struct MediaBodyTests {
    static let order = [
        "id", "name", "alternativeText", "caption", "width", "height", "formats", "hash", "ext", "mime", "size", "url",
        "previewUrl", "provider", "provider_metadata", "createdAt", "updatedAt",
    ]
    static let formatOrder = [
        "name", "hash", "ext", "mime", "path", "width", "height", "size", "sizeInBytes", "url",
    ]
    let links: MediaLinks

    init() throws {
        links = MediaLinks(
            keys: try SigningKeys(secrets: [String(repeating: "k", count: 32)]), clock: ManualClock())
    }

    func variant(_ name: String, _ width: Int, _ height: Int) -> Media.Variant {
        Media.Variant(
            name: name, storageKey: "va/\(name)", hash: "\(name)_cat_0123456789", mime: "image/png", ext: ".png",
            bytes: 12_346, width: width, height: height)
    }

    func media(
        _ kind: Media.Kind, state: Media.State = .ready, mime: String? = "image/png", ext: String? = ".png",
        width: Int? = 600, height: Int? = 400, variants: [Media.Variant] = []
    ) -> Media {
        Media(
            id: .init(7), ownerID: .init(1), kind: kind, state: state, rejection: nil, rejectionMessage: nil,
            name: "cat.png", alternativeText: "A cat", mime: mime, ext: ext, hash: "cat_0123456789", bytes: 1_234_567,
            storageKey: "up/1", width: width, height: height, pageCount: nil, note: nil, urlGeneration: 0,
            variants: variants, createdAt: Date(timeIntervalSince1970: 0), updatedAt: Date(timeIntervalSince1970: 1))
    }

    func written(_ write: (inout JSONWriter) -> Void) throws -> (text: String, object: [String: Any]) {
        var json = JSONWriter()
        json.object { write(&$0) }
        let bytes = json.finish()
        let object = try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any]
        return (String(decoding: bytes, as: UTF8.self), try #require(object))
    }

    /// The names of the outermost object, in the order in which they are written.
    func names(_ text: String) -> [String] {
        var (names, depth, rest) = ([String](), 0, text[...])
        while let character = rest.first {
            if character == "{" || character == "[" { depth += 1 }
            if character == "}" || character == "]" { depth -= 1 }
            if character == "\"" {
                let end = rest.dropFirst().firstIndex(of: "\"")!
                if depth == 1, rest[rest.index(after: end)...].first == ":" {
                    names.append(String(rest[rest.index(after: rest.startIndex)..<end]))
                }
                rest = rest[end...]
            }
            rest = rest.dropFirst()
        }
        return names
    }

    @Test("an image has Strapi's fields in Strapi's order, the size in kilobytes, and those formats that there are")
    func image() throws {
        let picture = media(
            .profile,
            variants: [
                variant("thumbnail", 234, 156), variant("small", 500, 333), variant("upright", 600, 400),
            ])
        let (text, object) = try written { MediaBody.writeFlat(picture, links: links, to: &$0) }
        #expect(names(text) == Self.order)
        // What is served is the image written anew, so its bytes are counted.
        #expect(object["size"] as? Double == 12.35 && object["width"] as? Int == 600)
        #expect(object["alternativeText"] as? String == "A cat" && object["caption"] is NSNull)
        #expect(object["createdAt"] as? String == "1970-01-01T00:00:00.000Z")
        let formats = try #require(object["formats"] as? [String: [String: Any]])
        #expect(Set(formats.keys) == ["thumbnail", "small"])
        let small = try #require(formats["small"])
        #expect(small["name"] as? String == "small_cat.png" && small["hash"] as? String == "small_cat_0123456789")
        #expect(small["sizeInBytes"] as? Int == 12_346 && small["size"] as? Double == 12.35)
        #expect(small["height"] as? Int == 333 && small["path"] is NSNull)
        let inner = try #require(text.firstMatch(of: /"thumbnail":(\{[^}]*\})/)).1
        #expect(names(String(inner)) == Self.formatOrder)
        // Every size of a private picture has an address that permits itself, and nothing else.
        let whole = try #require(object["url"] as? String)
        for (address, path) in [
            (whole, "/uploads/cat_0123456789.png"),
            (small["url"] as? String ?? "", "/uploads/small_cat_0123456789.png"),
        ] {
            let token = try #require(address.firstRange(of: "?t="))
            #expect(address[..<token.lowerBound] == path)
            #expect(links.permits(String(address[token.upperBound...]), path: path, media: picture))
            #expect(!links.permits(String(address[token.upperBound...]), path: path + "x", media: picture))
        }
    }

    @Test("what is no image, and an image without sizes, has null for formats")
    func noFormats() throws {
        let document = media(.cv, mime: "application/pdf", ext: ".pdf", width: nil, height: nil)
        let (text, object) = try written { MediaBody.writeFlat(document, links: links, to: &$0) }
        #expect(names(text) == Self.order)
        for name in ["width", "height", "formats", "previewUrl", "provider_metadata"] {
            #expect(object[name] is NSNull, "\(name)")
        }
        #expect(object["size"] as? Double == 1234.57 && object["ext"] as? String == ".pdf")
        let small = media(.profile, width: 40, height: 30, variants: [variant("upright", 40, 30)])
        #expect(try written { MediaBody.writeFile(small, links: links, to: &$0) }.object["formats"] is NSNull)
    }

    @Test("a logo has all four formats; for a missing one stands the next larger, at last the logo itself")
    func logo() throws {
        let logo = media(.logo, variants: [variant("small", 500, 333), variant("upright", 600, 400)])
        let (text, object) = try written { links.writeLogo(logo, to: &$0) }
        #expect(names(text) == Array(Self.order.dropFirst()))
        let formats = try #require(object["formats"] as? [String: [String: Any]])
        #expect(
            formats.mapValues { $0["url"] as? String } == [
                "thumbnail": "/uploads/small_cat_0123456789.png", "small": "/uploads/small_cat_0123456789.png",
                "medium": "/uploads/cat_0123456789.png", "large": "/uploads/cat_0123456789.png",
            ])
        #expect(formats["medium"]?["width"] as? Int == 600 && formats["thumbnail"]?["width"] as? Int == 500)
        #expect(formats["large"]?["name"] as? String == "large_cat.png")
        #expect(object["url"] as? String == "/uploads/cat_0123456789.png")
    }

    @Test("no logo, and one that is not ready, is the placeholder in all sizes")
    func placeholder() throws {
        let pending = media(.logo, state: .pending, mime: nil, ext: nil, width: nil, height: nil)
        let rejected = media(.logo, state: .rejected, mime: nil, ext: nil, width: nil, height: nil)
        for logo in [nil, pending, rejected] {
            let (text, object) = try written { links.writeLogo(logo, to: &$0) }
            #expect(Array(names(text).prefix(16)) == Array(Self.order.dropFirst()))
            #expect(object["url"] as? String == MediaLinks.placeholder)
            let formats = try #require(object["formats"] as? [String: [String: Any]])
            #expect(Set(formats.keys) == ["thumbnail", "small", "medium", "large"])
            #expect(formats.values.allSatisfy { $0["url"] as? String == MediaLinks.placeholder })
            #expect(object["state"] as? String == logo?.state.rawValue)
        }
    }
}
