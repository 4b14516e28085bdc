/* The loops of batch normalization over the elements of one block: sums and results. */
#ifndef UNDERSTUDY_BATCH_NORM_LINES_H
#define UNDERSTUDY_BATCH_NORM_LINES_H

#include "kernels/fold.h"
#include "kernels/norm/batch_norm.h"

/* Operands of the fold, forwards and backwards. */
enum { OPERAND_X, OPERAND_Z, OPERAND_Y };
enum { OPERAND_DY = 1, OPERAND_DX, OPERAND_DZ };

/* One number per column in the compute type; whole vectors lie in one cache line. */
typedef union Numbers {
    _Alignas(64) float floats[FOLD_WIDTH];
    double doubles[FOLD_WIDTH];
} Numbers;

/* What results are formed from. Forwards: (x - mean) * scale + shift.
 * Backwards: scale * (g - shift - (x - mean) * tilt). */
typedef struct Columns {
    Numbers mean, scale, shift, tilt;
} Columns;

/* One call. */
typedef struct NormWork {
    const BatchNorm *norm;
    const View *parameters; /* as the kernels' header lists them, from the scale on */
    const struct Loops *loops;
    Fold fold;
    double elements; /* of a group */
    bool past;       /* results are large: they go past the caches */
    uint8_t *mask;   /* NULL: none */
    int64_t mask_row;
} NormWork;

void us_norm_begin(NormWork *work, const BatchNorm *norm, int operand_count, const View *operands,
                   const View *parameters, const View *mask);

/* The numbers of a block's groups, once per column. */
void us_norm_set(const NormWork *work, int64_t groups, const double *values, Numbers *numbers);

/* Sums of x - centre and of its square; of g and of g * (x - centre). The centres are rounded to the compute type. */
void us_norm_sum_moments(const NormWork *work, int64_t block, int64_t chunk, const double *centres, double *sums);
/* The moments of a whole block, every square in double. */
void us_norm_sum_moments_wide(const NormWork *work, int64_t block, const double *centres, double *sum, double *product);
void us_norm_sum_slopes(const NormWork *work, int64_t block, int64_t chunk, const double *centres, double *sums);

void us_norm_apply_forward(const NormWork *work, int64_t block, int64_t chunk, const Columns *columns);
void us_norm_apply_backward(const NormWork *work, int64_t block, int64_t chunk, const Columns *columns);

#endif
