import Cexpat

/// Reads XML from outside as events, by expat. Documents of word processors have no document type, and so no entities:
/// one that has is refused before the first of them is looked at. Drawings may name theirs, but not add to it.
final class XMLReader {
    /// Word nests some thirty.
    static let depthMax = 256

    /// The last part of an element's name, and the namespace it stands in.
    struct Name {
        let space: Substring
        let local: Substring

        init(_ text: String) {
            // As expat joins them: the separator is in neither.
            let parts = text.split(separator: "|", maxSplits: 1, omittingEmptySubsequences: false)
            space = parts.count == 2 ? parts[0] : ""
            local = parts.last ?? ""
        }
    }

    struct Attributes {
        fileprivate let list: UnsafeMutablePointer<UnsafePointer<XML_Char>?>?

        func forEach(_ body: (Name, String) -> Void) {
            guard let list else { return }
            var index = 0
            while let name = list[index], let value = list[index + 1] {
                body(Name(String(cString: name)), String(cString: value))
                index += 2
            }
        }

        /// By the last part of its name, in whatever namespace.
        subscript(local: String) -> String? {
            guard let list else { return nil }
            var index = 0
            while let name = list[index], let value = list[index + 1] {
                if Name(String(cString: name)).local == local { return String(cString: value) }
                index += 2
            }
            return nil
        }
    }

    var onStart: (Name, Attributes) -> Void = { _, _ in }
    var onEnd: (Name) -> Void = { _ in }
    var onText: (UnsafeBufferPointer<UInt8>) -> Void = { _ in }

    private let parser: XML_Parser
    private let allowsDocumentType: Bool
    private var depth = 0
    private var refusal: Rejection?

    /// - Parameter allowsDocumentType: one that is only named; it is not fetched.
    /// - Throws: `broken` when there is no memory for a parser.
    init(allowsDocumentType: Bool = false) throws(Rejection) {
        guard let parser = XML_ParserCreateNS(nil, XML_Char(UInt8(ascii: "|"))) else { throw .broken }
        self.parser = parser
        self.allowsDocumentType = allowsDocumentType
        // Not retained: the parser calls only while `feed` runs.
        XML_SetUserData(parser, Unmanaged.passUnretained(self).toOpaque())
        XML_SetElementHandler(
            parser, { XMLReader.of($0)?.started($1, $2) }, { XMLReader.of($0)?.ended($1) })
        XML_SetCharacterDataHandler(parser) { XMLReader.of($0)?.text($1, Int($2)) }
        XML_SetStartDoctypeDeclHandler(parser) { user, _, _, _, hasEntities in
            guard let reader = XMLReader.of(user), !reader.allowsDocumentType || hasEntities != 0 else { return }
            reader.stop(.unsafeDocument)
        }
    }

    deinit { XML_ParserFree(parser) }

    /// - Throws: `unsafeDocument` for a document type, `broken` for what is not well-formed or nested too deeply.
    func feed(_ bytes: UnsafeRawBufferPointer, isLast: Bool) throws(Rejection) {
        let status = XML_Parse(
            parser, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count), isLast ? 1 : 0)
        if let refusal { throw refusal }
        guard status == XML_STATUS_OK else { throw .broken }
    }

    private static func of(_ user: UnsafeMutableRawPointer?) -> XMLReader? {
        user.map { Unmanaged<XMLReader>.fromOpaque($0).takeUnretainedValue() }
    }

    private func stop(_ reason: Rejection) {
        refusal = refusal ?? reason
        XML_StopParser(parser, 0)
    }

    private func started(
        _ name: UnsafePointer<XML_Char>?, _ attributes: UnsafeMutablePointer<UnsafePointer<XML_Char>?>?
    ) {
        depth += 1
        guard depth <= Self.depthMax else { return stop(.broken) }
        if let name { onStart(Name(String(cString: name)), Attributes(list: attributes)) }
    }

    private func ended(_ name: UnsafePointer<XML_Char>?) {
        depth -= 1
        if let name { onEnd(Name(String(cString: name))) }
    }

    private func text(_ text: UnsafePointer<XML_Char>?, _ count: Int) {
        guard let text, count > 0 else { return }
        text.withMemoryRebound(to: UInt8.self, capacity: count) {
            onText(UnsafeBufferPointer(start: $0, count: count))
        }
    }
}
