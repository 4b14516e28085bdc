/* Loops of normalize.c over neighbouring elements of a line: u = (x - mean) * inverse, v = u * scale + offset, in float32
 * with sums in float64. */
#ifndef UNDERSTUDY_NORMAL_LOOPS_H
#define UNDERSTUDY_NORMAL_LOOPS_H

#include "tensor/levels.h"
#include "tensor/view.h"

/* What stands for every element of a line. The mean in two parts, so that a large one costs no digits. */
typedef struct LineNumbers {
    float mean, mean_rest, inverse;
} LineNumbers;

/* Those of the elements: one for each, or one for all. */
typedef struct Parameters {
    const float *scale, *offset;
    bool each;
} Parameters;

/* Sums of x - centre, and of its square. */
typedef struct Moments {
    double centre, sum, square;
} Moments;

/* Sums over a line, in parts so that their order does not depend on the instruction set: of g = dy * scale, and of g * u.
 * Sums of dy and dy * u for the parameters of the elements. */
typedef struct Slopes {
    double sums[LANES], products[LANES];
    double *for_offset, *for_scale;
} Slopes;

/* Elements of a line in runs of `length`, of which each has its own parameters. `reach` elements may be read. */
typedef struct Runs {
    int64_t count, length, reach;
    const float *scale, *offset;
} Runs;

/* Sums over a line of g and of g * u; those that a run's dy and dy * u are added to. */
typedef struct Totals {
    double sum, product;
    double *for_offset, *for_scale;
} Totals;

/* What is taken from each g: `slope`, and `product` times u. */
typedef struct Means {
    float slope, product;
} Means;

/* Memory that will soon be accessed, `bytes` for each element of a loop that fetches it while it computes: all at once
 * would have to wait until the processor has asked for the first. */
typedef struct Ahead {
    const void *from;
    int64_t bytes;
} Ahead;

/* Lines side by side: element j of line k is number j * NORMAL_COLUMNS + k. */
enum { NORMAL_COLUMNS = 32 };

/* x, y and gradients are of one type. */
typedef struct NormalLoops {
    void (*sum_moments)(Moments *moments, const void *x, int64_t count, bool centred, Ahead read);
    /* y = v */
    void (*find_normal)(void *y, const void *x, int64_t count, LineNumbers line, Parameters by, Ahead written);
    /* Adds to all sums; `read` are two. */
    void (*sum_slopes)(Slopes *slopes, const void *dy, const void *x, int64_t count, LineNumbers line, Parameters by,
                       const Ahead *read);
    /* dx = (g - means.slope - u * means.product) * inverse */
    void (*find_gradient)(void *dx, const void *dy, const void *x, int64_t count, LineNumbers line, Parameters by,
                          Means means, Ahead written);
    /* The same for short runs. */
    void (*normal_runs)(void *y, const void *x, LineNumbers line, Runs runs);
    void (*sum_runs)(Totals *totals, const void *dy, const void *x, LineNumbers line, Runs runs);
    void (*gradient_runs)(void *dx, const void *dy, const void *x, LineNumbers line, Runs runs, Means means);
    /* Lines side by side, in place: x becomes v, dy becomes dx. Sums for the parameters have LANES parts each. */
    void (*normal_columns)(void *x, int64_t line, bool centred, double epsilon, Parameters by, double *means,
                           double *inverses);
    void (*gradient_columns)(void *dy, const void *x, int64_t line, bool centred, const float *means,
                             const float *inverses, Parameters by, double *for_offset, double *for_scale);
} NormalLoops;

/* NULL: the type is none of float32, float16 and bfloat16. */
const NormalLoops *us_normal_loops(DType dtype);

double us_sum_of_parts(const double *parts);

/* y * sigmoid(swish * y) in place; dy times the slope of that at v. */
void us_apply_swish(float *y, int64_t count, float swish);
void us_apply_swish_slope(float *dy, const float *v, int64_t count, float swish);

/* t * factor + added + bias in place; NULL: none. */
void us_scale_and_add(float *t, const float *added, const float *bias, int64_t count, float factor);

#endif
