import Core
import Foundation
import ServiceKit
import TestSupport
import Testing

@testable import ChatApp

@Suite("What a chat counts")
struct ChatMetricsTests {
    /// The number behind a series; nil when there is none.
    private static func value(_ series: String, _ instance: Instance) -> Double? {
        let line = instance.metrics.text().split(separator: "\n").first { $0.hasPrefix(series + " ") }
        return line.flatMap { Double($0.dropFirst(series.count + 1)) }
    }

    @Test("a message counts where it was sent as sent, where it was read as read, and at both with its lag")
    func messages() async throws {
        try await withInstances(users: 2, rooms: [[1, 2]]) { instances, _ in
            let one = try await instances[0].client(user: 1)
            let two = try await instances[1].client(user: 2)
            for number in 1...3 {
                one.send(1, "a\(number)", "m\(number)")
                _ = try await one.next("ack")
            }
            try await two.until(room: 1, seq: 3)
            try await one.until(room: 1, seq: 3)
            let (sender, reader) = (instances[0], instances[1])
            #expect(Self.value("martlet_chat_messages_sent_total", sender) == 3)
            #expect(Self.value("martlet_chat_batch_messages_sum", sender) == 3)
            #expect(Self.value("martlet_chat_batch_seconds_count", sender) == 3)
            #expect(Self.value("martlet_chat_sends_waiting", sender) == 0)
            #expect(Self.value(#"martlet_chat_delivery_lag_seconds_count{from="here"}"#, sender) == 3)
            #expect(Self.value(#"martlet_chat_delivery_lag_seconds_count{from="elsewhere"}"#, sender) == 0)
            #expect(Self.value("martlet_chat_messages_read_total", reader) == 3)
            #expect(Self.value(#"martlet_chat_delivery_lag_seconds_count{from="elsewhere"}"#, reader) == 3)
            let lag = try #require(
                Self.value(#"martlet_chat_delivery_lag_seconds_sum{from="elsewhere"}"#, reader))
            #expect(lag > 0 && lag < 90)
            #expect(try #require(Self.value("martlet_chat_wake_ups_total", reader)) >= 1)
            #expect(try #require(Self.value("martlet_chat_rooms_read_total", reader)) >= 1)
        }
    }

    @Test("sockets by how they ended; a refused send; a client that says what it had is a resume")
    func sockets() async throws {
        try await withInstances(["chat-1"], users: 3, rooms: [[1, 2]]) { instances, test in
            let instance = instances[0]
            let one = try await instance.client(user: 1)
            one.send(1, "a", "m")
            _ = try await one.next("ack")
            #expect(Self.value("martlet_chat_resumes_total", instance) == 0)
            let back = try await instance.client(user: 2, resume: [1: 0])
            try await back.until(room: 1, seq: 1)
            #expect(Self.value("martlet_chat_resumes_total", instance) == 1)
            #expect(Self.value("martlet_chat_messages_caught_up_total", instance) == 1)
            #expect(Self.value("martlet_chat_sockets", instance) == 2)

            back.socket.send("[]")
            let stranger = try await ChatClient(port: instance.port)
            stranger.hello("nonsense")
            try await eventually {
                Self.value(#"martlet_chat_closed_total{code="4401"}"#, instance) == 1
            }
            #expect(Self.value("martlet_chat_sockets", instance) == 2)
            #expect(Self.value("martlet_chat_sockets_total", instance) == 3)
            #expect(Self.value(#"martlet_chat_slow_readers_total{protocol="martlet.v1"}"#, instance) == 0)
        }
    }
}
