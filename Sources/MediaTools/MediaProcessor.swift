/// Does what a request asks, in this process. Made once, in the child, before it locks itself in.
final class MediaProcessor {
    private let sniffer: ContentSniffer
    private let options: ChildOptions
    private let scans: ScanReader?

    var readsScans: Bool { scans != nil }

    init(_ options: ChildOptions = ChildOptions()) throws(MediaToolsError) {
        self.options = options
        scans = options.scanLanguages.isEmpty ? nil : ScanReader(languages: options.scanLanguages)
        try Picture.startLibrary()
        if options.rasterizesSVG { Picture.allowDrawings() }
        sniffer = try ContentSniffer()
    }

    func process(_ request: MediaRequest) -> MediaAnswer {
        guard let file = OpenFile(path: request.path) else { return .failed("the file cannot be opened") }
        do throws(Rejection) {
            guard file.bytes <= request.limits.fileBytesMax else { throw .tooLarge }
            let type = try sniffer.sniff(file)
            return try process(file, type: type, request: request)
        } catch {
            return .rejected(error)
        }
    }

    private func process(
        _ file: borrowing OpenFile, type: ContentType, request: MediaRequest
    ) throws(Rejection) -> MediaAnswer {
        switch (request.kind, type.isImage) {
        case (.image, false): throw .notAnImage
        case (.cv, true): throw .notACV
        case (_, false):
            let work = DocumentWork(limits: request.limits)
            var document = try work.run(file, type: type)
            if request.isScan, type == .pdf, document.textOutcome == .none, let scans {
                document = try work.scan(file, by: scans) ?? document
            }
            return .document(request.resumeIn.map { document.read(in: $0) } ?? document)
        case (_, true):
            guard type != .svg || options.rasterizesSVG else { throw .vectorImage }
            let vector = type == .svg ? try Vector(file.contents()) : nil
            let work = ImageWork(
                path: request.path, type: type, outputDirectory: request.outputDirectory, limits: request.limits,
                vector: vector)
            do { return .image(try work.run()) } catch {
                switch error {
                case .rejected(let rejection): throw rejection
                case .failed(let reason): return .failed(reason)
                }
            }
        }
    }
}
