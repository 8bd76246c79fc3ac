#ifndef MARTLET_CPQ_SHIM_H
#define MARTLET_CPQ_SHIM_H
#include <libpq-fe.h>
#endif
