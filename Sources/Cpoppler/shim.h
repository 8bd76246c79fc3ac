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

/* Draws a page in grey, a byte a pixel, white where nothing is. 1 when something is to be seen, 0 for a blank page, -1
   when there is no memory for it. */
static inline int martlet_poppler_draw(PopplerPage *page, double scale, int width, int height, unsigned char *grey) {
  cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
  cairo_t *cairo = cairo_create(surface);
  cairo_set_source_rgb(cairo, 1, 1, 1);
  cairo_paint(cairo);
  cairo_scale(cairo, scale, scale);
  if (cairo_status(cairo) == CAIRO_STATUS_SUCCESS) poppler_page_render(page, cairo);
  cairo_surface_flush(surface);
  const unsigned char *data = cairo_image_surface_get_data(surface);
  int result = cairo_status(cairo) == CAIRO_STATUS_SUCCESS && data != NULL ? 0 : -1;
  unsigned char darkest = 255;
  for (int y = 0; result == 0 && y < height; y++) {
    const guint32 *row = (const guint32 *)(const void *)(data + (size_t)y * cairo_image_surface_get_stride(surface));
    for (int x = 0; x < width; x++, grey++) {
      *grey = (unsigned char)(((row[x] >> 16 & 255) * 77 + (row[x] >> 8 & 255) * 151 + (row[x] & 255) * 28) >> 8);
      if (*grey < darkest) darkest = *grey;
    }
  }
  cairo_destroy(cairo);
  cairo_surface_destroy(surface);
  return result == 0 && darkest < 240 ? 1 : result;
}

static inline void martlet_poppler_release(void *object) { g_object_unref(object); }

static inline void martlet_poppler_free(void *memory) { g_free(memory); }
#endif
