import Cgumbo

/// What an element of the input means to us.
enum Element {
    /// Keeps its tag, around whole blocks.
    case container(Container.Kind)
    case heading(Int)
    case paragraph
    case preformatted
    case inline(Inline)
    case lineBreak
    case rule
    /// A block whose tag goes: the text before and after it stays apart.
    case block
    /// A table cell: its text stays apart from its neighbour's by a space.
    case cell
    /// The tag goes, its content stays where it is.
    case unwrapped
    /// Goes with all that is in it.
    case dropped

    init(_ element: GumboElement) {
        guard element.tag_namespace == GUMBO_NAMESPACE_HTML else {
            self = .dropped
            return
        }
        switch element.tag {
        case GUMBO_TAG_A: self = Link.address(of: element).map { .inline(.link($0)) } ?? .unwrapped
        default: self = Self.meanings[element.tag.rawValue] ?? .unwrapped
        }
    }

    private static let meanings: [UInt32: Element] = {
        let groups: [([GumboTag], Element)] = [
            ([GUMBO_TAG_P], .paragraph),
            ([GUMBO_TAG_UL], .container(.ul)), ([GUMBO_TAG_OL], .container(.ol)), ([GUMBO_TAG_LI], .container(.li)),
            ([GUMBO_TAG_BLOCKQUOTE], .container(.blockquote)),
            ([GUMBO_TAG_H1, GUMBO_TAG_H2], .heading(2)), ([GUMBO_TAG_H3], .heading(3)), ([GUMBO_TAG_H4], .heading(4)),
            ([GUMBO_TAG_H5], .heading(5)), ([GUMBO_TAG_H6], .heading(6)),
            ([GUMBO_TAG_PRE, GUMBO_TAG_LISTING], .preformatted),
            ([GUMBO_TAG_STRONG], .inline(.strong)), ([GUMBO_TAG_B], .inline(.b)), ([GUMBO_TAG_EM], .inline(.em)),
            ([GUMBO_TAG_I], .inline(.i)), ([GUMBO_TAG_CODE], .inline(.code)),
            ([GUMBO_TAG_BR], .lineBreak), ([GUMBO_TAG_HR], .rule), ([GUMBO_TAG_TD, GUMBO_TAG_TH], .cell),
            (partingTags, .block), (droppedTags, .dropped),
        ]
        var meanings: [UInt32: Element] = [:]
        for (tags, meaning) in groups {
            for tag in tags { meanings[tag.rawValue] = meaning }
        }
        return meanings
    }()

    private static let partingTags: [GumboTag] = [
        GUMBO_TAG_ADDRESS, GUMBO_TAG_ARTICLE, GUMBO_TAG_ASIDE, GUMBO_TAG_CAPTION, GUMBO_TAG_CENTER, GUMBO_TAG_DD,
        GUMBO_TAG_DETAILS, GUMBO_TAG_DIR, GUMBO_TAG_DIV, GUMBO_TAG_DL, GUMBO_TAG_DT, GUMBO_TAG_FIELDSET,
        GUMBO_TAG_FIGCAPTION, GUMBO_TAG_FIGURE, GUMBO_TAG_FOOTER, GUMBO_TAG_FORM, GUMBO_TAG_HEADER, GUMBO_TAG_HGROUP,
        GUMBO_TAG_LEGEND, GUMBO_TAG_MAIN, GUMBO_TAG_MENU, GUMBO_TAG_NAV, GUMBO_TAG_SECTION, GUMBO_TAG_SUMMARY,
        GUMBO_TAG_TABLE, GUMBO_TAG_TBODY, GUMBO_TAG_TFOOT, GUMBO_TAG_THEAD, GUMBO_TAG_TR,
    ]

    private static let droppedTags: [GumboTag] = [
        GUMBO_TAG_APPLET, GUMBO_TAG_AREA, GUMBO_TAG_AUDIO, GUMBO_TAG_BASE, GUMBO_TAG_BASEFONT, GUMBO_TAG_BGSOUND,
        GUMBO_TAG_CANVAS, GUMBO_TAG_COL, GUMBO_TAG_COLGROUP, GUMBO_TAG_DATALIST, GUMBO_TAG_EMBED, GUMBO_TAG_FRAME,
        GUMBO_TAG_FRAMESET, GUMBO_TAG_HEAD, GUMBO_TAG_IFRAME, GUMBO_TAG_IMAGE, GUMBO_TAG_IMG, GUMBO_TAG_INPUT,
        GUMBO_TAG_KEYGEN, GUMBO_TAG_LINK, GUMBO_TAG_MAP, GUMBO_TAG_MATH, GUMBO_TAG_META, GUMBO_TAG_METER,
        GUMBO_TAG_NOEMBED, GUMBO_TAG_NOFRAMES, GUMBO_TAG_NOSCRIPT, GUMBO_TAG_OBJECT, GUMBO_TAG_PARAM,
        GUMBO_TAG_PLAINTEXT, GUMBO_TAG_PROGRESS, GUMBO_TAG_SCRIPT, GUMBO_TAG_SELECT, GUMBO_TAG_SOURCE, GUMBO_TAG_STYLE,
        GUMBO_TAG_SVG, GUMBO_TAG_TEMPLATE, GUMBO_TAG_TEXTAREA, GUMBO_TAG_TITLE, GUMBO_TAG_TRACK, GUMBO_TAG_VIDEO,
        GUMBO_TAG_XMP,
    ]
}

/// An element that may hold blocks.
struct Container: Equatable {
    enum Kind: String { case ul, ol, li, blockquote }
    let kind: Kind
    /// Two lists side by side are not one. A list item that we put in ourselves has its list's id, negated.
    let id: Int

    var isList: Bool { kind == .ul || kind == .ol }
}

/// Formatting within a line.
enum Inline: Equatable {
    case strong, b, em, i, code
    case link(String)

    var name: String {
        switch self {
        case .strong: "strong"
        case .b: "b"
        case .em: "em"
        case .i: "i"
        case .code: "code"
        case .link: "a"
        }
    }
}

enum Link {
    /// The address of an `a` element when it is one we let pass: absolute, http, https or mailto.
    static func address(of element: GumboElement) -> String? {
        var attributes = element.attributes
        guard let href = gumbo_get_attribute(&attributes, "href"), let value = href.pointee.value else { return nil }
        return allowed(String(cString: value))
    }

    /// Browsers take leading blanks and all tabs and line ends out of an address before they look for its scheme
    /// (URL standard, section 4.4), so "java\nscript:" is javascript. The same is done here first.
    static func allowed(_ address: String) -> String? {
        let trimmed = address.utf8.drop { $0 <= 0x20 }
        let bytes = Array(trimmed.filter { $0 != 9 && $0 != 10 && $0 != 13 })
        let address = Array(bytes[..<(bytes.lastIndex { $0 > 0x20 }.map { $0 + 1 } ?? 0)])
        guard !address.contains(where: { $0 <= 0x20 || $0 == 0x7f || $0 == UInt8(ascii: "\\") }) else { return nil }
        for prefix in ["https://", "http://", "mailto:"] {
            let head = address.prefix(prefix.utf8.count)
            guard head.map({ isLetter($0) ? $0 | 0x20 : $0 }).elementsEqual(prefix.utf8) else { continue }
            // Something must follow, and not at once the end of a host that is not there.
            guard let next = address.dropFirst(head.count).first, !"/?#".utf8.contains(next) else { return nil }
            return String(decoding: address, as: UTF8.self)
        }
        return nil
    }
}
