#ifndef MARTLET_CPOPPLER_SHIM_H
#define MARTLET_CPOPPLER_SHIM_H
#include <poppler.h>

enum martlet_poppler_status { MARTLET_POPPLER_OPEN, MARTLET_POPPLER_ENCRYPTED, MARTLET_POPPLER_BROKEN };

/* Opens the PDF behind `descriptor`, which it takes over, with the empty password: files that only forbid printing open
   by it. */
static inline PopplerDocument *martlet_poppler_open(int descriptor, enum martlet_poppler_status *status) {
  GError *error = NULL;
  PopplerDocument *document = poppler_document_new_from_fd(descriptor, NULL, &error);
  *status = MARTLET_POPPLER_OPEN;
  if (document != NULL) return document;
  *status = MARTLET_POPPLER_BROKEN;
  if (error != NULL) {
    if (g_error_matches(error, POPPLER_ERROR, POPPLER_ERROR_ENCRYPTED)) *status = MARTLET_POPPLER_ENCRYPTED;
    g_error_free(error);
  }
  return NULL;
}

/* The address a PopplerLinkMapping leads to outside of the document, or NULL. */
static inline const char *martlet_poppler_link(const void *mapping) {
  const PopplerAction *action = mapping == NULL ? NULL : ((const PopplerLinkMapping *)mapping)->action;
  return action != NULL && action->type == POPPLER_ACTION_URI ? action->uri.uri : NULL;
}

static inline void martlet_poppler_release(void *object) { g_object_unref(object); }

static inline void martlet_poppler_free(void *memory) { g_free(memory); }
#endif
