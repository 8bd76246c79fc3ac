import Ccurl

/// What is wrong with a mail server, or with how it is asked, as far as a greeting shows it.
public struct SMTPFault: Error, Equatable, Sendable, CustomStringConvertible {
    public enum Kind: Sendable, Equatable, CaseIterable {
        /// Nobody answers at the address, or the name has none.
        case unreachable
        /// Whoever answers is no mail server, or not in time.
        case silent
        /// It does not do TLS, or not as it is asked for.
        case handshake
        /// It has no STARTTLS, which is required.
        case noStartTLS
        /// Its certificate has expired, or is not valid yet.
        case expired
        /// Its certificate names other hosts.
        case otherName
        /// Its certificate is of an authority that is not trusted.
        case untrusted
        /// The file of authorities cannot be used.
        case authorities
        case login
        case other
    }

    public let kind: Kind
    /// libcurl's or OpenSSL's words, with nothing of the configuration's password.
    public let description: String

    init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    /// Nil for a transfer that went well.
    init?(_ code: CURLcode, text: String) {
        switch code {
        case CURLE_OK: return nil
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT: self.init(.unreachable, text)
        case CURLE_OPERATION_TIMEDOUT, CURLE_WEIRD_SERVER_REPLY, CURLE_RECV_ERROR, CURLE_GOT_NOTHING:
            self.init(.silent, text)
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER: self.init(.handshake, text)
        case CURLE_USE_SSL_FAILED: self.init(.noStartTLS, text)
        case CURLE_PEER_FAILED_VERIFICATION:
            // It has one code for all; what is wrong stands in OpenSSL's words (X509_verify_cert_error_string).
            let kind: Kind =
                if text.contains("expired") || text.contains("not yet valid") {
                    .expired
                } else if text.contains("subject name") || text.contains("ostname") || text.contains("IP address") {
                    .otherName
                } else {
                    .untrusted
                }
            self.init(kind, text)
        case CURLE_SSL_CACERT_BADFILE: self.init(.authorities, text)
        case CURLE_LOGIN_DENIED: self.init(.login, text)
        default: self.init(.other, text)
        }
    }
}
