/// Which keys a store takes. Keys are made by us, never from a name of outside; a mistake must not leave the folder.
enum ObjectKey {
    static let bytesMax = 200
    /// The first parts of the keys that we make: uploads, and variants of them. What is beneath anything else in a
    /// bucket is somebody else's, and no sweep touches it.
    static let tops = ["up", "va"]

    /// Parts of `[a-z0-9._-]` between single slashes, none of them beginning with a dot.
    static func isValid(_ key: String) -> Bool {
        guard !key.isEmpty, key.utf8.count <= bytesMax else { return false }
        return key.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).allSatisfy { part in
            guard let first = part.first, first != UInt8(ascii: ".") else { return false }
            return part.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."),
                    UInt8(ascii: "_"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
        }
    }
}
