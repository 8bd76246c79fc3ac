/// A first-in, first-out queue whose elements have running numbers: the first ever appended is 0.
struct Queue<Element> {
    private var items: [Element?] = []
    private var head = 0
    /// The number of the first element.
    private(set) var base = 0

    /// Dead space in front is given back once there is this much of it and it is the larger part.
    private static var compactAt: Int { 1024 }

    var count: Int { items.count - head }
    var isEmpty: Bool { head == items.count }
    var first: Element? { head < items.count ? items[head] : nil }

    @discardableResult
    mutating func append(_ element: Element) -> Int {
        items.append(element)
        return base + count - 1
    }

    /// Numbers of the others do not change; the element takes the one before the first.
    mutating func prepend(_ element: Element) {
        if head > 0 {
            head -= 1
            items[head] = element
        } else {
            items.insert(element, at: 0)
        }
        base -= 1
    }

    mutating func popFirst() -> Element? {
        guard head < items.count else { return nil }
        let element = items[head]
        items[head] = nil
        head += 1
        base += 1
        if head == items.count {
            items.removeAll(keepingCapacity: true)
            head = 0
        } else if head >= Self.compactAt, head > items.count / 2 {
            items.removeFirst(head)
            head = 0
        }
        return element
    }

    /// Reaches an element by its number. The number must be one that is still in the queue.
    mutating func update<T>(_ number: Int, _ body: (inout Element) -> T) -> T? {
        let index = number - base + head
        guard index >= head, index < items.count, var element = items[index].take() else { return nil }
        defer { items[index] = element }
        return body(&element)
    }

    /// Takes out what matches, in order. The rest keeps its order; numbers start anew.
    mutating func remove(where matches: (Element) -> Bool) -> [Element] {
        var taken: [Element] = []
        var kept: [Element?] = []
        for case .some(let element) in items[head...] {
            if matches(element) { taken.append(element) } else { kept.append(element) }
        }
        guard !taken.isEmpty else { return [] }
        items = kept
        head = 0
        base = 0
        return taken
    }
}
