#ifndef MARTLET_CZIP_SHIM_H
#define MARTLET_CZIP_SHIM_H
#include <zip.h>
#endif
