// swift-tools-version: 6.2
// The dependency rules of Martlet, as targets. A test compares every import in Sources/ with this file.
import Foundation
import PackageDescription

let swift: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]

/// One of Debian's C libraries, by its module map in Sources/C*.
func library(_ name: String, pkgConfig: String? = nil) -> Target {
    .systemLibrary(name: name, path: "Sources/\(name)", pkgConfig: pkgConfig)
}

func module(_ name: String, _ dependencies: [String], settings: [SwiftSetting] = []) -> Target {
    .target(
        name: name, dependencies: dependencies.map { .byName(name: $0) }, path: "Sources/\(name)",
        swiftSettings: swift + settings)
}

func program(_ name: String, _ dependencies: [String], in folder: String = "Sources") -> Target {
    .executableTarget(
        name: name, dependencies: dependencies.map { .byName(name: $0) }, path: "\(folder)/\(name)",
        swiftSettings: swift)
}

/// - Parameter data: folders of files that tests read where they lie.
func tests(_ name: String, _ dependencies: [String], data: [String] = []) -> Target {
    .testTarget(
        name: name, dependencies: dependencies.map { .byName(name: $0) }, path: "Tests/\(name)", exclude: data,
        swiftSettings: swift)
}

let package = Package(
    name: "martlet",
    targets: [
        // C libraries. They import nothing of ours.
        library("Cpq", pkgConfig: "libpq"),
        library("Cuv", pkgConfig: "libuv"),
        library("Cwslay"),
        library("Ccurl", pkgConfig: "libcurl"),
        library("Copenssl", pkgConfig: "openssl"),
        library("Cargon2", pkgConfig: "libargon2"),
        library("Czlib", pkgConfig: "zlib"),
        library("Cmagic", pkgConfig: "libmagic"),
        library("Cvips", pkgConfig: "vips"),
        library("Cpoppler", pkgConfig: "poppler-glib"),
        library("Czip", pkgConfig: "libzip"),
        library("Cexpat", pkgConfig: "expat"),
        library("Cgumbo", pkgConfig: "gumbo"),
        library("Cseccomp", pkgConfig: "libseccomp"),
        // llhttp ships as C sources in Debian 12; this target compiles them from where the distribution put them.
        .target(
            name: "Cllhttp", path: "Sources/Cllhttp",
            cSettings: [.unsafeFlags(["-I/usr/share/include/llhttp", "-O2", "-w"])]),

        // The runtime.
        module("EventLoop", ["Cuv"]),
        module("Tracing", []),
        module("HTTPServer", ["EventLoop", "Cllhttp", "Tracing"]),
        module("WebSocket", ["EventLoop", "HTTPServer", "Czlib", "Copenssl"]),
        module("Postgres", ["EventLoop", "Cpq", "Tracing"]),
        module("Transfer", ["EventLoop", "Ccurl"]),
        module("Clamd", ["EventLoop"]),
        module("Crypto", ["Copenssl", "Cargon2"]),
        module("MediaTools", ["Cvips", "Cpoppler", "Czip", "Cexpat", "Cmagic", "Cseccomp", "Resume"]),
        module("SafeHTML", ["Cgumbo"]),
        module("JSON", []),
        module("Resume", []),
        module(
            "ServiceKit", ["EventLoop", "HTTPServer", "JSON", "Postgres", "Tracing", "Transfer"]),

        // The product.
        module("Core", []),
        module("CorePostgres", ["Core", "Postgres", "Tracing"]),
        module("SocketIO", ["JSON"]),
        module("MediaStore", ["Core", "Crypto", "EventLoop", "ServiceKit", "Tracing", "Transfer"]),
        module("CoreHTTP", ["Core", "Crypto", "EventLoop", "HTTPServer", "JSON", "ServiceKit"]),
        module(
            "GatewayApp",
            ["Core", "CoreHTTP", "Crypto", "EventLoop", "HTTPServer", "JSON", "Resume", "SafeHTML", "ServiceKit"]),
        module(
            "ChatApp",
            [
                "Core", "CoreHTTP", "Crypto", "EventLoop", "HTTPServer", "JSON", "ServiceKit", "SocketIO", "Tracing",
                "WebSocket",
            ]),
        module(
            "WorkerApp",
            [
                "Clamd", "Core", "Crypto", "EventLoop", "MediaTools", "Resume", "SafeHTML", "ServiceKit", "Tracing",
                "Transfer",
            ]),
        module(
            "OperatorApp",
            [
                "Clamd", "Core", "CoreHTTP", "Crypto", "EventLoop", "JSON", "MediaStore", "SafeHTML", "ServiceKit",
                "Transfer",
            ]),

        program(
            "martlet-gateway",
            [
                "Core", "CoreHTTP", "CorePostgres", "EventLoop", "GatewayApp", "HTTPServer", "MediaStore", "Postgres",
                "ServiceKit",
            ]),
        program(
            "martlet-chat",
            ["Core", "CoreHTTP", "CorePostgres", "ChatApp", "EventLoop", "HTTPServer", "Postgres", "ServiceKit"]),
        program(
            "martlet-worker",
            [
                "Core", "CorePostgres", "Crypto", "EventLoop", "MediaStore", "MediaTools", "Postgres", "ServiceKit",
                "Transfer", "WorkerApp",
            ]),
        program(
            "martlet", ["Core", "CorePostgres", "EventLoop", "OperatorApp", "Postgres", "ServiceKit"]),

        // Tests.
        .target(name: "Seeded", path: "Tests/Seeded", swiftSettings: swift),
        .target(
            name: "TestSupport", dependencies: ["Core", "CorePostgres", "EventLoop", "Postgres", "Cpq"],
            path: "Tests/TestSupport", swiftSettings: swift),
        tests("SeededTests", ["Seeded"]),
        tests("EventLoopTests", ["EventLoop"]),
        tests("TracingTests", ["Seeded", "Tracing"]),
        tests("HTTPServerTests", ["EventLoop", "HTTPServer", "Seeded", "Tracing"]),
        // The peer of the framing cases in Tests/Clients.
        program("WebSocketEcho", ["EventLoop", "HTTPServer", "WebSocket"], in: "Tests"),
        // What `make bench` puts beside other queues.
        program(
            "QueueBench", ["Core", "CorePostgres", "EventLoop", "Postgres", "ServiceKit", "WorkerApp"], in: "Tests"),
        tests("WebSocketTests", ["Cwslay", "EventLoop", "HTTPServer", "Seeded", "TestSupport", "WebSocket"]),
        tests("PostgresTests", ["EventLoop", "Postgres", "Seeded", "TestSupport", "Tracing"]),
        tests("TransferTests", ["EventLoop", "HTTPServer", "TestSupport", "Transfer"]),
        tests("ClamdTests", ["Clamd", "EventLoop", "Seeded", "TestSupport"]),
        tests("CryptoTests", ["Crypto", "Seeded"]),
        tests("MediaToolsTests", ["Czip", "MediaTools", "Resume", "Seeded"], data: ["CVs"]),
        tests("SafeHTMLTests", ["SafeHTML", "Seeded"]),
        tests("JSONTests", ["JSON", "Seeded"]),
        tests("ResumeTests", ["Resume", "Seeded"]),
        tests(
            "ServiceKitTests",
            ["EventLoop", "HTTPServer", "JSON", "Postgres", "ServiceKit", "TestSupport", "Tracing", "Transfer"]),
        tests("CoreTests", ["Core"]),
        tests(
            "CorePostgresTests",
            ["Core", "CorePostgres", "Postgres", "Resume", "SafeHTML", "Seeded", "TestSupport", "Tracing"]),
        tests("CoreHTTPTests", ["Core", "CoreHTTP", "Crypto", "EventLoop", "HTTPServer", "Seeded", "ServiceKit"]),
        tests(
            "GatewayAppTests",
            [
                "Core", "CoreHTTP", "CorePostgres", "Crypto", "EventLoop", "GatewayApp", "HTTPServer", "JSON",
                "MediaStore", "Postgres", "Resume", "Seeded", "ServiceKit", "TestSupport",
            ]),
        tests(
            "ChatAppTests",
            [
                "ChatApp", "Core", "CoreHTTP", "CorePostgres", "Crypto", "EventLoop", "HTTPServer", "JSON",
                "Postgres", "Seeded", "ServiceKit", "SocketIO", "TestSupport", "WebSocket",
            ]),
        tests("SocketIOTests", ["JSON", "Seeded", "SocketIO"]),
        tests(
            "SimulatorTests",
            ["ChatApp", "Core", "CoreHTTP", "Crypto", "EventLoop", "JSON", "Seeded", "ServiceKit", "WebSocket"]),
        tests(
            "MediaStoreTests",
            [
                "Core", "EventLoop", "HTTPServer", "MediaStore", "Seeded", "ServiceKit", "TestSupport", "Tracing",
                "Transfer",
            ]),
        tests(
            "WorkerAppTests",
            [
                "Clamd", "Core", "CorePostgres", "Crypto", "EventLoop", "MediaStore", "MediaTools", "Postgres",
                "Resume", "ServiceKit", "TestSupport", "Tracing", "Transfer", "WorkerApp",
            ]),
        tests(
            "OperatorAppTests", ["Core", "CorePostgres", "JSON", "OperatorApp", "Postgres", "TestSupport", "Transfer"]),
        tests("TidyTests", []),
    ]
)

// An image is built from the sources alone, and a change of a test leaves its layers as they are.
if !FileManager.default.fileExists(atPath: "\(Context.packageDirectory)/Tests") {
    package.targets.removeAll { $0.path?.hasPrefix("Tests/") == true }
}
