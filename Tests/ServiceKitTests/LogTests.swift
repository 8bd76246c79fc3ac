import Testing

@testable import ServiceKit

@Suite("Logs")
struct LogTests {
    @Test("what an error quotes is logged without the mail addresses in it")
    func addresses() {
        for (text, logged) in [
            ("550 5.1.1 <ada@example.org>: no such user", "550 5.1.1 <•••>: no such user"),
            ("Key (email)=(Ada.L+x@example.org) already exists.", "Key (email)=(•••) already exists."),
            ("ada@example.org", "•••"), ("a@b, c@d", "•••, •••"), ("é@ü.de", "•••"),
            ("nobody @ home", "nobody @ home"), ("@", "@"), ("", ""), ("no address", "no address"),
        ] { #expect(Log.withoutAddresses(text) == logged) }
    }
}
