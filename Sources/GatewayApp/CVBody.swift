import Core
import JSON
import Resume

/// What was read in a CV, on the wire: each finding with its page, from 1, and its place in the UTF-8 of the text.
enum CVBody {
    static func writeState(of cv: CVReading, to json: inout JSONWriter) {
        json.field("state", cv.state.rawValue)
        json.field("advice", orNull: advice(cv))
        json.field("scanned", cv.note == "scan" || cv.note == "scan_cut")
    }

    /// What its owner can do about a CV that says nothing, or not everything.
    private static func advice(_ cv: CVReading) -> String? {
        switch (cv.state, cv.note) {
        case (.rejected, _): cv.rejectionMessage
        case (.pending, _): "The CV is still being read. Ask again in a moment."
        case (.ready, "no_text"?):
            "The CV has no text, only pictures, such as a scan. People can read it, programs cannot: send one that was "
                + "saved as PDF or DOCX by a word processor."
        case (.ready, "scan"?): "The CV is a scan. " + scanned
        case (.ready, "scan_cut"?): "The CV is a scan, of which only the first pages were read. " + scanned
        case (.ready, "text_cut"?): "The CV is very long: only its beginning was read."
        case (.ready, _): nil
        }
    }

    private static let scanned =
        "Its text was read from pictures and may have mistakes: better send one that was saved as PDF or DOCX by a "
        + "word processor."

    static func write(_ resume: Resume, to json: inout JSONWriter) {
        if let name = resume.name {
            json.object("name") { write(name, to: &$0) }
        } else {
            json.nullField("name")
        }
        json.array("emails", resume.emails) { json, finding in json.object { write(finding, to: &$0) } }
        json.array("phones", resume.phones) { json, finding in json.object { write(finding, to: &$0) } }
        json.array("links", resume.links) { json, finding in json.object { write(finding, to: &$0) } }
        json.array("skills", resume.skills) { json, finding in json.object { write(finding, to: &$0) } }
        if let experience = resume.experience {
            json.object("experience") { json in
                json.field("years", experience.years)
                json.field("basis", experience.basis.rawValue)
                write(experience.place, to: &json)
            }
        } else {
            json.nullField("experience")
        }
        json.array("education", resume.education) { json, education in
            json.object { json in
                json.field("level", education.level.rawValue)
                json.field("value", education.value)
                write(education.place, to: &json)
            }
        }
        json.array("languages", resume.languages) { json, language in
            json.object { json in
                json.field("code", language.code)
                json.field("level", orNull: language.level?.rawValue)
                write(language.place, to: &json)
            }
        }
    }

    static func write(_ result: TermFinder.Result, isRequired: Bool, to json: inout JSONWriter) {
        json.field("term", result.term)
        json.field("required", isRequired)
        json.field("found", !result.places.isEmpty)
        json.array("places", result.places) { json, place in
            json.object { json in
                write(place.place, to: &json)
                json.field("excerpt", place.excerpt)
            }
        }
    }

    private static func write(_ finding: Resume.Finding, to json: inout JSONWriter) {
        json.field("value", finding.value)
        write(finding.place, to: &json)
    }

    private static func write(_ place: Resume.Place, to json: inout JSONWriter) {
        json.field("page", place.page)
        json.field("offset", place.offset)
        json.field("length", place.length)
    }
}
