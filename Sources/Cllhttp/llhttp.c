// Debian ships llhttp as sources (node-llhttp): compiled from where the distribution put them.
#define LLHTTP_STRICT_MODE 1
#include "/usr/share/llhttp/llhttp.c"
