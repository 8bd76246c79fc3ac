import Core
import Testing

@Suite("Errors in words")
struct AppErrorTests {
    @Test("an error says its code, its message and the paths of its issues, and not what Swift would dump")
    func description() {
        #expect("\(AppError.unavailable)" == "unavailable: The service is not available for the moment. Try again.")
        #expect("\(AppError.notFound)" == "not_found: Not Found")
        let issues = [["company", "name"], [], ["bio"]].map { AppError.Issue(path: $0, message: "secret") }
        #expect(
            "\(AppError(.invalid, "Two are wrong.", issues: issues))" == "invalid: Two are wrong. (company.name, bio)")
        #expect("\(AppError.invalid("email", "No.") as any Error)" == "invalid: No. (email)")
    }
}
