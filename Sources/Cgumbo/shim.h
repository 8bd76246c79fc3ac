#ifndef MARTLET_CGUMBO_SHIM_H
#define MARTLET_CGUMBO_SHIM_H
#include <gumbo.h>
#endif
