import CoreHTTP
import Crypto
import Foundation
import HTTPServer
import SafeHTML

/// The few pages people see in a browser: no script, nothing from elsewhere, forms that come back here only.
enum HTMLPage {
    private static let style = """
        body{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 1rem;color:#222}
        button{font:inherit;padding:.5rem 1.2rem;border:0;border-radius:.4rem;background:#1a5fb4;color:#fff}
        label{display:block;margin:0 0 1rem}
        input{font:inherit;display:block;box-sizing:border-box;width:100%;margin-top:.2rem;padding:.5rem;\
        border:1px solid #888;border-radius:.4rem}
        a{color:#1a5fb4}.wrong{color:#a51d2d}
        """

    /// The style is named by its digest, so that no other style, and no script at all, is let in.
    private static let policy =
        "default-src 'none'; style-src 'sha256-\(Data(SHA256.hash(style)).base64EncodedString())'; "
        + "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

    /// - Parameters:
    ///   - title: as text.
    ///   - body: as HTML.
    static func answer(_ title: String, _ body: String) -> HTTPResponse {
        let html = """
            <!doctype html><html lang="en"><head><meta charset="utf-8"><title>\(SafeHTML.escaped(title))</title>
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <style>\(style)</style></head><body><main>\(body)</main></body></html>
            """
        return HTTPResponse(
            status: 200,
            headers: [
                "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store",
                "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
                "Content-Security-Policy": policy,
            ],
            body: .bytes(Array(html.utf8)))
    }
}
