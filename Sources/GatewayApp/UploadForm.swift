import Core
import CoreHTTP
import Crypto
import JSON

/// What a form of `/api/upload` brought (contracts: `/api/upload`): `files`, several of them; `fileInfo`, a JSON object
/// for all of them, an array with one for each, or a part for each; `ref`, `refId` and `field` for what they are for.
/// `path` means a folder in Strapi's stores and nothing here.
struct UploadForm {
    /// Files of one request.
    static let filesMax = 10

    let drafts: [Media.Draft]
    let use: MediaUse?

    /// - Parameter kind: of files without `ref`; a profile picture becomes the caller's.
    init(_ form: Form, kind: Media.Kind, caller: User.ID, random: any RandomSource) throws(AppError) {
        let files = form.lists["files"] ?? []
        guard !files.isEmpty else { throw AppError(.invalid, "Files are empty") }
        use = try Self.use(form.fields) ?? (kind == .profile ? .profile(caller) : nil)
        guard use == nil || files.count == 1 else {
            throw .invalid("files", "This field takes one file; \(files.count) were sent")
        }
        drafts = try Self.drafts(files, Self.infos(form, count: files.count), kind: use?.kind ?? kind, random)
    }

    /// - Parameter present: the file that the one in the form is to stand for.
    init(replacing present: Media, _ form: Form, random: any RandomSource) throws(AppError) {
        let files = form.lists["files"] ?? []
        guard files.count == 1 else { throw AppError(.invalid, "Cannot replace a file with multiple ones") }
        use = nil
        drafts = try Self.drafts(files, Self.infos(form, count: 1), kind: present.kind, random)
    }

    /// `?kind=`: what files without a `ref` are.
    static func kind(_ text: String?) throws(AppError) -> Media.Kind {
        switch text {
        case nil, "attachment": .attachment
        case "profile": .profile
        // To be read before anybody applies with it.
        case "cv": .cv
        default: throw .invalid("kind", "kind must be profile, cv or attachment; else send ref, refId and field")
        }
    }

    private static func drafts(
        _ files: [Media.Draft], _ infos: [Media.Info], kind: Media.Kind, _ random: any RandomSource
    ) throws(AppError) -> [Media.Draft] {
        var drafts: [Media.Draft] = []
        for (file, info) in zip(files, infos) {
            guard file.bytes <= kind.bytesMax else { throw FormReader.tooLarge("files", kind) }
            drafts.append(
                Media.Draft(
                    kind: kind, name: file.name, declaredType: file.declaredType,
                    hash: FileName.hash(of: info.name ?? file.name, random: random), bytes: file.bytes,
                    sha256: file.sha256, storageKey: file.storageKey, info: info))
        }
        return drafts
    }

    // MARK: What it is for

    private static func use(_ fields: Fields) throws(AppError) -> MediaUse? {
        guard let ref = try fields.string("ref"), !ref.isEmpty else { return nil }
        let field = try fields.string("field") ?? ""
        switch ref {
        case "api::company.company":
            try check(field, is: "logo", of: ref)
            return .logo(try id(fields))
        case "plugin::users-permissions.user":
            try check(field, is: "profile", of: ref)
            return .profile(try id(fields))
        case "api::application.application":
            try check(field, is: "cv", of: ref)
            return .cv(try id(fields))
        default: throw .invalid("ref", "ref is no type that has files")
        }
    }

    private static func check(_ field: String, is known: String, of ref: String) throws(AppError) {
        guard field == known else { throw .invalid("field", "field must be \(known) for \(ref)") }
    }

    private static func id<Entity>(_ fields: Fields) throws(AppError) -> Identifier<Entity> {
        guard let id = try fields.id("refId", as: Entity.self) else { throw fields.wrong("refId", "is required") }
        return id
    }

    // MARK: What is said about them

    /// One for all, as a change of one file has it.
    static func info(_ form: Form) throws(AppError) -> Media.Info { try infos(form, count: 1)[0] }

    private static func infos(_ form: Form, count: Int) throws(AppError) -> [Media.Info] {
        let values = try values(form)
        switch values.count {
        case 0: return Array(repeating: .none, count: count)
        case 1:
            let info = try info(values[0], path: ["fileInfo"])
            return Array(repeating: info, count: count)
        case count:
            var infos: [Media.Info] = []
            for (index, value) in values.enumerated() { infos.append(try info(value, path: ["fileInfo", "\(index)"])) }
            return infos
        default: throw .invalid("fileInfo", "fileInfo must be one object, or one for each of the \(count) files")
        }
    }

    private static func values(_ form: Form) throws(AppError) -> [JSONValue] {
        // In a body of JSON it is a value, in a form a text that is one.
        guard form.isMultipart else { return form.fields.value("fileInfo").map { [$0] } ?? [] }
        var values: [JSONValue] = []
        for text in form.texts["fileInfo"] ?? [] where !text.isEmpty {
            guard let value = try? JSONValue(parsing: Array(text.utf8)) else {
                throw .invalid("fileInfo", "fileInfo must be JSON")
            }
            if case .array(let items) = value { values += items } else { values.append(value) }
        }
        return values
    }

    private static func info(_ value: JSONValue, path: [String]) throws(AppError) -> Media.Info {
        if case .null = value { return .none }
        guard case .object(let object) = value else {
            throw .invalid(path.joined(separator: "."), "fileInfo must be an object")
        }
        let fields = Fields(object, path: path)
        let (name, text) = (try fields.string("name"), try fields.string("alternativeText"))
        let caption = try fields.string("caption")
        do { return try Media.Info(name: name, alternativeText: text, caption: caption) } catch {
            let issues = error.issues.map { AppError.Issue(path: path + $0.path, message: $0.message) }
            throw AppError(error.code, error.message, issues: issues)
        }
    }
}
