#ifndef MARTLET_CUV_SHIM_H
#define MARTLET_CUV_SHIM_H
#include <sys/socket.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdlib.h>
#include <uv.h>

// uv_loop_t and the handles are larger in C than their public fields say; only libuv knows the sizes.
static inline uv_handle_t *martlet_uv_handle(uv_handle_type type) {
    return (uv_handle_t *)calloc(1, uv_handle_size(type));
}
static inline uv_req_t *martlet_uv_req(uv_req_type type) { return (uv_req_t *)calloc(1, uv_req_size(type)); }
#endif
