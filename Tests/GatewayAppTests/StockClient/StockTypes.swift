/// What the stock app decodes (contracts: 01 §2), with the strictness of its types: one missing key or null fails the
/// whole answer. Names and optionality are the wire's.
enum Stock {
    struct SignedIn: Decodable {
        let jwt: String
        let user: Person
    }

    struct Person: Decodable, Equatable {
        let id: Int
        let username: String
        let email: String
        let first_name: String
        let last_name: String
        let phone_number: String
    }

    struct Me: Decodable {
        struct Role: Decodable {
            let name: String
            let description: String
        }

        let id: Int
        let username: String
        let email: String
        let first_name: String
        let last_name: String
        let phone_number: String
        let role: Role
    }

    /// The answer to a company's form. A logo may be absent or null; one that is there needs all five.
    struct SavedCompany: Decodable {
        struct Logo: Decodable {
            let url: String
            let thumbnail: String
            let small: String
            let medium: String
            let large: String
        }

        let id: Int
        let name: String
        let phone: String
        let email: String
        let address: String
        let category: String
        let bio: String
        let logo: Logo?
    }

    struct File: Decodable {
        let id: Int
        let url: String
    }

    struct OwnCompany: Decodable {
        let id: Int
        let email: String
        let name: String
        let address: String
        let category: String
        let bio: String
        let logo: File
    }

    // MARK: The public list, in Strapi's envelopes

    struct Listed: Decodable { let data: [Entry<Posting>] }

    struct Entry<Attributes: Decodable>: Decodable {
        let id: Int
        let attributes: Attributes
    }

    struct One<Value: Decodable>: Decodable { let data: Value }
    struct Unnumbered<Attributes: Decodable>: Decodable { let attributes: Attributes }

    struct Posting: Decodable {
        let name: String
        let description: String
        let type: String
        let environment: String
        let status: String
        let company: One<Entry<Company>>
    }

    struct Company: Decodable {
        let address: String
        let bio: String
        let category: String
        let email: String
        let name: String
        let phone: String
        let logo: One<Unnumbered<Logo>>
    }

    struct Logo: Decodable {
        struct Format: Decodable { let url: String }

        struct Formats: Decodable {
            let thumbnail: Format
            let small: Format
            let medium: Format
            let large: Format
        }

        let url: String
        let formats: Formats
    }

    // MARK: Flat lists

    struct OwnPosting: Decodable {
        struct Application: Decodable {
            let id: Int
            let status: String
            let cv: File
            let applicant: Person
        }

        let id: Int
        let name: String
        let status: String
        let type: String
        let description: String
        let environment: String
        let applications: [Application]
    }

    struct OwnApplication: Decodable {
        struct Posting: Decodable {
            let id: Int
            let name: String
            let status: String
            let environment: String
            let type: String
            let description: String
            let company: OwnCompany
        }

        let id: Int
        let status: String
        let cv: File
        let job: Posting
    }
}
