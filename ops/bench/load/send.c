// send PORT OTHER SECONDS IN_FLIGHT RATE MEMBERS: sends that are acknowledged, and how soon others have them.
//
// MEMBERS is a file with a line for each sender, tab-separated: its rooms, as numbers between commas; what it says
// first; and what a receiver, who is in the same rooms, says first to the instance on port OTHER (0: there are none).
// With a RATE (messages a second, of all) sends go out at that rate, come what may; without, IN_FLIGHT are kept under
// way. The first part of the time is not counted.
#include "crowd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECT_MILLISECONDS_MAX = 60000, SETTLE_MILLISECONDS = 1000, ROOMS_MAX = 4096, LINE_MAX_BYTES = 1 << 20 };

struct sender {
    long *rooms;
    int roomCount, next;
};

struct sample {
    double *times;
    long count, size;
};

static struct crowd senders, receivers;
static struct sample acks, deliveries;
static bool isCounting, isOpenLoop, isOver;
static long sent, started, body = 200;

static void sample_add(struct sample *sample, double milliseconds) {
    if (sample->count == sample->size) {
        sample->size = 2 * sample->size + 4096;
        sample->times = realloc(sample->times, (size_t)sample->size * sizeof(double));
    }
    sample->times[sample->count++] = milliseconds;
}

static int compare(const void *left, const void *right) {
    double difference = *(const double *)left - *(const double *)right;
    return difference < 0 ? -1 : difference > 0;
}

static double quantile(const struct sample *sample, double part) {
    return sample->count ? sample->times[(long)((double)(sample->count - 1) * part)] : 0;
}

// The id of a message is the time of its send, and a number that makes it its own.
static void send_one(struct client *client) {
    static char text[1024], filler[256];
    struct sender *sender = client->owner;
    if (!filler[0]) memset(filler, 'x', (size_t)body);
    long room = sender->rooms[sender->next];
    sender->next = (sender->next + 1) % sender->roomCount;
    snprintf(text, sizeof text, "{\"type\":\"send\",\"room\":%ld,\"id\":\"%.3f-%ld\",\"body\":\"%s\"}", room, now(),
             ++sent, filler);
    say(&senders, client, text);
}

static double age(const char *text, size_t count) {
    const char *id = memmem(text, count, "\"id\":\"", 6);
    if (!id) fail("A frame without an id: %.*s", (int)count, text);
    return now() - strtod(id + 6, NULL);
}

static void sender_heard(struct client *client, const char *text, size_t count, bool isMessage) {
    if (isMessage) return;
    if (count < 13 || memcmp(text, "{\"type\":\"ack\"", 13) != 0) {
        if (memmem(text, count, "\"error\"", 7)) fail("%.*s", (int)count, text);
        return;
    }
    if (isCounting) sample_add(&acks, age(text, count));
    if (!isOpenLoop && !isOver) send_one(client);
}

static void receiver_heard(struct client *client, const char *text, size_t count, bool isMessage) {
    (void)client;
    if (isMessage && isCounting) sample_add(&deliveries, age(text, count));
}

static void readMembers(FILE *file, int count) {
    for (int place = 0; place < count; place++) {
        char *line = malloc(LINE_MAX_BYTES);
        if (!fgets(line, LINE_MAX_BYTES, file)) fail("The members end too early.");
        char *rooms = strsep(&line, "\t"), *first = strsep(&line, "\t"), *other = strsep(&line, "\n");
        struct sender *sender = calloc(1, sizeof *sender);
        sender->rooms = calloc(ROOMS_MAX, sizeof(long));
        for (char *room; (room = strsep(&rooms, ",")) && sender->roomCount < ROOMS_MAX;)
            sender->rooms[sender->roomCount++] = atol(room);
        senders.clients[place].owner = sender;
        senders.clients[place].greeting = first;
        if (receivers.count) receivers.clients[place].greeting = other;
    }
}

static void turn(double milliseconds) {
    // With two crowds neither may be waited for long.
    crowd_turn(&senders, receivers.count ? 0 : milliseconds);
    if (receivers.count) crowd_turn(&receivers, milliseconds < 0.2 ? milliseconds : 0.2);
}

static void connectAll(struct crowd *crowd) {
    crowd_connect(crowd, 0, crowd->count);
    for (double begun = now(); crowd->greeted < crowd->count;) {
        crowd_turn(crowd, 100);
        if (now() - begun > CONNECT_MILLISECONDS_MAX) fail("Only %d were greeted.", crowd->greeted);
    }
}

int main(int count, char **arguments) {
    if (count < 7) fail("send PORT OTHER SECONDS IN_FLIGHT RATE MEMBERS");
    allow_descriptors();
    int port = atoi(arguments[1]), other = atoi(arguments[2]);
    double seconds = atof(arguments[3]), rate = atof(arguments[5]);
    int inFlight = atoi(arguments[4]);
    FILE *file = fopen(arguments[6], "r");
    if (!file) fail("%s cannot be read.", arguments[6]);
    int lines = 0;
    for (int byte = getc(file); byte != EOF; byte = getc(file)) lines += byte == '\n';
    rewind(file);
    crowd_init(&senders, MARTLET, port, lines);
    crowd_init(&receivers, MARTLET, other, other ? lines : 0);
    senders.heard = sender_heard;
    receivers.heard = receiver_heard;
    isOpenLoop = rate > 0;
    readMembers(file, lines);
    connectAll(&senders);
    connectAll(&receivers);
    printf("ready\n");
    fflush(stdout);
    getchar();

    double begun = now(), counted = 0, last = 0;
    double settle = seconds * 250 < SETTLE_MILLISECONDS ? seconds * 250 : SETTLE_MILLISECONDS;
    if (!isOpenLoop)
        for (int index = 0; index < inFlight; index++) send_one(&senders.clients[index % lines]);
    while ((last = now()) < begun + settle + seconds * 1e3) {
        if (!isCounting && last >= begun + settle) {
            isCounting = true;
            counted = last;
        }
        if (isOpenLoop) {
            for (long due = (long)((last - begun) / 1e3 * rate); started < due; started++)
                send_one(&senders.clients[started % lines]);
        }
        turn(isOpenLoop ? 0.2 : 100);
    }
    isOver = true;
    double taken = (last - counted) / 1e3;
    qsort(acks.times, (size_t)acks.count, sizeof(double), compare);
    qsort(deliveries.times, (size_t)deliveries.count, sizeof(double), compare);
    printf("{\"acks\": %ld, \"per_second\": %f, \"ack_p50\": %f, \"ack_p99\": %f, \"deliveries\": %ld, "
           "\"delivery_p50\": %f, \"delivery_p99\": %f}\n",
           acks.count, (double)acks.count / taken, quantile(&acks, 0.5), quantile(&acks, 0.99), deliveries.count,
           quantile(&deliveries, 0.5), quantile(&deliveries, 0.99));
    return 0;
}
