#ifndef MARTLET_CGUMBO_SHIM_H
#define MARTLET_CGUMBO_SHIM_H
#include <gumbo.h>
#include <setjmp.h>
#include <stdlib.h>

/* gumbo does not look whether its allocator gave anything, and misnested formatting makes it copy elements without end:
   20 kB can become gigabytes. It therefore gets an allocator with a limit, which leaves the parser by longjmp; all
   frames in between are C. Every block is in a list, so that the whole tree goes at once, however deep. */

typedef struct martlet_gumbo_block {
  struct martlet_gumbo_block *previous;
  struct martlet_gumbo_block *next;
  size_t bytes;
  size_t unused; /* keeps what follows aligned to 16 */
} martlet_gumbo_block;

typedef struct martlet_gumbo_arena {
  martlet_gumbo_block blocks;
  size_t bytes;
  size_t bytes_max;
  jmp_buf full;
} martlet_gumbo_arena;

static inline martlet_gumbo_arena *martlet_gumbo_arena_new(size_t bytes_max) {
  martlet_gumbo_arena *arena = calloc(1, sizeof *arena);
  if (arena == NULL) return NULL;
  arena->blocks.previous = arena->blocks.next = &arena->blocks;
  arena->bytes_max = bytes_max;
  return arena;
}

static inline void martlet_gumbo_arena_free(martlet_gumbo_arena *arena) {
  martlet_gumbo_block *block = arena->blocks.next;
  while (block != &arena->blocks) {
    martlet_gumbo_block *next = block->next;
    free(block);
    block = next;
  }
  free(arena);
}

static inline void *martlet_gumbo_take(void *userdata, size_t bytes) {
  martlet_gumbo_arena *arena = userdata;
  if (bytes > arena->bytes_max || arena->bytes + bytes > arena->bytes_max) longjmp(arena->full, 1);
  martlet_gumbo_block *block = malloc(sizeof *block + bytes);
  if (block == NULL) longjmp(arena->full, 1);
  block->bytes = bytes + sizeof *block;
  arena->bytes += block->bytes;
  block->next = arena->blocks.next;
  block->previous = &arena->blocks;
  block->next->previous = block;
  arena->blocks.next = block;
  return block + 1;
}

static inline void martlet_gumbo_give(void *userdata, void *pointer) {
  martlet_gumbo_arena *arena = userdata;
  if (pointer == NULL) return;
  martlet_gumbo_block *block = (martlet_gumbo_block *)pointer - 1;
  block->previous->next = block->next;
  block->next->previous = block->previous;
  arena->bytes -= block->bytes;
  free(block);
}

/* The html element over the nodes of the fragment, or NULL when the arena is full. It lives as long as the arena, and
   the text must live as long as it. */
static inline GumboNode *martlet_gumbo_parse(martlet_gumbo_arena *arena, const char *text, size_t bytes) {
  GumboOptions options = kGumboDefaultOptions;
  options.allocator = martlet_gumbo_take;
  options.deallocator = martlet_gumbo_give;
  options.userdata = arena;
  options.max_errors = 0;
  options.fragment_context = GUMBO_TAG_BODY;
  if (setjmp(arena->full) != 0) return NULL;
  return gumbo_parse_with_options(&options, text, bytes)->root;
}
#endif
