/// One place that breaks a house rule.
struct Finding: CustomStringConvertible {
    /// Relative to the repository's root.
    let path: String
    /// 1-based.
    let line: Int
    let message: String

    init(path: String, line: Int, _ message: String) {
        self.path = path
        self.line = line
        self.message = message
    }

    var description: String { "\(path):\(line): \(message)" }
}
