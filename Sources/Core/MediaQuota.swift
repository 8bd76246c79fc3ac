extension Media {
    /// How much one person's files may take together: what was sent and not rejected, and what was made of it, which
    /// counts once it is there. A small picture may become a large one, so that it must count; but a file that was
    /// taken is not refused for it afterwards: the next one is.
    public struct Quota: Sendable {
        /// Five hundred photos of a telephone.
        public static let mebibytesDefault = 1024
        /// Counted for a smaller file: its row, its sizes and its place in the store are not free, and a million files
        /// of one byte are not wanted either.
        public static let fileBytesMin: Int64 = 64 * 1024

        public let bytes: Int64

        public init(mebibytes: Int = Self.mebibytesDefault) { bytes = Int64(mebibytes) << 20 }

        /// What a file counts.
        public func size(ofFile bytes: Int64) -> Int64 { max(bytes, Self.fileBytesMin) }

        public var exceeded: AppError {
            AppError(
                .tooLarge,
                "Your files, with the sizes made of your pictures, would take more than the \(bytes >> 20) MiB that "
                    + "one account has. Delete some that you no longer need, and send this one again.")
        }
    }
}
