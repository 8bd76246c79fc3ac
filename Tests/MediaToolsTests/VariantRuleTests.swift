import Testing

@testable import MediaTools

@Suite struct VariantRuleTests {
    @Test(
        "sizes are those Strapi gives for its public examples, and at the edges of its breakpoints",
        arguments: [
            (1920, 1080, "thumbnail 245x138, small 500x281, medium 750x422, large 1000x563"),
            (1280, 1022, "thumbnail 195x156, small 500x399, medium 750x599, large 1000x798"),
            (960, 600, "thumbnail 245x153, small 500x313, medium 750x469"),
            (459, 470, "thumbnail 152x156"),
            (245, 156, ""), (246, 156, "thumbnail 245x155"), (245, 157, "thumbnail 243x156"), (1, 1, ""),
            (500, 500, "thumbnail 156x156"), (501, 400, "thumbnail 195x156, small 500x399"),
            (1000, 1000, "thumbnail 156x156, small 500x500, medium 750x750"),
            (1001, 667, "thumbnail 234x156, small 500x333, medium 750x500, large 1000x666"),
            (3000, 1, "thumbnail 245x1, small 500x1, medium 750x1, large 1000x1"),
            (10, 1200, "thumbnail 1x156, small 4x500, medium 6x750, large 8x1000"),
        ])
    func sizes(width: Int, height: Int, expected: String) {
        let targets = VariantRule.targets(width: width, height: height)
        #expect(targets.map { "\($0.name) \($0.width)x\($0.height)" }.joined(separator: ", ") == expected)
    }
}
