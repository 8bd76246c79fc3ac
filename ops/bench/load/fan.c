// fan KIND PORT MEMBERS WAVE [THEN]: sockets that all hear what one of them says.
//
// MEMBERS is a file with a line for each socket: how many messages are to come by its resume, and what it says first.
// WAVE of them connect at once, all when it is 0. Says on its output how long that took; then reads lines:
// `say ROUNDS BURST PAUSE TEXT` says BURST messages at once, waits until all have heard them, ROUNDS times over, of
// which each begins at least PAUSE milliseconds after the one before. `%` in TEXT becomes a number.
#include "crowd.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECT_MILLISECONDS_MAX = 120000, ROUND_MILLISECONDS_MAX = 30000 };

static void other(struct client *client, const char *text, size_t count, bool isMessage) {
    (void)client;
    if (!isMessage && memmem(text, count, "\"error\"", 7)) fail("%.*s", (int)count, text);
}

static long lines(FILE *file) {
    long count = 0;
    for (int byte = getc(file); byte != EOF; byte = getc(file)) count += byte == '\n';
    rewind(file);
    return count;
}

static long readMembers(struct crowd *crowd, FILE *file) {
    long wanted = 0;
    for (int place = 0; place < crowd->count; place++) {
        char *line = NULL;
        size_t size = 0;
        if (getline(&line, &size, file) < 0) fail("The members end too early.");
        char *text = NULL;
        crowd->clients[place].wanted = strtol(line, &text, 10);
        text[strcspn(text, "\n")] = 0;
        crowd->clients[place].greeting = text + 1;
        wanted += crowd->clients[place].wanted;
    }
    return wanted;
}

static void fill(char *into, size_t size, const char *text, long number) {
    const char *mark = strchr(text, '%');
    if (mark) {
        snprintf(into, size, "%.*s%ld%s", (int)(mark - text), text, number, mark + 1);
    } else {
        snprintf(into, size, "%s", text);
    }
}

static void sayRounds(struct crowd *crowd, long rounds, int burst, int pause, const char *text) {
    static long number;
    static char frame[4096];
    static struct bundle bundle;
    double begun = now(), slowest = 0;
    long bytes = crowd->bytes, first = crowd->messages;
    for (long round = 0; round < rounds; round++) {
        double one = now();
        long goal = crowd->messages + (long)burst * crowd->count;
        for (int index = 0; index < burst; index++) {
            fill(frame, sizeof frame, text, ++number);
            if (crowd->kind == BARE) {
                // It says one for each byte that it reads.
                send(crowd->clients[0].fd, "", 1, 0);
            } else {
                bundle_add(&bundle, frame);
            }
        }
        bundle_send(&bundle, &crowd->clients[0]);
        while (crowd->messages < goal) {
            crowd_turn(crowd, 1000);
            if (now() - one > ROUND_MILLISECONDS_MAX) fail("A message was not heard by all.");
        }
        double taken = now() - one;
        if (taken > slowest) slowest = taken;
        while (now() - one < pause) crowd_turn(crowd, pause - (now() - one));
    }
    long heard = crowd->messages - first;
    printf("{\"deliveries\": %ld, \"seconds\": %f, \"slowest_milliseconds\": %f, \"bytes\": %f}\n", heard,
           (now() - begun) / 1e3, slowest, (double)(crowd->bytes - bytes) / (double)heard);
    fflush(stdout);
}

// Answers pings until a line comes: a server closes those who do not.
static void attend(struct crowd *crowd) {
    struct pollfd waits[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = crowd->epoll, .events = POLLIN}};
    while (poll(waits, 2, -1) >= 0 && !waits[0].revents) crowd_turn(crowd, 0);
}

int main(int count, char **arguments) {
    if (count < 5) fail("fan KIND PORT MEMBERS WAVE [THEN]");
    allow_descriptors();
    FILE *file = fopen(arguments[3], "r");
    if (!file) fail("%s cannot be read.", arguments[3]);
    struct crowd crowd;
    crowd_init(&crowd, kind_of(arguments[1]), atoi(arguments[2]), (int)lines(file));
    crowd.then = count > 5 ? arguments[5] : NULL;
    crowd.heard = other;
    long wanted = readMembers(&crowd, file);
    double begun = now(), greeted = 0;
    int wave = atoi(arguments[4]) > 0 ? atoi(arguments[4]) : crowd.count, asked = 0;
    while (crowd.greeted < crowd.count || crowd.messages < wanted) {
        if (asked < crowd.count && crowd.greeted == asked) {
            int next = crowd.count - asked < wave ? crowd.count - asked : wave;
            crowd_connect(&crowd, asked, next);
            asked += next;
        }
        crowd_turn(&crowd, 1000);
        if (greeted == 0 && crowd.greeted == crowd.count) greeted = now() - begun;
        if (now() - begun > CONNECT_MILLISECONDS_MAX)
            fail("%d of %d were greeted, %ld of %ld messages came.", crowd.greeted, crowd.count, crowd.messages,
                 wanted);
    }
    printf("{\"greeted_seconds\": %f, \"seconds\": %f, \"messages\": %ld}\n", greeted / 1e3, (now() - begun) / 1e3,
           crowd.messages);
    fflush(stdout);
    char *line = NULL;
    size_t size = 0;
    while (attend(&crowd), getline(&line, &size, stdin) > 0) {
        long rounds;
        int burst, pause, text = 0;
        if (sscanf(line, "say %ld %d %d %n", &rounds, &burst, &pause, &text) < 3 || text == 0)
            fail("What is \"%s\"?", line);
        line[strcspn(line, "\n")] = 0;
        sayRounds(&crowd, rounds, burst, pause, line + text);
    }
    return 0;
}
