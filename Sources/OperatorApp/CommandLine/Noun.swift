/// The word for so many: `file` for one, `files` for none and several.
/// - Parameter many: where it does not end in a mere `s` more.
func noun(_ count: some BinaryInteger, _ one: String, _ many: String? = nil) -> String {
    count == 1 ? one : many ?? one + "s"
}
