import Foundation
import Resume
import Testing

@testable import MediaTools

/// How well CVs are read: ours, in many layouts, languages and formats, each through the same code as an upload.
@Suite("Labelled CVs", .serialized) struct LabelledCVTests {
    /// How many of what was found are right, and how many of what there is were found.
    private struct Score {
        var right = 0
        var found = 0
        var labelled = 0

        mutating func count(_ found: [String], _ labelled: [String]) {
            right += Set(found).intersection(labelled).count
            self.found += found.count
            self.labelled += labelled.count
        }

        static func + (left: Score, right: Score) -> Score {
            Score(
                right: left.right + right.right, found: left.found + right.found,
                labelled: left.labelled + right.labelled)
        }

        var precision: Double { found == 0 ? 1 : Double(right) / Double(found) }
        var recall: Double { labelled == 0 ? 1 : Double(right) / Double(labelled) }
        var text: String { String(format: "precision %.3f, recall %.3f (%d labelled)", precision, recall, labelled) }
    }

    private static let kinds = [
        "name", "emails", "phones", "links", "skills", "languages", "levels", "experience", "education",
    ]

    private func found(_ resume: Resume, _ kind: String) -> [String] {
        switch kind {
        case "name": resume.name.map { [$0.value.lowercased()] } ?? []
        case "emails": resume.emails.map { $0.value.lowercased() }
        case "phones": resume.phones.map { $0.value.filter(\.isNumber) }
        case "links": resume.links.map { address($0.value) }
        case "skills": resume.skills.map(\.value)
        case "languages": resume.languages.map(\.code)
        case "levels": resume.languages.map { "\($0.code) \($0.level?.rawValue ?? "")" }
        case "experience": resume.experience.map { ["\($0.years)"] } ?? []
        default: Array(Set(resume.education.map(\.level.rawValue)))
        }
    }

    private func labelled(_ sample: CVSample, _ kind: String) -> [String] {
        switch kind {
        case "name": [sample.name.lowercased()]
        case "phones": sample.list(kind).map { $0.filter(\.isNumber) }
        case "links": sample.list(kind).map(address)
        case "languages": sample.list("languages").map { String($0.prefix(2)) }
        case "levels": sample.list("languages")
        case "experience": sample.experience.map { ["\($0)"] } ?? []
        default: sample.list(kind)
        }
    }

    private func address(_ link: String) -> String {
        link.replacing(#/^https?:\/\//#, with: "").replacing(#/\/$/#, with: "").lowercased()
    }

    @Test("contacts are right in 95 of 100 cases, and 80 of 100 skills are found")
    func measure() throws {
        let scratch = try Scratch()
        let processor = try MediaProcessor()
        #expect(CVSample.all.count >= 30)
        var scores: [String: Score] = [:]
        var report: [String] = []
        for sample in CVSample.all {
            let file = try scratch.file("cv", sample.bytes(in: scratch))
            let answer = processor.process(try scratch.request(file, kind: .cv))
            let document = try #require(answer.document, "\(sample.file): \(answer)")
            let resume = Resume.read(
                document.text, pageOffsets: document.pageOffsets,
                links: document.links.map { Resume.Link(offset: $0.offset, target: $0.target) },
                now: Resume.Month(year: 2026, month: 1))
            for kind in Self.kinds {
                let (found, labelled) = (found(resume, kind), labelled(sample, kind))
                scores[kind, default: Score()].count(found, labelled)
                let missed = Set(labelled).subtracting(found).sorted()
                let wrong = Set(found).subtracting(labelled).sorted()
                if !missed.isEmpty || !wrong.isEmpty {
                    report.append("  \(sample.file) \(kind): missed \(missed), wrong \(wrong)")
                }
            }
            placesHold(resume, document)
        }
        let contact = ["name", "emails", "phones", "links"].compactMap { scores[$0] }.reduce(Score(), +)
        print("What CVs say, \(CVSample.all.count) labelled ones:")
        for kind in Self.kinds { print("  \(kind): \(scores[kind]?.text ?? "")") }
        print("  contact (name, emails, phones, links): \(contact.text)")
        print(report.joined(separator: "\n"))
        #expect(contact.precision >= 0.95 && contact.recall >= 0.9)
        #expect(scores["skills"]?.recall ?? 0 >= 0.8 && scores["skills"]?.precision ?? 0 >= 0.9)
        for kind in ["languages", "education", "experience"] { #expect(scores[kind]?.recall ?? 0 >= 0.8, "\(kind)") }
    }

    /// Each finding is where it says it is.
    private func placesHold(_ resume: Resume, _ document: MediaDocument) {
        let text = Array(document.text.utf8)
        for finding in resume.emails + resume.phones where finding.place.length > 0 {
            let range = finding.place.offset..<finding.place.offset + finding.place.length
            let there = String(decoding: text[range], as: UTF8.self)
            #expect(there == finding.value || there.contains("(at)"))
        }
        let places =
            resume.skills.map(\.place) + resume.languages.map(\.place) + resume.education.map(\.place)
            + (resume.name.map { [$0.place] } ?? [])
        for place in places {
            #expect(place.length > 0 && place.offset + place.length <= text.count)
            #expect(document.pageOffsets[place.page - 1] <= place.offset)
            #expect(place.page == document.pageOffsets.count || document.pageOffsets[place.page] > place.offset)
        }
    }
}
