/* Least digit first, 8 bits at a time: digits that are the same everywhere cost one look. Up to INSERTION entries for
 * every digit of a key are sorted by insertion. */
#include "kernels/sort/radix.h"

#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/parallel.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { DIGITS = 256, DIGIT_BITS = 8, CHUNK = 1 << 16, INSERTION = 10 };

#define NAME(name) name##_wide
#define ENTRY WideEntry
#define KEY(entry) ((entry).key)
#include "kernels/sort/radix.inc"
#undef NAME
#undef ENTRY
#undef KEY

#define NAME(name) name##_narrow
#define ENTRY NarrowEntry
#define KEY(entry) ((entry) >> 32)
#include "kernels/sort/radix.inc"
