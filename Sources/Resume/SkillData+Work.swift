/// Skills of all kinds of work beside that with computers.
extension SkillData {
    static let business = """
        Microsoft Office | ms office, office 365, microsoft 365, ms office suite
        Excel | microsoft excel, ms excel | case
        Word | microsoft word, ms word | case list
        PowerPoint | microsoft powerpoint, power point
        Outlook | microsoft outlook | case list
        Access | microsoft access, ms access | case list
        SharePoint |
        Google Workspace | g suite, google docs, google sheets
        SAP | sap erp, sap r/3, sap s/4hana, sap fi, sap mm, sap sd | case
        Salesforce |
        HubSpot |
        Dynamics 365 | microsoft dynamics
        Zendesk |
        DATEV |
        Lexware |
        Sage | | case list
        QuickBooks |
        Xero | | case list
        ERP | enterprise resource planning | case
        CRM | customer relationship management | case
        Project Management | projektmanagement, projektleitung, gestion de projet, gestión de proyectos
        | gestione progetti, gestão de projetos, zarządzanie projektami, projectmanagement
        PMP | | case
        PRINCE2 |
        MS Project | microsoft project
        Product Management | produktmanagement
        Change Management |
        Risk Management | risikomanagement, gestion des risques
        Quality Management | qualitätsmanagement, iso 9001
        Lean Management | lean manufacturing, lean production
        Six Sigma |
        Process Improvement | prozessoptimierung
        Supply Chain Management | supply chain
        Logistics | logistik, logistique, logística
        Procurement | einkauf, purchasing, achats
        Inventory Management | bestandsverwaltung, gestion des stocks, stock control
        Accounting | buchhaltung, finanzbuchhaltung, comptabilité, contabilidad
        | contabilità, księgowość, boekhouding, contabilidade
        Bookkeeping |
        Financial Analysis | finanzanalyse
        Financial Modeling | financial modelling
        Budgeting | budgetplanung
        Controlling |
        Auditing | wirtschaftsprüfung
        Payroll | lohnbuchhaltung, lohnabrechnung, gehaltsabrechnung, paie, nóminas
        Taxation | steuerrecht, tax law
        IFRS |
        US GAAP | gaap
        Accounts Payable | kreditorenbuchhaltung
        Accounts Receivable | debitorenbuchhaltung
        Investment Banking |
        Sales | vertrieb, ventas, vendite, sprzedaż | list
        Business Development |
        Key Account Management | key account
        Negotiation | verhandlung, négociation, negociación, verhandlungsführung
        Customer Service | kundenservice, kundenbetreuung, service client, atención al cliente
        | servizio clienti, obsługa klienta, atendimento ao cliente, klantenservice, customer support
        Cold Calling | telefonakquise
        Retail | einzelhandel | list
        Marketing | | list
        Digital Marketing | online marketing, marketing digital
        Content Marketing |
        Social Media | social media marketing, redes sociales, réseaux sociaux
        SEO | search engine optimization, suchmaschinenoptimierung, référencement | case
        SEA | google ads, adwords | case
        Google Analytics |
        Email Marketing | e mail marketing, mailchimp
        Copywriting |
        Public Relations | öffentlichkeitsarbeit, relations presse
        Market Research | marktforschung, étude de marché
        Event Management | eventmanagement, veranstaltungsplanung, événementiel
        Human Resources | personalwesen, ressources humaines, recursos humanos, risorse umane
        Recruiting | recruitment, personalbeschaffung, talent acquisition, recrutement
        Employee Relations |
        Training and Development | personalentwicklung
        Labour Law | arbeitsrecht, employment law, droit du travail
        Contract Law | vertragsrecht
        Compliance | | list
        GDPR | dsgvo, rgpd
        Legal Research |
        Translation | übersetzung, traduction, traducción, traduzione
        Interpreting | dolmetschen
        Editing | lektorat | list
        Journalism | journalismus, journalisme
        Leadership | führungskompetenz, mitarbeiterführung, personalführung
        Teamwork | teamfähigkeit, travail en équipe, trabajo en equipo, lavoro di squadra
        Communication | kommunikation, kommunikationsfähigkeit, comunicación | list
        Presentation Skills | präsentation
        Public Speaking |
        Problem Solving | problemlösung, resolución de problemas
        Time Management | zeitmanagement
        Data Entry | dateneingabe, saisie de données
        Office Administration | büroorganisation, secretariat
        """

    static let trades = """
        Nursing | krankenpflege, pflege, soins infirmiers, enfermería
        Patient Care | patientenversorgung, patientenbetreuung, soins aux patients
        First Aid | erste hilfe, premiers secours, primeros auxilios, primo soccorso, pierwsza pomoc
        CPR | bls, acls | case
        Wound Care | wundversorgung
        Elderly Care | altenpflege, geriatrics
        Phlebotomy |
        Medical Coding | icd 10
        Electronic Health Records | ehr, emr
        Pharmacology | pharmakologie
        Physiotherapy | physiotherapie, physical therapy
        Radiology | radiologie
        Laboratory Techniques | pcr, hplc, laborarbeit
        Clinical Trials | klinische studien, gcp guidelines
        Childcare | kinderbetreuung, garde d enfants
        Teaching | unterrichten, enseignement, docencia | list
        Lesson Planning | unterrichtsplanung
        Curriculum Development |
        Classroom Management |
        Special Education | sonderpädagogik
        Tutoring | nachhilfe
        Social Work | sozialarbeit
        Counselling | counseling
        Welding | schweißen, soudure, soldadura, mig welding, tig welding
        CNC | cnc machining, cnc programming, fräsen | case
        Machining | zerspanung
        Carpentry | tischlerei, menuiserie, carpintería
        Plumbing | sanitärinstallation, plomberie, fontanería
        Electrical Installation | elektroinstallation, électricité, instalaciones eléctricas
        HVAC |
        Masonry | maurerarbeiten
        Painting | malerarbeiten | list
        Blueprint Reading | technisches zeichnen, technical drawing
        Automotive Repair | kfz mechatronik, mécanique automobile, vehicle maintenance
        Diagnostics | fehlerdiagnose | list
        Preventive Maintenance | instandhaltung, maintenance préventive, mantenimiento preventivo
        Forklift Operation | forklift, gabelstapler, staplerschein, cariste, carretillero, wózek widłowy
        Warehouse Management | lagerverwaltung, lagerlogistik, warehouse operations
        Order Picking | kommissionierung
        Truck Driving | lkw führerschein, cdl, permis c, hgv
        Driving Licence B | driver's license, führerschein klasse b, permis b
        | carné de conducir, patente b, rijbewijs b, prawo jazdy kat b
        Route Planning | tourenplanung
        Occupational Safety | arbeitssicherheit, osha, health and safety, sécurité au travail, prevención de riesgos
        Cooking | kochen | list
        Food Safety | haccp, lebensmittelhygiene, hygiène alimentaire, higiene alimentaria
        Menu Planning | menüplanung
        Pastry | pâtisserie, repostería
        Barista | | case
        Bartending | mixologie
        Waiting Tables | service en salle, table service
        Housekeeping |
        Front Desk | rezeption, front office, réception
        Opera PMS | fidelio
        Cash Handling | kassenführung, caisse, caja
        Point of Sale | pos systems
        Merchandising | warenpräsentation
        Gardening | gartenbau, landscaping, jardinage
        Cleaning | gebäudereinigung, nettoyage | list
        Security Services | sicherheitsdienst
        Civil Engineering | bauingenieurwesen, génie civil
        Structural Engineering | tragwerksplanung, statik
        Mechanical Engineering | maschinenbau, génie mécanique
        Electrical Engineering | elektrotechnik, génie électrique
        Process Engineering | verfahrenstechnik
        Construction Management | bauleitung, site management
        Surveying | vermessung, topographie
        Sustainability | nachhaltigkeit | list
        Renewable Energy | erneuerbare energien, photovoltaik
        Agriculture | landwirtschaft
        Animal Care | tierpflege
        Hairdressing | friseurhandwerk, coiffure
        Sewing | nähen, couture
        """
}
