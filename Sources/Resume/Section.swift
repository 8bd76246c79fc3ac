/// What a part of a CV is about, by its heading.
enum Section: Sendable, Equatable {
    case none, experience, education, skills, languages
    /// Of no use here: interests, references, projects, publications.
    case other
}

/// Follows the headings of a CV from line to line.
struct SectionReader {
    /// Words of a heading at most.
    private static let headingWordsMax = 6

    private var block = Section.none
    /// Of "Skills: Swift, Go", which holds until the next line of its kind.
    private var inline: Section?

    mutating func take(_ line: PageText.Line, of page: PageText) -> Section {
        let words = page.words(line)
        guard !words.isEmpty else {
            inline = nil
            return block
        }
        if let heading = Self.heading(words.map(\.key)) {
            (block, inline) = (heading, nil)
            return heading
        }
        // The label and its colon come first in the line.
        for (count, index) in words.indices.prefix(Self.headingWordsMax).enumerated() {
            guard page.gap(after: index).first(where: { $0 > 32 }) == UInt8(ascii: ":") else { continue }
            inline = Self.heading(words.prefix(count + 1).map(\.key))
            break
        }
        return inline ?? block
    }

    private static func heading(_ keys: [String]) -> Section? {
        guard keys.count <= headingWordsMax || keys.allSatisfy({ $0.unicodeScalars.count == 1 }) else { return nil }
        if let section = headings[keys.joined(separator: " ")] { return section }
        // E X P E R I E N C E
        let joined = keys.joined()
        guard keys.count > 3, keys.allSatisfy({ $0.unicodeScalars.count == 1 }) else { return nil }
        return spacedHeadings[joined]
    }

    private static let headings: [String: Section] = {
        var found: [String: Section] = [:]
        for (section, text) in list {
            for heading in text.split(whereSeparator: { $0 == "," || $0.isNewline }) {
                let words = heading.split(separator: " ").map { Fold.key($0) }
                if !words.isEmpty { found[words.joined(separator: " ")] = section }
            }
        }
        return found
    }()

    private static let spacedHeadings: [String: Section] = Dictionary(
        headings.map { ($0.key.filter { $0 != " " }, $0.value) }
    ) { first, _ in first }

    private static let list: [(Section, String)] = [
        (
            .experience,
            """
            experience, work experience, professional experience, employment, employment history, work history
            career history, career, career summary, relevant experience, professional background, positions held
            experience and projects, work, professional history, selected experience, industry experience
            berufserfahrung, beruflicher werdegang, berufspraxis, praxiserfahrung, arbeitserfahrung, werdegang
            beruflicher hintergrund, berufliche erfahrung, berufliche stationen, tätigkeiten
            expérience, expériences, expérience professionnelle, expériences professionnelles, parcours professionnel
            parcours, experiencia, experiencia laboral, experiencia profesional, trayectoria profesional
            esperienza, esperienze, esperienza lavorativa, esperienze lavorative, esperienza professionale
            esperienze professionali, experiência, experiência profissional, histórico profissional
            werkervaring, ervaring, arbeidsverleden, doświadczenie, doświadczenie zawodowe, przebieg kariery
            pracovní zkušenosti, praxe, zkušenosti, arbetslivserfarenhet, erfarenhet, erhvervserfaring
            arbeidserfaring, työkokemus, опыт работы, опыт, досвід роботи, iş deneyimi, deneyim, radno iskustvo
            experiență profesională, experiență, munkatapasztalat, szakmai tapasztalat, εργασιακή εμπειρία
            工作经历, 工作经验, 職歴, 職務経歴
            """
        ),
        (
            .education,
            """
            education, education and training, academic background, qualifications, academic qualifications, studies
            education and qualifications, academic history, education and certifications, certificates, certifications
            ausbildung, bildung, bildungsweg, studium, schulbildung, akademische ausbildung, ausbildung und studium
            aus und weiterbildung, bildungsgang, schule, weiterbildung, abschlüsse
            formation, formations, études, diplômes, formation et diplômes, cursus, parcours académique
            educación, formación, formación académica, estudios, educación y formación
            istruzione, formazione, istruzione e formazione, titoli di studio, educação, formação
            formação acadêmica, formação académica, opleiding, opleidingen, wykształcenie, edukacja, vzdělání
            vzdělávání, utbildning, uddannelse, utdanning, koulutus, образование, освіта, eğitim, obrazovanje
            educație, studii, tanulmányok, végzettség, εκπαίδευση, 教育背景, 教育经历, 学歴
            """
        ),
        (
            .skills,
            """
            skills, technical skills, key skills, core skills, skills and tools, core competencies, competencies
            technologies, tools, tools and technologies, tech stack, stack, technical expertise, expertise
            programming languages, areas of expertise, skills and technologies, skills summary, professional skills
            software, hard skills, it skills, computer skills, strengths, technical proficiencies, skills and interests
            kenntnisse, fähigkeiten, it kenntnisse, edv kenntnisse, fachkenntnisse, kompetenzen, technologien
            programmiersprachen, kenntnisse und fähigkeiten, besondere kenntnisse, edv, it, fachliche kompetenzen
            compétences, compétences techniques, compétences clés, informatique, outils, savoir faire
            competencias, habilidades, conocimientos, aptitudes, habilidades técnicas, conocimientos técnicos
            informática, competenze, capacità, competenze tecniche, competenze informatiche, conoscenze informatiche
            competências, vaardigheden, competenties, umiejętności, umiejętności techniczne, dovednosti, znalosti
            kompetenser, färdigheter, kompetencer, ferdigheter, taidot, навыки, ключевые навыки, навички
            yetenekler, beceriler, vještine, competențe, készségek, δεξιότητες, 技能, 专业技能, スキル
            """
        ),
        (
            .languages,
            """
            languages, language skills, language, foreign languages, spoken languages, languages spoken
            sprachen, sprachkenntnisse, fremdsprachen, langues, langues étrangères, langues parlées
            idiomas, lenguas, lingue, lingue straniere, conoscenze linguistiche, línguas, talen, talenkennis
            języki, języki obce, znajomość języków, jazyky, jazykové znalosti, språk, sprog, kielitaito, kielet
            языки, знание языков, мови, diller, yabancı dil, jezici, limbi, limbi străine, nyelvtudás, nyelvek
            γλώσσες, 语言, 语言能力, 語学
            """
        ),
        (
            .other,
            """
            projects, personal projects, publications, references, interests, hobbies, awards, honors, volunteering
            volunteer experience, summary, profile, about me, about, objective, contact, contact details
            personal details, personal information, selected projects, patents, achievements, extracurricular activities
            projekte, referenzen, hobbys, interessen, ehrenamt, profil, persönliche daten, persönliches, kontakt
            veröffentlichungen, auszeichnungen, kurzprofil, über mich, hobbies und interessen
            projets, références, loisirs, centres d intérêt, profil professionnel, coordonnées, bénévolat, à propos
            proyectos, referencias, aficiones, intereses, perfil, contacto, datos personales, sobre mí, publicaciones
            progetti, referenze, interessi, profilo, contatti, dati personali, hobby, projetos, referências
            interesses, contato, dados pessoais, objetivo, projecten, referenties, interesses, profiel
            projekty, referencje, zainteresowania, podsumowanie, o mnie, dane osobowe, kontakt, zájmy, reference
            """
        ),
    ]
}
