#ifndef MARTLET_CZLIB_SHIM_H
#define MARTLET_CZLIB_SHIM_H
#include <zlib.h>
#endif
