/* Loops over lines of 16-bit floats, which convert as they go; computed in float32. */
#ifndef UNDERSTUDY_NARROW_LINES_H
#define UNDERSTUDY_NARROW_LINES_H

#include "tensor/levels.h"
#include "tensor/view.h"

/* x, (x - center)^2, and |x|^power for a power that is a multiple of 1/2 up to NARROW_POWER_LIMIT: no element's is then
 * infinite or 0 in float32 that is not itself. */
typedef enum NarrowTerm { NARROW_VALUE, NARROW_SQUARE, NARROW_POWER } NarrowTerm;

enum { NARROW_POWER_LIMIT = 3 };

/* y = (x - center) * factor * scale + offset; the last two one for all, or one for each element. */
typedef struct NarrowFactors {
    float center, center_rest, factor; /* the center in two parts: elements may all be nearer to it than float32 tells */
    const float *scale, *offset;
} NarrowFactors;

typedef struct NarrowLoops {
    /* Adds the terms to LANES sums, `count` elements in float32. */
    void (*add_terms)(double *sums, const uint16_t *x, int64_t count, NarrowTerm term, float center, float power);
    void (*apply)(uint16_t *y, const uint16_t *x, int64_t count, const NarrowFactors *by, bool by_element);
    /* y = (x - center) * factor + offset, of each element its own. */
    void (*apply_each)(uint16_t *y, const uint16_t *x, int64_t count, const float *centers, const float *factors,
                       const float *offsets);
} NarrowLoops;

/* NULL: the type has not 16 bits. */
const NarrowLoops *us_narrow_loops(DType dtype);

#endif
