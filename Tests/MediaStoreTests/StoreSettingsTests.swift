import EventLoop
import Foundation
import ServiceKit
import Testing
import Transfer

@testable import MediaStore

@Suite struct StoreSettingsTests {
    private let keys = ["MARTLET_S3_ACCESS_KEY": "access", "MARTLET_S3_SECRET_KEY": "hidden-word"]
    private let files = OffloadPool(name: "settings", threads: 1, queueMax: 8)

    private func place(_ text: String) throws -> StoreSettings.Place? {
        var environment = Environment(keys)
        let place = StoreSettings.place(text, &environment)
        try environment.check()
        return place
    }

    private func mistakes(_ values: [String: String]) -> [String] {
        var environment = Environment(values)
        let opened = StoreSettings.open(&environment, files: files, clock: SystemClock())
        do {
            try environment.check()
            #expect(opened != nil)
            return []
        } catch {
            #expect(opened == nil)
            return error.mistakes
        }
    }

    @Test("a bucket has its region, endpoint, style and prefix, or what is usual")
    func places() throws {
        let amazon = try #require(try place("s3://jobs/"))
        #expect(amazon.location.endpoint == "https://s3.us-east-1.amazonaws.com" && amazon.prefix.isEmpty)
        #expect(amazon.location.style == .virtual && amazon.location.region == "us-east-1")
        let own = try #require(try place("s3://jobs.eu/a/b_C/?endpoint=http://127.0.0.1:9000/&region=x-1"))
        #expect(
            own.location.endpoint == "http://127.0.0.1:9000" && own.prefix == "a/b_C" && own.location.style == .path)
        #expect(own.location.accessKey == "access" && own.location.secretKey == "hidden-word")
        #expect(try place("s3://jobs?region=eu-central-1&style=path")?.location.style == .path)
    }

    @Test(
        "a bucket that cannot be one is a mistake",
        arguments: [
            "s3://", "s3://ab", "s3://-ab", "s3://a_b", "s3://Jobs", "s3://jobs/a%20b", "s3://jobs/.a", "s3://jobs/ä",
            "s3://u:p@jobs", "s3://jobs:80", "s3://jobs?style=both", "s3://jobs?region=", "s3://jobs?endpoint=ftp://a",
            "s3://jobs?endpoint=https://a/b", "s3://jobs?what=1", "s3://jobs?region=a&region=b", "s3://a.b?region=x",
            "s3://jobs#a",
        ])
    func badPlaces(text: String) {
        #expect(throws: ConfigurationError.self) { _ = try place(text) }
    }

    @Test("all mistakes are told at once, and no secret with them")
    func mistakes() {
        let scratch = TemporaryFolder()
        _ = FileManager.default.createFile(atPath: scratch.path, contents: Data())
        let told = mistakes([
            "MARTLET_STORE": "s3://a_b?style=x&endpoint=y&region=%20", "MARTLET_S3_SECRET_KEY": "hidden-word\n",
            "MARTLET_SCRATCH": scratch.path,
        ])
        #expect(told.count == 7, "\(told)")
        for name in ["MARTLET_S3_ACCESS_KEY", "MARTLET_S3_SECRET_KEY", "MARTLET_SCRATCH"] {
            #expect(told.contains { $0.hasPrefix(name) })
        }
        #expect(!told.joined().contains("hidden-word"))
        #expect(mistakes([:]) == ["MARTLET_STORE is not set"])
        #expect(mistakes(["MARTLET_STORE": "/proc/nothing"]).count == 1)
    }

    @Test("a folder is made, and none above it: a path that leads nowhere is a mistake that names where it ends")
    func missingFolders() throws {
        let folder = TemporaryFolder()
        for wrong in ["\(folder.path)/store", "\(folder.path)/deeper/store/"] {
            let above = URL(fileURLWithPath: wrong).deletingLastPathComponent().path
            for values in [
                ["MARTLET_STORE": wrong],
                keys.merging(["MARTLET_STORE": "s3://jobs", "MARTLET_SCRATCH": wrong]) { $1 },
            ] {
                let told = mistakes(values)
                #expect(told.count == 1 && told[0].contains("there is no folder \(above), and"), "\(told)")
                #expect(!FileManager.default.fileExists(atPath: folder.path), "nothing is made")
            }
        }
        #expect(mistakes(["MARTLET_STORE": folder.path]).isEmpty)
        #expect(mistakes(["MARTLET_STORE": folder.path + "/store/"]).isEmpty)
        #expect(FileManager.default.fileExists(atPath: folder.path + "/store/tmp"))
    }

    @Test("a scratch folder that others may write to is refused")
    func sharedScratch() throws {
        let scratch = TemporaryFolder()
        let values = keys.merging(["MARTLET_STORE": "s3://jobs", "MARTLET_SCRATCH": scratch.path]) { $1 }
        #expect(mistakes(values).isEmpty)
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: scratch.path)
        #expect(mistakes(values).count == 1)
    }
}
