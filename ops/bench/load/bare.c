// bare PORT SOCKETS BYTES: what a fan-out costs at least. Accepts that many sockets; for each byte that the first one
// sends, all are sent the same frame of that size, by one send() each.
#include "crowd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int main(int count, char **arguments) {
    if (count < 4) fail("bare PORT SOCKETS BYTES");
    allow_descriptors();
    int sockets = atoi(arguments[2]), bytes = atoi(arguments[3]), one = 1;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(arguments[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096))
        fail("listen: %s", strerror(errno));
    int *members = malloc((size_t)sockets * sizeof(int));
    for (int index = 0; index < sockets; index++) {
        members[index] = accept(listener, NULL, NULL);
        if (members[index] < 0) fail("accept: %s", strerror(errno));
        setsockopt(members[index], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    char *frame = malloc((size_t)bytes);
    memset(frame, 'x', (size_t)bytes);
    frame[0] = (char)0x81;
    frame[1] = 126;
    frame[2] = (char)((bytes - 4) >> 8);
    frame[3] = (char)(bytes - 4);
    memcpy(frame + 4, "{\"type\":\"message\"", 17);
    char asked[64];
    while (true) {
        ssize_t messages = recv(members[0], asked, sizeof asked, 0);
        if (messages <= 0) return 0;
        for (ssize_t message = 0; message < messages; message++) {
            for (int index = 0; index < sockets; index++) {
                for (int sent = 0; sent < bytes;) {
                    ssize_t more = send(members[index], frame + sent, (size_t)(bytes - sent), MSG_NOSIGNAL);
                    if (more < 0) fail("send: %s", strerror(errno));
                    sent += (int)more;
                }
            }
        }
    }
}
