/* One row of us_quantize_rows, for kernels that make the rows. */
#ifndef UNDERSTUDY_QUANTIZE_ROWS_H
#define UNDERSTUDY_QUANTIZE_ROWS_H

#include "kernels/quantize/quantize.h"
#include "tensor/axes.h"

/* Where they go, and how. */
typedef struct QuantizedRows {
    View y, scale, offset; /* the last two may be absent */
    Axes of_y, of_scale, of_offset;
    QuantizeRows how;
} QuantizedRows;
QuantizedRows us_quantized_rows(const View *y, const View *scale, const View *offset, const QuantizeRows *how);

/* Row `row` of y, its scale, and its offset if that is given. Of x nothing is left. */
void us_quantize_row(const QuantizedRows *rows, int64_t row, int64_t length, float *x);
/* Their integers, without a scale. */
void us_round_row(const QuantizedRows *rows, int64_t row, int64_t length, float *x);

/* Ends of groups of rows, or their sizes (int32 or int64), as ends that do not fall back and do not pass the last row; returns
 * the last one, 0 without groups. held: NULL, or room for them all. */
int64_t us_hold_ends(const View *ends, bool sizes, int64_t rows, int64_t *held);
/* The first group that ends behind the row; `groups` behind the last one. */
int64_t us_group_of(const int64_t *held, int64_t groups, int64_t row);

#endif
