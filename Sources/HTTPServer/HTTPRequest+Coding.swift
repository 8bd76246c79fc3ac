extension HTTPRequest {
    /// Refuses a body that is compressed or coded otherwise: what is read here is read as it comes.
    /// - Throws: 415 with the one coding that is taken (RFC 9110 §15.5.16, §12.5.3).
    public func requirePlainBody() throws(HTTPError) {
        guard !body.isEmpty else { return }
        let codings = headers.all("Content-Encoding").flatMap { $0.split(separator: ",") }
        // No coding at all goes by this name; it may not be sent (§8.4.1), and harms nobody.
        guard codings.allSatisfy({ $0.filter { !$0.isWhitespace }.lowercased() == "identity" }) else {
            throw HTTPError(
                415, "Send the body without a Content-Encoding.", headers: ["Accept-Encoding": "identity"])
        }
    }
}
