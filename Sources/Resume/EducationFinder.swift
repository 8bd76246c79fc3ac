/// Degrees and schools: the lines that name one.
struct EducationFinder {
    private typealias Level = Resume.Education.Level

    /// Words of degrees, as keys. `sure` ones count everywhere; the others, which are also words of work, licences and
    /// courses, only in the part of the CV that is about education.
    private struct Degree {
        let keys: [String]
        let level: Level
        let isSure: Bool
    }

    private static let degrees: [String: [Degree]] = {
        var found: [String: [Degree]] = [:]
        for (level, isSure, text) in list {
            for name in text.split(whereSeparator: { $0 == "," || $0.isNewline }) {
                let keys = Fold.keys(String(name))
                guard let first = keys.first else { continue }
                found[first, default: []].append(Degree(keys: keys, level: level, isSure: isSure))
            }
        }
        return found.mapValues { $0.sorted { $0.keys.count > $1.keys.count } }
    }()

    private static let list: [(Level, Bool, String)] = [
        (
            .doctorate, true,
            """
            phd, ph d, dphil, doctorate, doctor of philosophy, doctor of medicine, dr rer nat, dr ing, dr phil, dr med
            doctorat, doctorado, dottorato, dottorato di ricerca, doutorado, doutoramento, doktorat, ph d student
            """
        ),
        (.doctorate, false, "doctor, promotion, dr, doktor, md, docteur, candidate of sciences, кандидат наук"),
        (
            .master, true,
            """
            msc, m sc, mba, meng, m eng, mphil, m phil, master of science, master of arts, master of engineering
            master of business administration, master of laws, llm, diplom ingenieur, dipl ing, diplom informatiker
            dipl inf, dipl kfm, magister artium, laurea magistrale, laurea specialistica, master en
            master universitario, diplôme d ingénieur, m ed, m a, mestrado
            master s degree, masters degree, masterstudium, m tech, mgr inż
            """
        ),
        (
            .master, false,
            """
            master, masters, magister, diplom, staatsexamen, ma, ms, mestre, ingénieur, ingeniero, mgr, maîtrise, dea
            dess, máster, магистр, специалист, 硕士, 修士, inżynier, mgr
            """
        ),
        (
            .bachelor, true,
            """
            bsc, b sc, beng, b eng, bba, b tech, btech, bachelor of science, bachelor of arts, bachelor of engineering
            bachelor of laws, llb, bachelor of commerce, bcom, laurea triennale, licenciatura, bacharelado
            bachelor s degree, bachelors degree, bachelorstudium, b ed, b a, grado en, licencjat, bachelor of business
            bachelor of nursing, bachelor of education
            """
        ),
        (
            .bachelor, false,
            """
            bachelor, bachelors, licence, grado, laurea, licenciado, licenciada, ba, bs, bacharel, undergraduate degree
            бакалавр, 本科, 学士, bakalář, bc, kandidatexamen, degree, graduado, graduada, licenciatura em
            """
        ),
        (
            .vocational, true,
            """
            associate degree, fachinformatiker, fachinformatikerin, bts, dut, formación profesional, ciclo formativo
            hnd, higher national diploma, nvq, staatlich geprüfte, staatlich geprüfter, mbo, cap cuisine, bac pro
            industriekaufmann, industriekauffrau, ausbildung zum, ausbildung zur, hbo, grado superior, grado medio
            """
        ),
        (
            .vocational, false,
            """
            ausbildung, lehre, apprenticeship, apprentice, diploma, trade certificate, journeyman, meister, meisterin
            meisterprüfung, gesellenprüfung, but, cap, bep, technik, technikum, kaufmann, kauffrau, fachhochschulreife
            """
        ),
        (
            .school, true,
            """
            abitur, high school diploma, baccalauréat, bachillerato, a levels, gcse, maturita, matura
            secondary school, leaving certificate, diploma di maturità, allgemeine hochschulreife, mittlere reife
            realschulabschluss, vwo, havo, liceum, ensino médio
            """
        ),
        (.school, false, "high school, gymnasium, lycée, liceo, bac, ged, instituto, realschule, school certificate"),
    ]

    private let page: PageText

    init(_ page: PageText) { self.page = page }

    func find() -> [Resume.Education] {
        var found: [Resume.Education] = []
        for line in page.lines where !line.tokens.isEmpty {
            guard found.count < Resume.educationMax else { break }
            guard let level = level(of: line) else { continue }
            let range = page.trimmed(line.range)
            let value = page.text(range)
            guard !found.contains(where: { $0.value == value }) else { continue }
            found.append(Resume.Education(level: level, value: value, place: page.place(range)))
        }
        return found
    }

    /// The words of a line that is about a degree at most; a longer one is a sentence.
    private static let lineWordsMax = 30

    private func level(of line: PageText.Line) -> Level? {
        guard line.tokens.count <= Self.lineWordsMax else { return nil }
        for index in line.tokens {
            for degree in Self.degrees[page.tokens[index].key] ?? [] {
                guard degree.isSure || line.section == .education,
                    index + degree.keys.count <= line.tokens.upperBound,
                    SkillList.stands(degree.keys, at: index, of: page), !isHeading(line, degree)
                else { continue }
                // "B.A." and not "b a"; "MBA" and not a name.
                let initial = PageText.scalar(page.bytes, at: page.tokens[index].range.lowerBound).scalar
                guard
                    degree.keys.contains(where: { $0.utf8.count > 3 }) || degree.keys[0] == "mgr"
                        || initial.properties.isUppercase || !initial.properties.isCased
                else { continue }
                return degree.level
            }
        }
        return nil
    }

    /// "Ausbildung" above what was learned.
    private func isHeading(_ line: PageText.Line, _ degree: Degree) -> Bool {
        line.tokens.count == degree.keys.count && !degree.isSure
    }
}
