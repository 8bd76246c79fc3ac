#ifndef MARTLET_CMAGIC_SHIM_H
#define MARTLET_CMAGIC_SHIM_H
#include <magic.h>
#endif
