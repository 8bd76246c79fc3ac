import Ccurl
import Foundation
import Synchronization

/// One easy handle of libcurl with what its callbacks need. Used by one thread at a time; keeps its connections for the
/// next use.
final class CurlHandle {
    /// curl_global_init is not safe to race, so the first handle does it once.
    private static let ready: Bool = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    let easy: UnsafeMutableRawPointer
    private var lists: [UnsafeMutablePointer<curl_slist>] = []
    private let errorText: UnsafeMutablePointer<CChar>
    /// What the first option that was refused said: checked once, before the transfer.
    private var refused: CURLcode = CURLE_OK

    // What the callbacks read from and write to.
    var sending: [UInt8] = []
    var sent = 0
    /// What is sent instead of `sending`: so many bytes of a file.
    var file: (descriptor: Int32, count: Int) = (-1, 0)
    var received: [UInt8] = []
    var receivedMax = 0
    var headerLines: [String] = []

    init?() {
        guard Self.ready, let easy = curl_easy_init() else { return nil }
        self.easy = easy
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        curl_easy_cleanup(easy)
        for list in lists { curl_slist_free_all(list) }
        errorText.deallocate()
    }

    /// Forgets options and data of the use before, not its connections.
    func reset() {
        curl_easy_reset(easy)
        for list in lists { curl_slist_free_all(list) }
        lists = []
        errorText[0] = 0
        refused = CURLE_OK
        sending = []
        sent = 0
        file = (-1, 0)
        received = []
        headerLines = []
        set(CURLOPT_ERRORBUFFER, errorText)
        // Signals belong to the process, and this runs on a thread of a pool.
        set(CURLOPT_NOSIGNAL, 1)
    }

    func set(_ option: CURLoption, _ value: Int) { note(martlet_curl_set_long(easy, option, value)) }
    func set(_ option: CURLoption, _ value: String) { note(martlet_curl_set_string(easy, option, value)) }
    func set(_ option: CURLoption, _ value: UnsafeMutableRawPointer) {
        note(martlet_curl_set_pointer(easy, option, value))
    }
    func set(_ option: CURLoption, _ callback: martlet_curl_data) {
        note(martlet_curl_set_data(easy, option, callback))
    }

    func set(_ option: CURLoption, _ strings: [String]) {
        var list: UnsafeMutablePointer<curl_slist>?
        for string in strings {
            guard let longer = curl_slist_append(list, string) else {
                refused = CURLE_OUT_OF_MEMORY
                break
            }
            list = longer
        }
        guard let list else { return }
        lists.append(list)
        note(martlet_curl_set_list(easy, option, list))
    }

    /// Runs the transfer on this thread.
    func perform() -> CURLcode { refused == CURLE_OK ? curl_easy_perform(easy) : refused }

    /// The last status of the protocol: an HTTP status or an SMTP reply code; 0 without any.
    var responseCode: Int {
        var code = 0
        martlet_curl_get_long(easy, CURLINFO_RESPONSE_CODE, &code)
        return code
    }

    /// libcurl's own words, or its name of the code.
    func message(_ code: CURLcode) -> String {
        let detail = String(cString: errorText)
        return detail.isEmpty ? String(cString: curl_easy_strerror(code)) : detail
    }

    private func note(_ code: CURLcode) {
        if refused == CURLE_OK { refused = code }
    }

    // MARK: Callbacks

    /// Gives libcurl bytes of `sending`.
    func sendBytes(_ bytes: [UInt8]) {
        sending = bytes
        set(CURLOPT_READDATA, Unmanaged.passUnretained(self).toOpaque())
        set(CURLOPT_READFUNCTION) { buffer, size, count, context in
            guard let buffer, let context else { return 0 }
            let handle = Unmanaged<CurlHandle>.fromOpaque(context).takeUnretainedValue()
            let length = min(size * count, handle.sending.count - handle.sent)
            handle.sending.withUnsafeBytes { bytes in
                guard length > 0, let start = bytes.baseAddress else { return }
                memcpy(buffer, start + handle.sent, length)
            }
            handle.sent += length
            return length
        }
    }

    /// Gives libcurl the first `count` bytes of an open file.
    func sendFile(_ descriptor: Int32, count: Int) {
        file = (descriptor, count)
        set(CURLOPT_READDATA, Unmanaged.passUnretained(self).toOpaque())
        set(CURLOPT_READFUNCTION) { buffer, size, count, context in
            guard let buffer, let context else { return 0 }
            let handle = Unmanaged<CurlHandle>.fromOpaque(context).takeUnretainedValue()
            let length = min(size * count, handle.file.count - handle.sent)
            guard length > 0 else { return 0 }
            let read = pread(handle.file.descriptor, buffer, length, off_t(handle.sent))
            // Less than was promised would leave the server waiting.
            guard read > 0 else { return Int(CURL_READFUNC_ABORT) }
            handle.sent += read
            return read
        }
    }

    /// Lets libcurl begin the body anew: a kept connection may turn out to be closed once a part has been sent.
    func rewindsBody() {
        set(CURLOPT_SEEKDATA, Unmanaged.passUnretained(self).toOpaque())
        note(
            martlet_curl_set_seek(easy) { context, offset, origin in
                guard let context, origin == SEEK_SET, offset >= 0 else { return CURL_SEEKFUNC_CANTSEEK }
                Unmanaged<CurlHandle>.fromOpaque(context).takeUnretainedValue().sent = Int(offset)
                return CURL_SEEKFUNC_OK
            })
    }

    /// Collects at most `max` bytes of the answer's body: more ends the transfer (CURLE_WRITE_ERROR).
    func receiveBytes(max: Int) {
        receivedMax = max
        set(CURLOPT_WRITEDATA, Unmanaged.passUnretained(self).toOpaque())
        set(CURLOPT_WRITEFUNCTION) { buffer, size, count, context in
            guard let buffer, let context else { return 0 }
            let handle = Unmanaged<CurlHandle>.fromOpaque(context).takeUnretainedValue()
            let length = size * count
            guard handle.received.count + length <= handle.receivedMax else { return 0 }
            handle.received.append(contentsOf: UnsafeRawBufferPointer(start: buffer, count: length))
            return length
        }
    }

    /// Collects header lines, at most `HTTPClient.headerLinesMax`.
    func receiveHeaders() {
        set(CURLOPT_HEADERDATA, Unmanaged.passUnretained(self).toOpaque())
        set(CURLOPT_HEADERFUNCTION) { buffer, size, count, context in
            guard let buffer, let context else { return 0 }
            let handle = Unmanaged<CurlHandle>.fromOpaque(context).takeUnretainedValue()
            let length = size * count
            guard handle.headerLines.count < HTTPClient.headerLinesMax else { return 0 }
            let bytes = UnsafeRawBufferPointer(start: buffer, count: length)
            handle.headerLines.append(String(decoding: bytes, as: UTF8.self))
            return length
        }
    }
}

/// Handles between two uses, so that connections are used again. Any thread takes one; nobody shares one.
final class CurlHandles: Sendable {
    /// An address is kept, not the class, because a handle belongs to whoever took it and to no isolation.
    private struct Idle: ~Copyable {
        var handles: [UInt] = []
    }

    private let idle = Mutex(Idle())
    private let idleMax: Int

    init(idleMax: Int) { self.idleMax = idleMax }

    deinit {
        let rest = idle.withLock { $0.handles }
        for address in rest { Self.handle(address)?.release() }
    }

    func with<T>(_ body: (CurlHandle) throws -> T) throws -> T {
        let address = idle.withLock { $0.handles.popLast() }
        guard let handle = address.flatMap(Self.handle)?.takeRetainedValue() ?? CurlHandle() else {
            throw TransferError.unavailable
        }
        handle.reset()
        // Only a handle whose transfer ended in an orderly way keeps its connection for the next one.
        let result = try body(handle)
        let kept = Unmanaged.passRetained(handle)
        let full = idle.withLock { idle in
            guard idle.handles.count < idleMax else { return true }
            idle.handles.append(UInt(bitPattern: kept.toOpaque()))
            return false
        }
        if full { kept.release() }
        return result
    }

    private static func handle(_ address: UInt) -> Unmanaged<CurlHandle>? {
        UnsafeRawPointer(bitPattern: address).map { Unmanaged<CurlHandle>.fromOpaque($0) }
    }
}

/// libcurl itself could not be used.
public enum TransferError: Error, Equatable {
    case unavailable
}
