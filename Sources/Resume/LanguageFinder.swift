/// The languages a person speaks, and how well: where a CV lists them, or beside words that say how well.
struct LanguageFinder {
    private typealias Level = Resume.Language.Level

    /// Words after a language, and before it, among which its level is looked for.
    private static let wordsAfter = 5
    private static let wordsBefore = 3

    private static let names: [String: String] = {
        var names: [String: String] = [:]
        for line in LanguageData.names.split(whereSeparator: \.isNewline) {
            let parts = line.split(separator: " ").map(String.init)
            for name in parts.dropFirst() { names[Fold.key(name)] = parts[0] }
        }
        return names
    }()

    private static let levels: [String: Level] = {
        var levels: [String: Level] = [
            "a1": .basic, "a2": .basic, "b1": .intermediate, "b2": .advanced, "c1": .fluent, "c2": .fluent,
        ]
        for (level, words) in LanguageData.levels {
            for word in words.split(whereSeparator: \.isWhitespace) { levels[Fold.key(word)] = level }
        }
        return levels
    }()

    private let page: PageText

    init(_ page: PageText) { self.page = page }

    func find() -> [Resume.Language] {
        var found: [Resume.Language] = []
        for index in page.tokens.indices {
            guard found.count < Resume.languagesMax else { break }
            let token = page.tokens[index]
            guard let code = Self.names[token.key], !found.contains(where: { $0.code == code }) else { continue }
            let level = level(around: index)
            guard page.lines[token.line].section == .languages || level != nil && isNear(index) else { continue }
            guard !isOtherWord(index, code) else { continue }
            found.append(Resume.Language(code: code, level: level, place: page.place(token.range)))
        }
        return found
    }

    /// A name in Latin letters has a capital where it is not in a list: "thai" and "polish" are words of English. Of
    /// French and its sisters it has none.
    private func isOtherWord(_ index: Int, _ code: String) -> Bool {
        let token = page.tokens[index]
        guard page.lines[token.line].section != .languages, ["polish", "thai", "dari", "or"].contains(token.key) else {
            return false
        }
        return !PageText.scalar(page.bytes, at: token.range.lowerBound).scalar.properties.isUppercase
    }

    /// Outside of a list of languages: the level in the same line, within a few words.
    private func isNear(_ index: Int) -> Bool {
        level(in: index + 1..<min(index + 4, page.lines[page.tokens[index].line].tokens.upperBound)) != nil
            || level(in: max(index - Self.wordsBefore, page.lines[page.tokens[index].line].tokens.lowerBound)..<index)
                != nil
    }

    private func level(around index: Int) -> Level? {
        let line = page.lines[page.tokens[index].line]
        if let level = directlyBefore(index, line) { return level }
        let after = level(in: index + 1..<min(index + 1 + Self.wordsAfter, line.tokens.upperBound))
        if let after { return after }
        // "fluent English", if no other language stands between.
        if let before = level(in: max(index - Self.wordsBefore, line.tokens.lowerBound)..<index) { return before }
        // In columns the level may be the next line.
        let next = page.tokens[index].line + 1
        guard line.section == .languages, line.tokens.count == 1, next < page.lines.count else { return nil }
        let below = page.lines[next].tokens
        return level(in: below.prefix(3))
    }

    /// "fluent English", unless the word belongs to the language before it: "German fluent English".
    private func directlyBefore(_ index: Int, _ line: PageText.Line) -> Level? {
        guard index > line.tokens.lowerBound, page.gap(after: index - 1).elementsEqual(" ".utf8),
            let level = Self.levels[page.tokens[index - 1].key]
        else { return nil }
        let belongs = index - 1 > line.tokens.lowerBound && Self.names[page.tokens[index - 2].key] != nil
        return belongs ? nil : level
    }

    /// The first level in these words, up to the next language.
    private func level(in range: Range<Int>) -> Level? {
        guard range.lowerBound <= range.upperBound else { return nil }
        for index in range {
            let key = page.tokens[index].key
            if Self.names[key] != nil { return nil }
            if let level = Self.levels[key] { return level }
        }
        return nil
    }
}

enum LanguageData {
    /// A line each: ISO 639-1, then names in their own and other languages.
    static let names = """
        en English Englisch anglais inglés inglese Engels angielski angličtina engelska Engelsk englanti английский
        en inglês angol İngilizce engleză 英语 英語 anglicky angielskiego
        de German Deutsch allemand alemán tedesco Duits niemiecki němčina tyska Tysk saksa немецкий alemão német
        de Almanca germană 德语 Deutschkenntnisse německy
        fr French Französisch français francés francese Frans francuski francouzština franska Fransk ranska
        fr французский francês francia Fransızca franceză 法语
        es Spanish Spanisch espagnol español castellano spagnolo Spaans hiszpański španělština spanska Spansk
        es espanja испанский espanhol spanyol İspanyolca spaniolă 西班牙语
        it Italian Italienisch italien italiano Italiaans włoski italština italienska Italiensk italia итальянский
        it olasz İtalyanca italiană
        pt Portuguese Portugiesisch portugais portugués portoghese Portugees portugalski portugalština portugisiska
        pt португальский português
        nl Dutch Niederländisch néerlandais neerlandés holandés olandese Nederlands niderlandzki holenderski
        nl nizozemština nederländska нидерландский holandês
        pl Polish Polnisch polonais polaco polacco Pools polski polština polska Polsk польский polonês
        cs Czech Tschechisch tchèque checo ceco Tsjechisch czeski čeština česky чешский tcheco
        sk Slovak Slowakisch slovaque eslovaco slovacco słowacki slovenčina slovenština словацкий
        ru Russian Russisch russe ruso russo rosyjski ruština ryska venäjä русский Rusça 俄语
        uk Ukrainian Ukrainisch ukrainien ucraniano ucraino ukraiński ukrajinština украинский українська
        sv Swedish Schwedisch suédois sueco svedese Zweeds szwedzki švédština svenska ruotsi шведский
        da Danish Dänisch danois danés danese Deens duński dánština danska dansk
        no Norwegian Norwegisch norvégien noruego norvegese Noors norweski norština norska norsk
        fi Finnish Finnisch finnois finlandés finlandese Fins fiński finština finska suomi
        hu Hungarian Ungarisch hongrois húngaro ungherese Hongaars węgierski maďarština magyar
        ro Romanian Rumänisch roumain rumano rumeno Roemeens rumuński rumunština română
        bg Bulgarian Bulgarisch bulgare búlgaro bulgaro Bulgaars bułgarski български
        el Greek Griechisch grec griego greco Grieks grecki řečtina ελληνικά
        tr Turkish Türkisch turc turco Turks turecki turečtina Türkçe турецкий
        hr Croatian Kroatisch croate croata Kroaatisch chorwacki hrvatski
        sr Serbian Serbisch serbe serbio serbo serbski srpski
        sl Slovenian Slowenisch slovène esloveno sloveno słoweński slovenščina
        ar Arabic Arabisch arabe árabe arabo arabski arabština العربية арабский
        he Hebrew Hebräisch hébreu hebreo ebraico Hebreeuws hebrajski עברית
        fa Persian Persisch persan persa persiano farsi perski فارسی
        hi Hindi hindi हिन्दी
        ur Urdu Ourdou اردو
        bn Bengali Bangla বাংলা
        pa Punjabi Pendjabi
        ta Tamil தமிழ்
        te Telugu
        mr Marathi
        zh Chinese Chinesisch chinois chino cinese Chinees chiński čínština Mandarin mandarín kinesiska китайский 中文
        zh 汉语 普通话 Cantonese
        ja Japanese Japanisch japonais japonés giapponese Japans japoński japonština японский 日本語
        ko Korean Koreanisch coréen coreano Koreaans koreański 한국어
        vi Vietnamese Vietnamesisch vietnamien vietnamita wietnamski
        th Thai Thailändisch thaï tailandés
        id Indonesian Indonesisch indonésien indonesio
        ca Catalan Katalanisch catalán catalano català
        eu Basque Baskisch euskara euskera vasco
        gl Galician Galicisch gallego galego
        lt Lithuanian Litauisch lituanien lituano litewski lietuvių
        lv Latvian Lettisch letton letón łotewski latviešu
        et Estonian Estnisch estonien estonio estoński eesti
        ga Irish Gaeilge
        sw Swahili Suaheli Kiswahili
        sq Albanian Albanisch albanais albanés shqip
        la Latin Latein latín
        """

    /// Words that say how well, in the languages of the CVs we read.
    static let levels: [(Resume.Language.Level, String)] = [
        (
            .native,
            """
            native mother bilingual muttersprache muttersprachler muttersprachlich muttersprachlerin maternelle bilingue
            nativo nativa materna madrelingua moedertaal ojczysty rodný mateřský modersmål родной anadil 母语
            materno bilingüe рідна
            """
        ),
        (
            .fluent,
            """
            fluent fluently proficient proficiency fließend fliessend verhandlungssicher courant couramment fluide
            fluido fluida fluente ottimo vloeiend biegły biegle płynny płynnie
            plynně flytande свободно excellent 流利 fluency
            """
        ),
        (
            .advanced,
            """
            advanced fortgeschritten gut good avancé avanzado avanzato alto buono goed zaawansowany pokročilý avançado
            upper professional sehr avanzada
            """
        ),
        (
            .intermediate,
            """
            intermediate mittel moyen intermédiaire intermedio intermedia gemiddeld średniozaawansowany komunikatywny
            medio средний conversational intermediário
            """
        ),
        (
            .basic,
            """
            basic basics beginner elementary grundkenntnisse notions débutant básico básica base scolastico scolaire
            basis podstawowy základní grundläggande базовый начальный schulkenntnisse anfänger
            """
        ),
    ]
}
