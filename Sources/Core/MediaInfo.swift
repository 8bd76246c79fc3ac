extension Media {
    /// What a person says about a file: Strapi's `fileInfo`. Nil leaves what is there.
    public struct Info: Sendable, Equatable {
        /// In Unicode scalars, as the CHECKs on `media` count. A test holds them together.
        public static let alternativeText = TextField("alternativeText", max: 1000, multiline: true)
        public static let caption = TextField("caption", max: 1000, multiline: true)
        public static let none = Info()

        public let name: String?
        public let alternativeText: String?
        public let caption: String?

        private init() { (name, alternativeText, caption) = (nil, nil, nil) }

        /// - Parameter name: another one than the file's own; nothing visible in it is none.
        /// - Throws: `invalid` for what is too long or has control characters.
        public init(name: String?, alternativeText: String?, caption: String?) throws(AppError) {
            if let name, name.unicodeScalars.count > Draft.nameLengthMax {
                throw .invalid("name", "name is limited to \(Draft.nameLengthMax) characters.")
            }
            let isNamed = name.map { $0.unicodeScalars.contains(where: \.isVisible) } ?? false
            self.name = isNamed ? name.map { Draft.clean(name: $0) } : nil
            self.alternativeText =
                if let alternativeText { try Self.alternativeText.accept(alternativeText) } else { nil }
            self.caption = if let caption { try Self.caption.accept(caption) } else { nil }
        }
    }
}
