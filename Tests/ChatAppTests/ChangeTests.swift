import Foundation
import TestSupport
import Testing

@testable import ChatApp

@Suite("What is changed in the chat")
struct ChangeTests {
    private func change(_ client: ChatClient, _ id: String, _ target: Int, _ body: String? = nil, room: Int = 1) {
        let act = body.map { #""edit","body":"\#($0)""# } ?? #""delete""#
        client.socket.send(#"{"type":\#(act),"room":\#(room),"id":"\#(id)","target":\#(target)}"#)
    }

    private func history(_ client: ChatClient, _ members: String) async throws -> Frame {
        client.socket.send(#"{"type":"history","room":1,\#(members)}"#)
        return try await client.next("history")
    }

    @Test("edits and deletions come to all instances in order, as messages with numbers of their own")
    func everywhere() async throws {
        try await withInstances(users: 2, rooms: [[1, 2]]) { instances, _ in
            let one = try await instances[0].client(user: 1)
            let two = try await instances[1].client(user: 2)
            one.send(1, "a", "first")
            one.send(1, "b", "second")
            #expect(try await one.next("ack").int("seq") == 1)
            #expect(try await one.next("ack").int("seq") == 2)
            change(one, "c", 1, "better")
            #expect(try await one.next("ack").int("seq") == 3)
            change(one, "c", 1, "better")
            #expect(try await one.next("ack").bool("duplicate"))
            change(one, "d", 2)
            #expect(try await one.next("ack").int("seq") == 4)
            for client in [one, two] {
                try await client.until(room: 1, seq: 4)
                #expect(client.seqs(1) == [1, 2, 3, 4])
                #expect(client.messages.map(\.kind) == ["text", "text", "edit", "delete"])
                #expect(client.messages.map(\.target) == [nil, nil, 1, 2])
            }
            // Who was away is given what is left.
            let back = try await instances[1].client(user: 2, resume: [1: 0])
            try await back.until(room: 1, seq: 4)
            #expect(back.messages.map(\.body) == ["first", "", "better", ""])
        }
    }

    @Test("who has written nothing there is refused without a word of what there is")
    func refused() async throws {
        try await withInstances(["chat-1"], users: 3, rooms: [[1, 2]]) { instances, test in
            let one = try await instances[0].client(user: 1)
            let two = try await instances[0].client(user: 2)
            let stranger = try await instances[0].client(user: 3)
            one.send(1, "a", "mine")
            #expect(try await one.next("ack").int("seq") == 1)
            var answers: Set<String> = []
            for target in [1, 2, 999] {
                change(two, "x", target, "theirs")
                let edit = try await two.next("error")
                change(two, "x", target)
                let deletion = try await two.next("error")
                #expect(edit.string("code") == "not_found" && edit.string("id") == "x")
                answers.formUnion([edit.text, deletion.text])
            }
            #expect(answers.count == 1)
            answers = []
            for room in [1, 77] {
                change(stranger, "x", 1, "theirs", room: room)
                answers.insert(try await stranger.next("error").text.replacing("77", with: "1"))
            }
            #expect(answers.count == 1 && answers.first?.contains("forbidden") == true)
            #expect(try await test.run("SELECT count(*) FROM messages") == [["1"]])
        }
    }

    @Test("history is read both ways, folded, until there is no more")
    func bothWays() async throws {
        try await withInstances(["chat-1"], users: 1, rooms: [[1]]) { instances, _ in
            let one = try await instances[0].client(user: 1)
            for number in 1...5 { one.send(1, "\(number)", "m\(number)") }
            for _ in 1...5 { _ = try await one.next("ack") }
            change(one, "e", 2, "new")
            change(one, "d", 3)
            for _ in 1...2 { _ = try await one.next("ack") }
            let all = try await history(one, #""after":0,"limit":50"#)
            #expect(all.seqs("messages") == [1, 2, 3, 4, 5] && !all.bool("more"))
            #expect(all.list("messages").map { $0["body"] as? String } == ["m1", "new", "", "m4", "m5"])
            #expect(all.list("messages").map { $0["edited"] != nil } == [false, true, false, false, false])
            #expect(all.list("messages").map { $0["deleted"] != nil } == [false, false, true, false, false])
            let first = try await history(one, #""after":0,"limit":3"#)
            #expect(first.seqs("messages") == [1, 2, 3] && first.bool("more"))
            let rest = try await history(one, #""after":3,"limit":3"#)
            #expect(rest.seqs("messages") == [4, 5] && !rest.bool("more"))
            let older = try await history(one, #""before":3,"limit":2"#)
            #expect(older.seqs("messages") == [1, 2] && !older.bool("more"))
        }
    }

    @Test("unread texts are counted, in one's own rooms only")
    func unread() async throws {
        try await withInstances(["chat-1"], users: 2, rooms: [[1, 2], [1, 2], [1]]) { instances, _ in
            let one = try await instances[0].client(user: 1)
            let two = try await instances[0].client(user: 2)
            for number in 1...3 { one.send(1, "\(number)", "x") }
            for _ in 1...3 { _ = try await one.next("ack") }
            change(one, "e", 1, "y")
            change(one, "d", 2)
            for _ in 1...2 { _ = try await one.next("ack") }
            two.socket.send(#"{"type":"unread","rooms":[1,2,3,77]}"#)
            #expect(try await two.next("unread").text == #"{"type":"unread","rooms":{"1":2,"2":0}}"#)
            two.socket.send(#"{"type":"read","room":1,"seq":5}"#)
            _ = try await two.next("read")
            two.socket.send(#"{"type":"unread","rooms":[1]}"#)
            #expect(try await two.next("unread").text == #"{"type":"unread","rooms":{"1":0}}"#)
            two.socket.send(#"{"type":"unread","rooms":[]}"#)
            #expect(try await two.next("unread").text == #"{"type":"unread","rooms":{}}"#)
        }
    }

    @Test("a file goes with a text, or alone, if it is the sender's; it goes with the text, too")
    func attachments() async throws {
        try await withInstances(["chat-1"], users: 2, rooms: [[1, 2]]) { instances, test in
            try await test.run(
                """
                INSERT INTO media (owner_id, kind, name, hash, bytes, sha256, storage_key)
                VALUES (1, 'attachment', 'a', 'h1', 1, '', 'k1'), (2, 'attachment', 'b', 'h2', 1, '', 'k2')
                """)
            let one = try await instances[0].client(user: 1)
            let two = try await instances[0].client(user: 2)
            one.socket.send(#"{"type":"send","room":1,"id":"a","media":1}"#)
            one.socket.send(#"{"type":"send","room":1,"id":"b","media":2,"body":"stolen"}"#)
            #expect(try await one.next("ack").int("seq") == 1)
            let refused = try await one.next("error")
            #expect(refused.string("code") == "not_found" && refused.string("id") == "b")
            let message = try await two.next("message")
            #expect(message.int("media") == 1 && message.string("body") == "")
            change(one, "d", 1)
            _ = try await two.next("message")
            let page = try await history(two, #""limit":9"#)
            #expect(page.list("messages").count == 1 && !page.text.contains("media"))
        }
    }
}
