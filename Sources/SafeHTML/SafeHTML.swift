/// HTML from outside, made safe: parsed as a browser would (gumbo), then written anew from an allow-list. Nothing of
/// the input is ever copied through, so what comes out is well-formed, and means to every parser what it means to us.
///
/// All calls are synchronous and take a few milliseconds for a posting; the limits hold the worst of them to about a
/// second, so strangers' HTML is for the worker, not for an event loop.
public enum SafeHTML {
    public struct Limits: Sendable {
        /// A long posting has 30 kB. The parser's worst cases grow with the square of the size.
        public var bytesMax = 256 * 1024
        /// Start and end tags together; the parser walks its open elements at each of them.
        public var tagsMax = 10_000
        /// Lists and quotations within each other. What is deeper keeps its words and loses its nesting.
        public var nestingMax = 16
        /// A longer link is dropped; its words stay.
        public var linkBytesMax = 2_048

        public init() {}
    }

    public enum Failure: Error, Equatable, Sendable {
        /// Over `Limits.bytesMax`, or what would come out is over four times of it.
        case tooLarge
        /// Over `Limits.tagsMax`, or a tag with hundreds of attributes.
        case tooManyTags
        /// The tree needs more memory than any honest page.
        case tooComplex
    }

    /// The allow-listed rewriting of `html`. Sanitising the result again changes nothing.
    ///
    /// Kept: p br ul ol li strong b em i h2-h6 (h1 becomes h2) blockquote pre code hr, and `a` with an http, https or
    /// mailto address. Other elements lose their tags and keep their words, those with foreign or active content
    /// (script, style, svg, iframe, …) and images go altogether. Loose text becomes paragraphs.
    public static func sanitise(_ html: String, limits: Limits = Limits()) throws(Failure) -> String {
        var builder = Builder(sink: HTMLSink(), limits: limits)
        try Document(html, limits: limits).walk(into: &builder)
        return try builder.finish().result(bytesMax: limits.bytesMax * 4)
    }

    /// The words of `html` for search and mail: paragraphs apart by an empty line, list items with bullets or numbers.
    /// HTML beyond the limits is read in a plainer way, and only as far as `bytesMax`.
    public static func text(_ html: String, limits: Limits = Limits()) -> String {
        var builder = Builder(sink: TextSink(), limits: limits)
        do {
            try Document(html, limits: limits).walk(into: &builder)
            return builder.finish().result()
        } catch {
            return fromTagless(stripTags(html, bytesMax: limits.bytesMax))
        }
    }

    /// Plain text as HTML: escaped, an empty line parts paragraphs, a line break stays one.
    public static func fromPlainText(_ text: String) -> String {
        var builder = Builder(sink: HTMLSink(), limits: Limits())
        var isFirstLine = true
        for line in Array(text.utf8).split(omittingEmptySubsequences: false, whereSeparator: isLineEnd) {
            if isBlank(line) {
                builder.softBreak()
            } else {
                if !isFirstLine { builder.lineBreak() }
                builder.text(line)
            }
            isFirstLine = false
        }
        return String(decoding: builder.finish().bytes, as: UTF8.self)
    }

    /// HTML whose tags arrive as entities (Greenhouse sends `&lt;p&gt;`): every entity decoded exactly once. The result
    /// is HTML from outside, to be sanitised.
    public static func unescapeOnce(_ escaped: String) -> String {
        // With no "<" left the parser finds one text, and decodes it by the standard's own table.
        let tagless = escaped.utf8.contains(UInt8(ascii: "<")) ? escaped.replacing("<", with: "&lt;") : escaped
        guard let document = try? Document(tagless, memoryBytesMax: Document.memoryBytesMax + tagless.utf8.count * 32)
        else { return escaped }
        return document.plainText
    }

    private static func isLineEnd(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "\n")
    }

    private static func fromTagless(_ text: String) -> String {
        var builder = Builder(sink: TextSink(), limits: Limits())
        for line in Array(unescapeOnce(text).utf8).split(whereSeparator: isLineEnd) {
            builder.text(line)
            builder.softBreak()
        }
        return builder.finish().result()
    }
}
