@testable import Crypto

/// Bytes everybody can foretell: 0, 1, 2 … so that a test knows the token it gets.
struct CountingRandom: RandomSource {
    func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0) } }
}

let key = [UInt8](repeating: 7, count: 32)
let otherKey = [UInt8](repeating: 8, count: 32)
