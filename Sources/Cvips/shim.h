#ifndef MARTLET_CVIPS_SHIM_H
#define MARTLET_CVIPS_SHIM_H
#include <vips/vips.h>

/* Swift can call neither variadic functions nor GObject's macros. Each function here that makes an image gives a new
   reference, or NULL with the reason in vips_error_buffer(). */

static inline int martlet_vips_start(const char *program) { return VIPS_INIT(program); }

/* Lines made at once when the library has a choice. By itself it makes 256, which for a wide picture with transparency
   is over 100 MB of floating point. This is the library's own command-line option; there is no call for it. */
static inline int martlet_vips_set_lines(int lines) {
  char option[64];
  g_snprintf(option, sizeof option, "--vips-tile-height=%d", lines);
  char *words[] = {(char *)"", option, NULL};
  char **arguments = words;
  int count = 2;
  GOptionContext *context = g_option_context_new(NULL);
  GOptionGroup *group = g_option_group_new("vips", "", "", NULL, NULL);
  vips_add_option_entries(group);
  g_option_context_add_group(context, group);
  gboolean done = g_option_context_parse(context, &count, &arguments, NULL);
  g_option_context_free(context);
  return done ? 0 : -1;
}

static inline void martlet_vips_release(VipsImage *image) { g_object_unref(image); }

/* `loader` is the nickname of one loader, so that no file name chooses another or carries options. Animations give
   their first frame. Reading goes from top to bottom, and a file that ends early is an error, not a grey rest. */
static inline VipsImage *martlet_vips_load(const char *loader, const char *path) {
  VipsImage *image = NULL;
  if (vips_call(loader, path, &image, "access", VIPS_ACCESS_SEQUENTIAL, "fail_on", VIPS_FAIL_ON_TRUNCATED, NULL) != 0)
    return NULL;
  return image;
}

/* An SVG, drawn `scale` times as large as it says. It is given without an address, so librsvg opens nothing that it
   refers to. */
static inline VipsImage *martlet_vips_draw(const void *bytes, size_t count, double scale) {
  VipsImage *image = NULL;
  VipsBlob *blob = vips_blob_copy(bytes, count);
  if (blob == NULL) return NULL;
  int result = vips_call("svgload_buffer", blob, &image, "scale", scale, "access", VIPS_ACCESS_SEQUENTIAL, "fail_on",
                         VIPS_FAIL_ON_TRUNCATED, NULL);
  vips_area_unref(VIPS_AREA(blob));
  return result == 0 ? image : NULL;
}

/* A whole number from the header, or `fallback` when it has none of that name. */
static inline int martlet_vips_number(VipsImage *image, const char *name, int fallback) {
  int number = fallback;
  if (vips_image_get_typeof(image, name) == G_TYPE_INT && vips_image_get_int(image, name, &number) != 0)
    return fallback;
  return number;
}

/* Whether the header has the text `value` under `name`. */
static inline int martlet_vips_text_is(VipsImage *image, const char *name, const char *value) {
  const char *text = NULL;
  if (vips_image_get_typeof(image, name) == 0 || vips_image_get_string(image, name, &text) != 0) return 0;
  return text != NULL && g_strcmp0(text, value) == 0;
}

static inline VipsImage *martlet_vips_colourspace(VipsImage *image, VipsInterpretation space) {
  VipsImage *result = NULL;
  return vips_colourspace(image, &result, space, NULL) == 0 ? result : NULL;
}

/* CMYK to 8-bit sRGB by the image's own profile, by a standard one when it has none. */
static inline VipsImage *martlet_vips_cmyk_to_srgb(VipsImage *image) {
  VipsImage *result = NULL;
  return vips_icc_transform(image, &result, "srgb", "embedded", TRUE, "input_profile", "cmyk", "depth", 8, NULL) == 0
             ? result
             : NULL;
}

static inline VipsImage *martlet_vips_cast_uchar(VipsImage *image) {
  VipsImage *result = NULL;
  return vips_cast(image, &result, VIPS_FORMAT_UCHAR, NULL) == 0 ? result : NULL;
}

static inline VipsImage *martlet_vips_upright(VipsImage *image) {
  VipsImage *result = NULL;
  return vips_autorot(image, &result, NULL) == 0 ? result : NULL;
}

/* Exactly `width` by `height`; the caller has kept the proportions. */
static inline VipsImage *martlet_vips_resize(VipsImage *image, int width, int height) {
  VipsImage *result = NULL;
  return vips_thumbnail_image(image, &result, width, "height", height, "size", VIPS_SIZE_FORCE, "no_rotate", TRUE,
                              NULL) == 0
             ? result
             : NULL;
}

/* A copy without any metadata but the colour profile, and without that too when `profile` is 0. */
static inline VipsImage *martlet_vips_bare(VipsImage *image, int profile) {
  VipsImage *result = NULL;
  if (vips_copy(image, &result, NULL) != 0) return NULL;
  gchar **fields = vips_image_get_fields(result);
  /* The fields that every image has cannot be removed; asking for it does nothing. */
  for (gchar **field = fields; field != NULL && *field != NULL; field++)
    if (!profile || g_strcmp0(*field, VIPS_META_ICC_NAME) != 0) vips_image_remove(result, *field);
  g_strfreev(fields);
  return result;
}

/* Without metadata: with `strip` this version (8.14) writes no profile either, and without it an EXIF of its own.
   Optimal Huffman tables make a smaller file, but need all coefficients at once, three bytes for each pixel: not for
   large pictures. */
static inline int martlet_vips_save_jpeg(VipsImage *image, const char *path, int quality, int optimal) {
  return vips_jpegsave(image, path, "Q", quality, "optimize_coding", optimal, "strip", TRUE, NULL);
}

/* With the metadata the image has: for a bare one, its profile. */
static inline int martlet_vips_save_png(VipsImage *image, const char *path) { return vips_pngsave(image, path, NULL); }

/* With the metadata the image has and an EXIF of its own: this version does not heed `strip`. */
static inline int martlet_vips_save_webp(VipsImage *image, const char *path, int quality) {
  return vips_webpsave(image, path, "Q", quality, NULL);
}
#endif
