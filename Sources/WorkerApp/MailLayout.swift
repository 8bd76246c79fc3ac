import SafeHTML

/// How our mails look: one column that every program lays out the same.
enum MailLayout {
    /// - Parameters:
    ///   - title: as text.
    ///   - content: as HTML.
    ///   - footer: as HTML: why one gets this mail.
    static func html(title: String, content: String, footer: String) -> String {
        """
        <!DOCTYPE html>
        <html lang="en"><head><meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light"><title>\(SafeHTML.escaped(title))</title></head>
        <body style="margin:0;padding:0;background:#f3f5f8">
        <table role="presentation" width="100%" cellpadding="0" cellspacing="0"><tr><td align="center" \
        style="padding:24px 12px">
        <table role="presentation" cellpadding="0" cellspacing="0" style="width:100%;max-width:600px;\
        background:#ffffff;border-radius:8px;font-family:Arial,Helvetica,sans-serif;font-size:15px;\
        line-height:1.45;color:#1b2027"><tr><td style="padding:24px 28px">
        <h1 style="margin:0 0 12px;font-size:20px;line-height:1.3">\(SafeHTML.escaped(title))</h1>
        \(content)<p style="margin:18px 0 0;padding-top:14px;border-top:1px solid #d9dee5;font-size:13px;\
        color:#5b6470">
        \(footer)
        </p></td></tr></table></td></tr></table></body></html>
        """
    }
}
