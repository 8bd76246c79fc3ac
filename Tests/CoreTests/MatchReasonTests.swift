import Testing

@testable import Core

@Suite struct MatchReasonTests {
    @Test("a reason names what the person asked for")
    func text() throws {
        let place = try PostingSearch.Place(center: Coordinate(latitude: 52.5, longitude: 13.4), radiusKm: 50)
        let search = try PostingSearch(
            q: "swift -php", kind: .fullTime, remote: .remote, salaryAtLeast: 60000, companyID: .init(1), place: place)
        let reason = MatchReason(search: search, wordsFound: ["swift"], distanceKm: 12.4, company: "ACME")
        #expect(
            reason.text
                == "it has “swift”; 12 km from your place (within 50 km); remote; full time; "
                + "at least 60,000 a year; from ACME"
        )
    }

    @Test("a search whose words are not found one by one is named whole; an empty one is not named")
    func fallback() throws {
        let phrase = try PostingSearch(q: "node js", placeName: "Berlin")
        #expect(
            MatchReason(search: phrase, wordsFound: [], distanceKm: nil, company: "").text
                == "it matches “node js”; in Berlin")
        let remote = try PostingSearch(remote: .hybrid, salaryAtLeast: 0)
        #expect(MatchReason(search: remote, wordsFound: [], distanceKm: nil, company: "").text == "partly remote")
    }
}
