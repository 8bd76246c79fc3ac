/// Rows under headings, aligned; numbers to the right. Without rows, nothing.
struct Table {
    enum Side { case left, right }

    /// A cell is cut after this many characters, so that lines stay lines.
    static let cellLengthMax = 80

    private let headings: [(name: String, side: Side)]
    private var rows: [[String]] = []

    init(_ headings: [(name: String, side: Side)]) { self.headings = headings }

    mutating func add(_ cells: String...) {
        rows.append(cells.map { Self.oneLine($0) })
    }

    /// What came from outside must not move the cursor, nor break the line.
    static func oneLine(_ text: String) -> String {
        let visible = String(
            text.map { $0.isNewline || $0 == "\t" ? " " : $0 }.filter { character in
                character.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
            })
        return visible.count <= cellLengthMax ? visible : String(visible.prefix(cellLengthMax - 1)) + "…"
    }

    var lines: [String] {
        guard !rows.isEmpty else { return [] }
        let all = [headings.map { $0.name.uppercased() }] + rows
        let widths = headings.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
        return all.map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                let space = String(repeating: " ", count: widths[column] - cell.count)
                line += headings[column].side == .right ? space + cell : cell + space
                if column < row.count - 1 { line += "  " }
            }
            while line.last == " " { line.removeLast() }
            return line
        }
    }
}
