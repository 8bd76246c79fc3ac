import HTTPServer

extension Health {
    /// Where a front door asks whether new requests are welcome, on the port of the requests themselves. Once the
    /// process has been ready it says nothing of the database any more: without one, the process answers better than a
    /// front door could.
    public static let frontDoorPath = "/_health"

    /// Answers the front door with 204, and with 503 before the process is ready for the first time and once it is on
    /// its way out; all else is the handler's.
    public func answeringFrontDoor(_ handler: @escaping HTTPHandler) -> HTTPHandler {
        { [self] request in
            guard request.path == Self.frontDoorPath else { return try await handler(request) }
            return HTTPResponse(status: isWelcoming ? 204 : 503, headers: ["Cache-Control": "no-store"])
        }
    }
}
