#ifndef MARTLET_CWSLAY_SHIM_H
#define MARTLET_CWSLAY_SHIM_H
#include <wslay/wslay.h>
#endif
