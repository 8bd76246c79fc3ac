import Core
import CoreHTTP
import Crypto
import Foundation
import JSON
import ServiceKit

/// The addresses of media, relative as the clients expect them. Logos are public; everything else has an address that
/// permits itself for a while: the stock client fetches files without a header.
struct MediaLinks: Sendable {
    /// From one to two hours: rounded, so that an answer repeated within the hour has the same address.
    static let capabilitySeconds: Int64 = 3600
    static let placeholder = "/uploads/placeholder_logo.png"

    private let signer: CapabilitySigner
    private let clock: any ServiceClock

    init(keys: SigningKeys, clock: any ServiceClock) {
        signer = CapabilitySigner(keys: keys, purpose: "media")
        self.clock = clock
    }

    /// Until the file has been looked at, and when it was rejected, the placeholder.
    func logo(_ media: Media?) -> String {
        guard let media, media.state == .ready else { return Self.placeholder }
        return path(hash: media.hash, ext: media.ext)
    }

    /// Url and all four formats, always: a missing one falls to the next larger there is.
    func writeLogo(_ media: Media?, to json: inout JSONWriter) {
        json.field("name", media?.name ?? "placeholder_logo.png")
        json.field("url", logo(media))
        json.object("formats") { json in
            for (name, chain) in [
                ("thumbnail", ["thumbnail", "small", "medium", "large"]), ("small", ["small", "medium", "large"]),
                ("medium", ["medium", "large"]), ("large", ["large"]),
            ] {
                json.key(text: name)
                json.object { $0.field("url", format(chain, of: media)) }
            }
        }
    }

    private func format(_ chain: [String], of media: Media?) -> String {
        guard let media, media.state == .ready else { return Self.placeholder }
        for name in chain {
            if let variant = media.variants.first(where: { $0.name == name }) {
                return path(hash: variant.hash, ext: variant.ext)
            }
        }
        return logo(media)
    }

    func writeCV(_ media: Media, to json: inout JSONWriter) {
        json.field("id", media.id.value)
        json.field("url", capability(media))
        json.field("name", media.name)
        json.field("state", media.state.rawValue)
        if let message = media.rejectionMessage { json.field("rejection", message) }
    }

    func capability(_ media: Media) -> String {
        let path = path(hash: media.hash, ext: media.ext)
        let now = clock.seconds
        let expires = now - now % Self.capabilitySeconds + 2 * Self.capabilitySeconds
        return path + "?t=" + signer.sign(path: path, subject: Self.subject(media), expires: expires)
    }

    func permits(_ token: String, path: String, media: Media) -> Bool {
        (try? signer.verify(token, path: path, subject: Self.subject(media), now: clock.seconds)) != nil
    }

    /// Raising the generation takes every address back.
    private static func subject(_ media: Media) -> String { "\(media.id).\(media.urlGeneration)" }

    private func path(hash: String, ext: String?) -> String { "/uploads/\(hash)\(ext ?? "")" }
}
