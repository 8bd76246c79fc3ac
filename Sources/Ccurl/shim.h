#ifndef MARTLET_CCURL_SHIM_H
#define MARTLET_CCURL_SHIM_H
#include <curl/curl.h>
#endif
