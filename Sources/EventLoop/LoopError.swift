import Cuv

/// A libuv error: its code, and the sentence libuv has for it.
public struct LoopError: Error, CustomStringConvertible, Sendable {
    /// A negative errno of this system.
    public let code: Int32
    public let doing: String

    public var description: String { "\(doing): \(String(cString: uv_strerror(code)))" }

    @discardableResult
    static func check(_ code: Int32, _ doing: @autoclosure () -> String) throws(LoopError) -> Int32 {
        guard code >= 0 else { throw LoopError(code: code, doing: doing()) }
        return code
    }
}
