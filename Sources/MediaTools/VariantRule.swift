/// Which sizes an image is also kept in: the rule of Strapi's upload plugin (contracts/01, section 4), whose clients
/// read these names.
enum VariantRule {
    struct Target: Equatable {
        let name: MediaVariant.Name
        let width: Int
        let height: Int
    }

    private static let thumbnail = (width: 245, height: 156)
    private static let breakpoints: [(MediaVariant.Name, Int)] = [(.small, 500), (.medium, 750), (.large, 1000)]

    /// From small to large.
    static func targets(width: Int, height: Int) -> [Target] {
        var targets: [Target] = []
        if width > thumbnail.width || height > thumbnail.height {
            targets.append(fit(.thumbnail, width, height, thumbnail.width, thumbnail.height))
        }
        for (name, side) in breakpoints where side < width || side < height {
            targets.append(fit(name, width, height, side, side))
        }
        return targets
    }

    /// Inside the box, proportions kept, rounded to the nearest pixel, never without one.
    private static func fit(
        _ name: MediaVariant.Name, _ width: Int, _ height: Int, _ boxWidth: Int, _ boxHeight: Int
    ) -> Target {
        let scale = min(Double(boxWidth) / Double(width), Double(boxHeight) / Double(height))
        let rounded = { (side: Int) in max(1, Int((Double(side) * scale).rounded())) }
        return Target(name: name, width: rounded(width), height: rounded(height))
    }
}
