// Many WebSockets of one process, and one epoll: what a load generator needs, and cheaper than the servers it measures.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kind {
    MARTLET,  // martlet.v1
    SOCKETIO, // Socket.IO over WebSocket
    BARE,     // no protocol at all before the frames: the other end is bare.c
};

struct client {
    int fd;
    int place;
    enum { CONNECTING, UPGRADING, GREETING, GREETED } state;
    uint8_t *rest; // A part of a frame, until the rest of it comes.
    size_t rest_count, rest_size;
    const char *greeting; // What it says first.
    long wanted;          // Messages that it is to have before it counts as complete.
    long messages;
    void *owner; // For the caller.
};

struct crowd {
    enum kind kind;
    int port;
    int epoll;
    struct client *clients;
    int count;
    int greeted;
    long messages; // Of all clients, and the bytes of their frames with the headers.
    long bytes;
    const char *then; // What each says when it has been greeted, or null.
    // Called with every frame that is neither a message nor about the connection, and with every message.
    void (*heard)(struct client *, const char *text, size_t count, bool is_message);
};

// Milliseconds of the monotonic clock.
double now(void);

// Ends the process with a sentence.
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Raises the limit of descriptors to what is allowed.
void allow_descriptors(void);

void crowd_init(struct crowd *, enum kind, int port, int count);

// Begins to connect so many clients, at once.
void crowd_connect(struct crowd *, int first, int count);

// Handles what has come, after waiting for at most so many milliseconds.
void crowd_turn(struct crowd *, double milliseconds);

// Sends a masked text frame; the mask is zero, which leaves the text as it is.
void say(struct crowd *, struct client *, const char *text);

// The same frames as one write.
struct bundle {
    uint8_t *bytes;
    size_t count, size;
};
void bundle_add(struct bundle *, const char *text);
void bundle_send(struct bundle *, struct client *);

enum kind kind_of(const char *name);
