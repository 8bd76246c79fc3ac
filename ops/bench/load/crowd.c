#include "crowd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 1024,
    READ_BYTES = 256 * 1024,
    RECEIVE_BYTES = 256 * 1024, // Of a socket: a burst must not wait for us.
};

static uint8_t buffer[READ_BYTES];

double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

void allow_descriptors(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

enum kind kind_of(const char *name) {
    if (strcmp(name, "martlet") == 0) return MARTLET;
    if (strcmp(name, "socketio") == 0) return SOCKETIO;
    if (strcmp(name, "bare") == 0) return BARE;
    fail("There is no kind of server \"%s\".", name);
}

void crowd_init(struct crowd *crowd, enum kind kind, int port, int count) {
    *crowd = (struct crowd){.kind = kind, .port = port, .count = count};
    crowd->epoll = epoll_create1(EPOLL_CLOEXEC);
    crowd->clients = calloc((size_t)count, sizeof(struct client));
    for (int place = 0; place < count; place++) crowd->clients[place].place = place;
}

static void watch(struct crowd *crowd, struct client *client, int operation, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = client};
    if (epoll_ctl(crowd->epoll, operation, client->fd, &event)) fail("epoll_ctl: %s", strerror(errno));
}

void crowd_connect(struct crowd *crowd, int first, int count) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)crowd->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int one = 1, bytes = RECEIVE_BYTES;
    for (int place = first; place < first + count; place++) {
        struct client *client = &crowd->clients[place];
        client->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (client->fd < 0) fail("socket: %s", strerror(errno));
        setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(client->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
        if (connect(client->fd, (struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS)
            fail("connect: %s", strerror(errno));
        client->state = CONNECTING;
        watch(crowd, client, EPOLL_CTL_ADD, EPOLLOUT);
    }
}

static void write_all(struct client *client, const void *bytes, size_t count) {
    const uint8_t *at = bytes;
    while (count > 0) {
        ssize_t sent = send(client->fd, at, count, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) fail("send: %s", strerror(errno));
        if (sent < 0) continue; // Small frames to a server that reads: soon.
        at += sent;
        count -= (size_t)sent;
    }
}

void bundle_add(struct bundle *bundle, const char *text) {
    size_t count = strlen(text);
    if (bundle->count + count + 16 > bundle->size) {
        bundle->size = 2 * (bundle->size + count) + 1024;
        bundle->bytes = realloc(bundle->bytes, bundle->size);
    }
    uint8_t *at = bundle->bytes + bundle->count;
    *at++ = 0x81;
    if (count < 126) {
        *at++ = (uint8_t)(0x80 | count);
    } else if (count < 65536) {
        *at++ = 0x80 | 126;
        *at++ = (uint8_t)(count >> 8);
        *at++ = (uint8_t)count;
    } else {
        *at++ = 0x80 | 127;
        for (int shift = 56; shift >= 0; shift -= 8) *at++ = (uint8_t)((uint64_t)count >> shift);
    }
    memset(at, 0, 4);
    memcpy(at + 4, text, count);
    bundle->count = (size_t)(at + 4 + count - bundle->bytes);
}

void bundle_send(struct bundle *bundle, struct client *client) {
    write_all(client, bundle->bytes, bundle->count);
    bundle->count = 0;
}

void say(struct crowd *crowd, struct client *client, const char *text) {
    static struct bundle bundle;
    (void)crowd;
    bundle_add(&bundle, text);
    bundle_send(&bundle, client);
}

static bool begins(const char *text, size_t count, const char *with) {
    size_t length = strlen(with);
    return count >= length && memcmp(text, with, length) == 0;
}

static void greeted(struct crowd *crowd, struct client *client) {
    client->state = GREETED;
    crowd->greeted++;
    if (crowd->then) say(crowd, client, crowd->then);
}

static void took(struct crowd *crowd, struct client *client, const char *text, size_t count) {
    client->messages++;
    crowd->messages++;
    crowd->bytes += (long)(count + (count < 126 ? 2 : 4));
    if (crowd->heard) crowd->heard(client, text, count, true);
}

static void heard(struct crowd *crowd, struct client *client, const char *text, size_t count) {
    bool isEvent = begins(text, count, crowd->kind == SOCKETIO ? "42[\"message\"" : "{\"type\":\"message\"");
    if (isEvent) return took(crowd, client, text, count);
    if (crowd->kind == SOCKETIO) {
        if (begins(text, count, "2")) return say(crowd, client, "3");
        if (begins(text, count, "0{")) return say(crowd, client, client->greeting);
        if (begins(text, count, "40")) return greeted(crowd, client);
    }
    if (begins(text, count, "{\"type\":\"ready\"")) return greeted(crowd, client);
    if (crowd->heard) crowd->heard(client, text, count, false);
}

// With what the ping had: some servers tell pongs apart by it.
static void pong(struct client *client, const char *payload, size_t size) {
    uint8_t frame[6 + 125] = {0x8A, (uint8_t)(0x80 | size)};
    if (size > sizeof frame - 6) fail("A ping of %zu bytes.", size);
    memcpy(frame + 6, payload, size);
    write_all(client, frame, size + 6);
}

// Takes the whole frames at the beginning; gives how many bytes they are.
static size_t frames(struct crowd *crowd, struct client *client, const uint8_t *bytes, size_t count) {
    size_t at = 0;
    while (count - at >= 2) {
        uint64_t size = bytes[at + 1] & 0x7F;
        size_t head = size < 126 ? 2 : size == 126 ? 4 : 10;
        if (count - at < head) break;
        if (head > 2) {
            size = 0;
            for (size_t index = 2; index < head; index++) size = size << 8 | bytes[at + index];
        }
        if (count - at - head < size) break;
        const char *payload = (const char *)bytes + at + head;
        switch (bytes[at] & 0x0F) {
        case 0x1: heard(crowd, client, payload, size); break;
        case 0x9: pong(client, payload, size); break;
        case 0x8:
            fail("The server closed socket %d: %d %.*s", client->place,
                 size >= 2 ? (uint8_t)payload[0] << 8 | (uint8_t)payload[1] : 0, (int)size - 2, payload + 2);
        default: break;
        }
        at += head + size;
    }
    return at;
}

static void keep(struct client *client, const uint8_t *bytes, size_t count) {
    if (count > client->rest_size) {
        client->rest_size = 2 * count;
        client->rest = realloc(client->rest, client->rest_size);
    }
    memmove(client->rest, bytes, count);
    client->rest_count = count;
}

static void feed(struct crowd *crowd, struct client *client, const uint8_t *bytes, size_t count) {
    if (client->rest_count > 0) {
        size_t had = client->rest_count;
        if (had + count > client->rest_size) {
            client->rest_size = 2 * (had + count);
            client->rest = realloc(client->rest, client->rest_size);
        }
        memcpy(client->rest + had, bytes, count);
        bytes = client->rest;
        count += had;
    }
    client->rest_count = 0;
    if (client->state == UPGRADING) {
        const uint8_t *end = memmem(bytes, count, "\r\n\r\n", 4);
        if (!end) return keep(client, bytes, count);
        if (!begins((const char *)bytes, count, "HTTP/1.1 101")) fail("No WebSocket: %.60s", (const char *)bytes);
        client->state = GREETING;
        if (crowd->kind == MARTLET) say(crowd, client, client->greeting);
        count -= (size_t)(end + 4 - bytes);
        bytes = end + 4;
    }
    size_t taken = frames(crowd, client, bytes, count);
    if (taken < count) keep(client, bytes + taken, count - taken);
}

static void connected(struct crowd *crowd, struct client *client) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) fail("connect: %s", strerror(error));
    watch(crowd, client, EPOLL_CTL_MOD, EPOLLIN);
    if (crowd->kind == BARE) return greeted(crowd, client);
    client->state = UPGRADING;
    char head[512];
    int count = snprintf(
        head, sizeof head,
        "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n",
        crowd->kind == MARTLET ? "/chat" : "/socket.io/?EIO=4&transport=websocket", crowd->port,
        crowd->kind == MARTLET ? "Sec-WebSocket-Protocol: martlet.v1\r\n" : "");
    write_all(client, head, (size_t)count);
}

void crowd_turn(struct crowd *crowd, double milliseconds) {
    static struct epoll_event events[EVENTS_MAX];
    struct timespec wait = {.tv_sec = (long)(milliseconds / 1e3)};
    wait.tv_nsec = (long)((milliseconds - (double)wait.tv_sec * 1e3) * 1e6);
    int count = epoll_pwait2(crowd->epoll, events, EVENTS_MAX, &wait, NULL);
    if (count < 0 && errno != EINTR) fail("epoll_pwait2: %s", strerror(errno));
    for (int index = 0; index < count; index++) {
        struct client *client = events[index].data.ptr;
        if (client->state == CONNECTING) {
            connected(crowd, client);
            continue;
        }
        ssize_t received = recv(client->fd, buffer, sizeof buffer, 0);
        if (received == 0) fail("The server ended socket %d.", client->place);
        if (received < 0 && errno != EAGAIN && errno != EINTR)
            fail("Socket %d of %d: %s", client->place, crowd->count, strerror(errno));
        if (received > 0) feed(crowd, client, buffer, (size_t)received);
    }
}
