#ifndef MARTLET_CEXPAT_SHIM_H
#define MARTLET_CEXPAT_SHIM_H
#include <expat.h>
#endif
