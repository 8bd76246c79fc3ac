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
        return path(of: media)
    }

    /// The whole file object without its id, of a logo or of none: see `MediaBody`.
    func writeLogo(_ media: Media?, to json: inout JSONWriter) {
        if let media { MediaBody.writeFile(media, links: self, to: &json) } else { MediaBody.writeNoLogo(to: &json) }
    }

    /// The whole file object; `state` is there always, as the company waits for it.
    func writeCV(_ media: Media, to json: inout JSONWriter) {
        MediaBody.writeFlat(media, links: self, to: &json)
        if media.state == .ready { json.field("state", media.state.rawValue) }
    }

    /// Where the file itself is: for a logo that is not ready the placeholder.
    func url(_ media: Media) -> String { media.kind == .logo ? logo(media) : capability(media) }

    /// Where one of its sizes is.
    func url(_ variant: Media.Variant, of media: Media) -> String {
        let path = path(hash: variant.hash, ext: variant.ext)
        return media.kind == .logo ? path : capability(path, of: media)
    }

    func capability(_ media: Media) -> String { capability(path(of: media), of: media) }

    private func capability(_ path: String, of media: Media) -> String {
        let now = clock.seconds
        let expires = now - now % Self.capabilitySeconds + 2 * Self.capabilitySeconds
        return path + "?t=" + signer.sign(path: path, subject: Self.subject(media), expires: expires)
    }

    func permits(_ token: String, path: String, media: Media) -> Bool {
        (try? signer.verify(token, path: path, subject: Self.subject(media), now: clock.seconds)) != nil
    }

    /// Raising the generation takes every address back.
    private static func subject(_ media: Media) -> String { "\(media.id).\(media.urlGeneration)" }

    private func path(of media: Media) -> String { path(hash: media.hash, ext: media.upright?.ext ?? media.ext) }

    private func path(hash: String, ext: String?) -> String { "/uploads/\(hash)\(ext ?? "")" }
}
