#ifndef MARTLET_CVIPS_SHIM_H
#define MARTLET_CVIPS_SHIM_H
#include <vips/vips.h>
#endif
