#ifndef MARTLET_CSECCOMP_SHIM_H
#define MARTLET_CSECCOMP_SHIM_H
#include <seccomp.h>
#include <sys/prctl.h>
#endif
