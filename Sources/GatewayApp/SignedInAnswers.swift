import Core
import CoreHTTP
import Foundation
import HTTPServer

/// What somebody gets who has proved who they are.
struct SignedInAnswers: Sendable {
    let parts: GatewayParts
    let signIn: SignIn

    /// `{jwt, user}` of a new session of 30 days.
    /// - Parameter passwordHash: as for `SessionRepository.start`.
    func longSession(for user: User, passwordHash: String) async throws -> HTTPResponse {
        let session = try await parts.sessions.start(
            .long, user: user.id, passwordHash: passwordHash, refreshHash: nil, expiresAt: days(Session.longDays))
        return .json(headers: ["Cache-Control": "no-store"]) { json in
            json.object { json in
                json.field("jwt", signIn.longToken(for: session))
                json.object("user") { UserBody.write(user, to: &$0) }
            }
        }
    }

    /// `{user}`: an account that has to be confirmed first.
    func user(_ user: User) -> HTTPResponse {
        .json(headers: ["Cache-Control": "no-store"]) { json in
            json.object { json in json.object("user") { UserBody.write(user, to: &$0) } }
        }
    }

    func days(_ count: Int) -> Date { parts.clock.now() + Double(count) * 86_400 }
}
