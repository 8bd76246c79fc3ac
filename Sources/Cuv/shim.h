#ifndef MARTLET_CUV_SHIM_H
#define MARTLET_CUV_SHIM_H
#include <uv.h>
#endif
