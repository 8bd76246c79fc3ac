import Foundation
import SafeHTML

/// A row of the usajobs.gov archive. It has facts only; the description is written from them.
enum USAJobs {
    static func posting(_ fields: RecordFields) throws(RecordFields.Mistake) -> SourcePosting {
        let title = try fields.required("position_title")
        let department = try fields.text("department")
        let agency = try fields.text("agency")
        let subagency = try fields.text("subagency")
        let appointment = try fields.text("appointment_type")
        let opens = try fields.date("open_date")
        let closes = try fields.date("close_date")
        let url = try fields.text("usajobs_url")

        var employer: [String] = []
        for part in [subagency, agency, department] where !part.isEmpty && !employer.contains(part) {
            employer.append(part)
        }
        var html = SourceHTML.paragraph(employer.joined(separator: ", "))
        let series = try fields.texts("occupation_series")
        if !series.isEmpty {
            html += "<p>Occupational series:</p>" + SourceHTML.list(series)
        }
        let paths = try fields.texts("hiring_paths")
        if !paths.isEmpty { html += "<p>Open to:</p>" + SourceHTML.list(paths) }
        var facts: [String] = []
        if !appointment.isEmpty { facts.append("Appointment: \(appointment).") }
        let opened = try fields.text("open_date")
        let closed = try fields.text("close_date")
        if opens != nil, closes != nil { facts.append("Open from \(opened) to \(closed).") }
        html += SourceHTML.paragraph(facts.joined(separator: " "))
        if !url.isEmpty { html += "<p><a href=\"\(SafeHTML.escaped(url))\">The announcement on USAJOBS</a></p>" }

        return SourcePosting(
            source: "usajobs", externalID: try fields.key("control_number"),
            company: agency.isEmpty ? department : agency, title: title,
            description: try SourceHTML.safe(html, field: "the description"), employmentType: appointment,
            applyURL: url, publishedAt: opens,
            // They close at the end of the day in Washington: at five the next morning UTC, at last.
            closesAt: closes?.addingTimeInterval(29 * 3600))
    }
}
