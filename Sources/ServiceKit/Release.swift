/// Which Martlet these sources are.
public enum Release {
    /// The release that comes after the last one of docs/releases.md: `X.Y.Z-dev` until it is made, and `X.Y.Z` in the
    /// commit that it is built from. docs/operations/migrations.md says how a release is made.
    public static let version = "0.2.0-dev"

    /// What a program answers to `--version`, without the line's end.
    public static func line(of program: String) -> String { "\(program) \(version)" }
}
