/// What a multipart body may hold, beside the body's own limit.
public struct MultipartLimits: Sendable {
    /// Fields and files together. No form of ours has more than a dozen.
    public var partsMax = 32
    /// Two or three lines with a file name of at most 255 characters, percent-encoded at worst.
    public var partHeadBytesMax = 8 * 1024
    /// Before the first boundary. Clients send nothing there but, at most, a sentence for old mail readers.
    public var preambleBytesMax = 1024
    /// Spaces between a boundary and its line end, which RFC 2046 allows and nobody sends.
    public var paddingBytesMax = 64

    public init() {}
}
