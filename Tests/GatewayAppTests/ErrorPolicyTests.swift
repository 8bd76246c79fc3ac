import Testing

@testable import GatewayApp

@Suite("What the log is told of a failed request")
struct ErrorPolicyTests {
    @Test("a path that holds a word which permits something is cut before it; others are whole")
    func paths() {
        #expect(ErrorPolicy.logged("/unsubscribe/abc.def") == "/unsubscribe/…")
        #expect(ErrorPolicy.logged("/uploads/cv_0123456789.pdf") == "/uploads/…")
        #expect(ErrorPolicy.logged("/api/jobs/7") == "/api/jobs/7")
    }
}
