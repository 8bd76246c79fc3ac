#ifndef MARTLET_CLLHTTP_SHIM_H
#define MARTLET_CLLHTTP_SHIM_H
#include "/usr/share/include/llhttp/llhttp.h"
#endif
