// CoreHTTP
