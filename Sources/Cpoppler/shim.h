#ifndef MARTLET_CPOPPLER_SHIM_H
#define MARTLET_CPOPPLER_SHIM_H
#include <poppler.h>
#endif
