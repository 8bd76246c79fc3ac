import Foundation

/// Which languages scans are read in: those of tesseract that are installed.
public enum ScanLanguages {
    /// Each takes memory, and time on every line.
    public static let countMax = 4
    /// Where Debian's packages tesseract-ocr-… put them.
    static let folder = "/usr/share/tesseract-ocr/5/tessdata"

    /// Names as tesseract has them, such as `eng+deu`.
    /// - Returns: Nil for what is no list of up to `countMax` names.
    public static func list(_ text: String) -> [String]? {
        let names = text.split(separator: "+", omittingEmptySubsequences: false).map(String.init)
        let areNames = names.allSatisfy { name in
            !name.isEmpty
                && name.utf8.allSatisfy { ($0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A) || $0 == UInt8(ascii: "_") }
        }
        return areNames && names.count <= countMax ? names : nil
    }

    public static func installed(of names: [String]) -> [String] {
        names.filter { access("\(folder)/\($0).traineddata", R_OK) == 0 }
    }
}

/// Reads the letters on a picture of a page, by tesseract. The library is looked for when the child starts, not when
/// Martlet is built: who does not want this does not install it.
final class ScanReader {
    /// Less sure than this, and a line is a stain, a signature or a drawing.
    private static let confidenceMin: Float = 50
    private static let libraryName = "libtesseract.so.5"
    /// tesseract's own: the whole page, with its columns found.
    private static let wholePage: Int32 = 3
    private static let textLine: Int32 = 2

    private let library: Library
    private let languages: [String]
    private var reader: OpaquePointer?

    /// Nil where tesseract is not installed. To be called before the child is locked in.
    init?(languages: [String]) {
        guard let handle = dlopen(Self.libraryName, RTLD_NOW | RTLD_LOCAL), let library = try? Library(handle) else {
            return nil
        }
        self.library = library
        self.languages = languages
    }

    deinit { if let reader { library.delete(reader) } }

    /// The lines of a page from top to bottom, each with its end.
    /// - Returns: Nil when the languages cannot be loaded, or the time was not enough.
    func lines(of page: PageImage, millisecondsMax: Int32) -> [String]? {
        guard let reader = start(), let monitor = library.createMonitor() else { return nil }
        defer {
            library.deleteMonitor(monitor)
            library.clear(reader)
        }
        library.setDeadline(monitor, millisecondsMax)
        let (width, height) = (Int32(page.width), Int32(page.height))
        page.grey.withUnsafeBufferPointer { library.setImage(reader, $0.baseAddress, width, height, 1, width) }
        library.setResolution(reader, Int32(page.dotsPerInch))
        guard library.recognize(reader, monitor) == 0 else { return nil }
        guard let iterator = library.iterator(reader) else { return [] }
        defer { library.deleteIterator(iterator) }
        var lines: [String] = []
        repeat {
            guard library.confidence(iterator, Self.textLine) >= Self.confidenceMin,
                let text = library.text(iterator, Self.textLine)
            else { continue }
            lines.append(String(cString: text))
            library.deleteText(text)
        } while library.next(iterator, Self.textLine) != 0
        return lines
    }

    /// Only a scan needs the languages, which take a while to load.
    private func start() -> OpaquePointer? {
        if let reader { return reader }
        guard let made = library.create() else { return nil }
        guard library.load(made, ScanLanguages.folder, languages.joined(separator: "+")) == 0 else {
            library.delete(made)
            return nil
        }
        library.setMode(made, Self.wholePage)
        reader = made
        return made
    }

    /// The functions of tesseract's C interface (capi.h of version 5) that we call.
    private struct Library {
        typealias Handle = OpaquePointer

        let create: @convention(c) () -> Handle?
        let delete: @convention(c) (Handle) -> Void
        let load: @convention(c) (Handle, UnsafePointer<CChar>, UnsafePointer<CChar>) -> Int32
        let setMode: @convention(c) (Handle, Int32) -> Void
        let setImage: @convention(c) (Handle, UnsafePointer<UInt8>?, Int32, Int32, Int32, Int32) -> Void
        let setResolution: @convention(c) (Handle, Int32) -> Void
        let recognize: @convention(c) (Handle, Handle) -> Int32
        let clear: @convention(c) (Handle) -> Void
        let iterator: @convention(c) (Handle) -> Handle?
        let next: @convention(c) (Handle, Int32) -> Int32
        let text: @convention(c) (Handle, Int32) -> UnsafeMutablePointer<CChar>?
        let confidence: @convention(c) (Handle, Int32) -> Float
        let deleteIterator: @convention(c) (Handle) -> Void
        let deleteText: @convention(c) (UnsafeMutablePointer<CChar>) -> Void
        let createMonitor: @convention(c) () -> Handle?
        let setDeadline: @convention(c) (Handle, Int32) -> Void
        let deleteMonitor: @convention(c) (Handle) -> Void

        struct Missing: Error {}

        init(_ library: UnsafeMutableRawPointer) throws(Missing) {
            func find<Function>(_ name: String) throws(Missing) -> Function {
                guard let found = dlsym(library, "Tess" + name) else { throw Missing() }
                return unsafeBitCast(found, to: Function.self)
            }
            create = try find("BaseAPICreate")
            delete = try find("BaseAPIDelete")
            load = try find("BaseAPIInit3")
            setMode = try find("BaseAPISetPageSegMode")
            setImage = try find("BaseAPISetImage")
            setResolution = try find("BaseAPISetSourceResolution")
            recognize = try find("BaseAPIRecognize")
            clear = try find("BaseAPIClear")
            iterator = try find("BaseAPIGetIterator")
            next = try find("ResultIteratorNext")
            text = try find("ResultIteratorGetUTF8Text")
            confidence = try find("ResultIteratorConfidence")
            deleteIterator = try find("ResultIteratorDelete")
            deleteText = try find("DeleteText")
            createMonitor = try find("MonitorCreate")
            setDeadline = try find("MonitorSetDeadlineMSecs")
            deleteMonitor = try find("MonitorDelete")
        }
    }
}
