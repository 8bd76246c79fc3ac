import Core
import CoreHTTP
import Crypto
import EventLoop
import Foundation
import ServiceKit

/// The gateway's settings, read once.
public struct GatewayConfiguration: Sendable {
    public let address: SocketAddress
    public let database: DatabaseSettings
    public let keys: SigningKeys
    public let trusted: TrustedNetworks
    public let openAPI: [UInt8]
    public let signInFailuresPerMinute: Int
    public let registrationsPerMinute: Int
    public let accountSettings: AccountSettings
    /// Of one person's files.
    public let quota: Media.Quota
    /// The right side of Message-IDs: the sender's domain, as the worker has it.
    public let mailDomain: String

    public init(_ environment: inout Environment) throws {
        address = environment.address("MARTLET_HTTP_ADDRESS", default: "127.0.0.1:8081")
        database = DatabaseSettings(&environment)
        signInFailuresPerMinute = environment.int("MARTLET_SIGN_IN_FAILURES_PER_MINUTE", default: 10, in: 1...10_000)
        registrationsPerMinute = environment.int("MARTLET_REGISTRATIONS_PER_MINUTE", default: 60, in: 1...100_000)
        accountSettings = AccountSettings(&environment)
        quota = Media.Quota(
            mebibytes: environment.int(
                "MARTLET_STORAGE_MIB_PER_USER", default: Media.Quota.mebibytesDefault, in: 1...1_000_000))
        mailDomain = environment.mailSender()?.domain ?? ""
        trusted = TrustedNetworks.read(&environment)
        let document = Self.documentPath(&environment)
        openAPI = FileManager.default.contents(atPath: document).map { Array($0) } ?? []
        if openAPI.isEmpty {
            environment.mistake("MARTLET_OPENAPI: the API's description is not at \(document)")
        }
        let secrets = environment.sessionSecrets(bytesMin: SigningKeys.keyBytesMin)
        try environment.check()
        keys = try SigningKeys(secrets: secrets)
    }

    /// Beside the program when installed, in the checkout otherwise.
    private static func documentPath(_ environment: inout Environment) -> String {
        if let path = environment.value("MARTLET_OPENAPI") { return path }
        let program = URL(fileURLWithPath: CommandLine.arguments.first ?? "").resolvingSymlinksInPath()
        let installed = program.deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("share/martlet/openapi.json").path
        return FileManager.default.fileExists(atPath: installed) ? installed : "docs/api/openapi.json"
    }
}
