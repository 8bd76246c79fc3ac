#ifndef MARTLET_CCURL_SHIM_H
#define MARTLET_CCURL_SHIM_H
#include <curl/curl.h>

/* curl_easy_setopt and curl_easy_getinfo are variadic, which Swift does not import. */
static inline CURLcode martlet_curl_set_long(CURL *handle, CURLoption option, long value) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode martlet_curl_set_string(CURL *handle, CURLoption option, const char *value) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode martlet_curl_set_pointer(CURL *handle, CURLoption option, void *value) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode martlet_curl_set_list(CURL *handle, CURLoption option, struct curl_slist *value) {
  return curl_easy_setopt(handle, option, value);
}
typedef size_t (*martlet_curl_data)(char *buffer, size_t size, size_t count, void *context);
static inline CURLcode martlet_curl_set_data(CURL *handle, CURLoption option, martlet_curl_data value) {
  return curl_easy_setopt(handle, option, value);
}
typedef int (*martlet_curl_seek)(void *context, curl_off_t offset, int origin);
static inline CURLcode martlet_curl_set_seek(CURL *handle, martlet_curl_seek value) {
  return curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, value);
}
static inline CURLcode martlet_curl_get_long(CURL *handle, CURLINFO info, long *value) {
  return curl_easy_getinfo(handle, info, value);
}
#endif
