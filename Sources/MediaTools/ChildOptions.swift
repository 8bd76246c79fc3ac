/// What a media child may do beyond what it always does: the words between `media-child` and the roots.
public struct ChildOptions: Equatable, Sendable {
    /// SVG is drawn, and what is kept is the drawing. Otherwise it is refused.
    public var rasterizesSVG = false
    private static let rasterizing = "--svg"

    public init() {}

    /// - Returns: Nil for a word that is neither an option nor a root, which are absolute.
    init?(_ words: some Sequence<String>, roots: inout [String]) {
        for word in words {
            if word == Self.rasterizing {
                rasterizesSVG = true
            } else if word.hasPrefix("/") {
                roots.append(word)
            } else {
                return nil
            }
        }
    }

    var words: [String] {
        rasterizesSVG ? [Self.rasterizing] : []
    }
}
