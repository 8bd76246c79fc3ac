import Core
import CorePostgres
import Foundation
import Postgres
import TestSupport

/// A small board with something of everything: drafts, closed and expired postings, companies without logo or
/// members, applications of several people, rooms, texts that LIKE or a parser could stumble over, times that are
/// microseconds apart.
enum EntryWorld {
    /// When it is, for everyone who asks.
    static let now = Date(timeIntervalSince1970: 1_780_000_000)

    static let jane = User.ID(1)
    static let rick = User.ID(2)
    static let bob = User.ID(3)
    static let ann = User.ID(4)
    static let al = User.ID(5)
    static let zoe = User.ID(6)

    /// Who represents what: jane and rick the first company, bob the second, nobody the others.
    static let companies: [User.ID: Company.ID] = [jane: Company.ID(1), rick: Company.ID(1), bob: Company.ID(2)]
    static let representatives: [Company.ID: User.ID] = [Company.ID(1): jane, Company.ID(2): bob]
    /// Members of rooms: ann with the first company, al with the second.
    static let rooms: [[User.ID]] = [[jane, ann], [bob, al]]
    static let viewers: [User.ID?] = [nil, jane, rick, bob, ann, al, zoe, User.ID(noSuchID)]

    static func fill(_ database: TestDatabase) async throws { try await database.run(people + work) }

    private static let people = #"""
        INSERT INTO users (username, email, first_name, last_name, phone_number, blocked) VALUES
          ('jane', 'jane@acme.example', 'Jane', 'Doe', '1', false),
          ('rick', 'rick@acme.example', 'Rick', '', '', false),
          ('bob', 'bob@beta.example', 'Bob', 'O''Neil', '+49 30', false),
          ('ann', 'ann@example.org', 'Ann', 'Écluse', '', false),
          ('al_50%', 'al@example.org', 'Al', 'a\b', '', true), ('zoe', 'zoe@example.org', '', '', '', false);
        INSERT INTO media (owner_id, kind, state, name, mime, ext, hash, bytes, sha256, storage_key, width, height,
                           created_at) VALUES
          (1, 'logo', 'ready', 'acme.png', 'image/png', '.png', 'acme_1', 12345, '', 'k1', 400, 300,
            '2026-01-01 10:00:00.123456+00'),
          (3, 'logo', 'pending', 'beta.png', NULL, NULL, 'beta_1', 5, '', 'k2', NULL, NULL,
            '2026-01-01 10:00:00.123999+00'),
          (4, 'cv', 'ready', 'Ann.pdf', 'application/pdf', '.pdf', 'ann_1', 1000, '', 'k3', NULL, NULL, '2026-01-02'),
          (4, 'cv', 'ready', 'ann2.pdf', 'application/pdf', '.pdf', 'ann_2', 1004, '', 'k4', NULL, NULL,
            '2026-01-03'),
          (5, 'cv', 'ready', 'al.pdf', 'application/pdf', '.pdf', 'al_1', 1005, '', 'k5', NULL, NULL, '2026-01-04'),
          (5, 'cv', 'rejected', 'AL%.pdf', NULL, NULL, 'al_2', 0, '', 'k6', NULL, NULL, '2026-01-05'),
          (4, 'profile', 'ready', 'ann.jpg', 'image/jpeg', '.jpg', 'ann_p', 99994, '', 'k7', 100, 100, '2026-01-06'),
          (6, 'profile', 'ready', 'zoe.jpg', 'image/jpeg', '.jpg', 'zoe_p', 99995, '', 'k8', 100, 200, '2026-01-07'),
          (1, 'profile', 'ready', 'jane.jpg', 'image/jpeg', '.jpg', 'jane_p', 7, '', 'k9', 3, 4, '2026-01-08'),
          (4, 'attachment', 'ready', 'note.txt', 'text/plain', '.txt', 'note_1', 70, '', 'k10', NULL, NULL,
            '2026-01-09'),
          (6, 'attachment', 'ready', 'lost.txt', 'text/plain', '.txt', 'lost_1', 71, '', 'k11', NULL, NULL,
            '2026-01-10'),
          (5, 'cv', 'ready', 'unused.pdf', 'application/pdf', '.pdf', 'al_3', 72, '', 'k12', NULL, NULL,
            '2026-01-11');
        INSERT INTO media_variants (media_id, name, storage_key, hash, mime, ext, bytes, width, height) VALUES
          (7, 'upright', 'v7', 'upright_ann_p', 'image/jpeg', '.jpg', 70, 100, 100),
          (8, 'thumbnail', 'v8', 'thumbnail_zoe_p', 'image/jpeg', '.jpg', 5, 50, 100);
        UPDATE users SET profile_media_id = 7 WHERE id = 4;
        UPDATE users SET profile_media_id = 8 WHERE id = 6;
        UPDATE users SET profile_media_id = 9 WHERE id = 1;
        INSERT INTO companies (name, email, category, bio, logo_media_id, created_at) VALUES
          ('Acme', 'hi@acme.example', 'Technology', 'We build 100% of it.', 1, '2026-02-01'),
          ('Beta_Works', '', 'Finance', 'Under_scores and \ slashes', 2, '2026-02-01'),
          ('acme', '', 'Technology', '', NULL, '2026-02-02'), ('Élan', '', '', '', NULL,
            '2026-02-03 00:00:00.0005+00');
        INSERT INTO company_members (company_id, user_id, role, created_at) VALUES
          (1, 2, 'recruiter', '2026-01-01'), (1, 1, 'representative', '2026-01-02'), (2, 3, 'representative',
            '2026-01-02');

        """#

    /// Now is 2026-05-28 20:26:40 UTC.
    private static let work = #"""
        INSERT INTO job_postings (company_id, title, description, employment_type, environment, remote, place,
          lat, lng,
                                  state, published_at, valid_through, created_at) VALUES
          (1, 'Cook', '<p>Soup &amp; bread</p>', 'Contract', 'Remote', 2, 'Berlin', 52.52, 13.405, 'published',
            '2026-03-01', NULL, '2026-03-01 08:00:00.100100+00'),
          (1, 'cook', '<p>So<b>up</b> only</p>', 'Long Term', 'On site', 0, '', NULL, NULL, 'published',
            '2026-03-02', '2026-05-28 20:26:40+00', '2026-03-01 08:00:00.100900+00'),
          (1, '100% Écrivain', '', '', '', 0, 'Paris', 48.85, 2.35, 'draft', NULL, NULL,
            '2026-03-01 08:00:00.101+00'),
          (1, 'Clerk', '<p>a</p><p>b</p>', 'Contract', 'Remote', 2, '', NULL, NULL, 'closed', '2026-03-04',
            NULL, '2026-03-02'),
          (2, 'under_score', '<ul><li>one</li><li>two</li></ul>', 'Contract', 'Half Remote', 1, 'Berlin',
            52.52, 13.405, 'published', '2026-03-05', '2026-05-28 20:26:40.000001+00', '2026-03-02'),
          (2, 'under%score', '', 'Internship', 'Remote', 2, 'berlin', NULL, NULL, 'published', '2026-03-05',
            '2030-01-01', '2026-03-02'),
          (2, 'back\slash', '<p>1 &lt; 2</p>', '', '', 0, '', 0, 0, 'draft', '2026-03-07', NULL, '2026-03-03'),
          (3, 'Cook', '<p>soup</p>', '', 'remote', 2, '', -33.9, 151.2, 'published', '2026-03-08', NULL,
            '2026-03-04'),
          (3, 'Baker', '', '', '', 0, '', NULL, NULL, 'published', '2026-03-08', NULL, '2026-03-05'),
          (3, 'Baker', '', '', '', 0, '', NULL, NULL, 'closed', '2026-03-08', '2026-01-01', '2026-03-05');
        INSERT INTO applications (posting_id, applicant_id, status, cv_media_id, created_at) VALUES
          (1, 4, 'accepted', 3, '2026-04-01'), (1, 5, 'initiated', 5, '2026-04-02'), (4, 4, 'declined', 4,
            '2026-04-03'),
          (5, 5, 'accepted', 6, '2026-04-04'), (2, 5, 'withdrawn', 6, '2026-04-05');
        INSERT INTO rooms (application_id) VALUES (1), (4);
        INSERT INTO room_members (room_id, user_id) VALUES (1, 1), (1, 4), (2, 3), (2, 5);
        INSERT INTO messages (room_id, seq, sender_id, body, media_id) VALUES (1, 1, 4, 'see this', 10);
        """#
}
