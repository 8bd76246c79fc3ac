// listen URL CHANNEL COUNT: that many connections which LISTEN and read what comes, as so many instances would.
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum { CONNECTIONS_MAX = 64 };

int main(int count, char **arguments) {
    if (count < 4) return 2;
    int wanted = atoi(arguments[3]);
    struct pollfd waits[CONNECTIONS_MAX];
    PGconn *connections[CONNECTIONS_MAX];
    if (wanted > CONNECTIONS_MAX) return 2;
    char statement[128];
    snprintf(statement, sizeof statement, "LISTEN %s", arguments[2]);
    for (int index = 0; index < wanted; index++) {
        connections[index] = PQconnectdb(arguments[1]);
        PGresult *result = PQexec(connections[index], statement);
        if (PQresultStatus(result) != PGRES_COMMAND_OK) {
            fprintf(stderr, "%s", PQerrorMessage(connections[index]));
            return 1;
        }
        PQclear(result);
        waits[index] = (struct pollfd){.fd = PQsocket(connections[index]), .events = POLLIN};
    }
    printf("ready\n");
    fflush(stdout);
    while (poll(waits, (nfds_t)wanted, -1) >= 0) {
        for (int index = 0; index < wanted; index++) {
            if (!waits[index].revents) continue;
            if (!PQconsumeInput(connections[index])) return 1;
            for (PGnotify *notify; (notify = PQnotifies(connections[index]));) PQfreemem(notify);
        }
    }
}
