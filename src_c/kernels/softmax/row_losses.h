/* Softmax and cross entropy of rows by float64, whatever lies between their elements; short rows of float16 without gaps
 * by float32. */
#ifndef UNDERSTUDY_ROW_LOSSES_H
#define UNDERSTUDY_ROW_LOSSES_H

#include "kernels/kernels.h"

/* Row r is [r / inner, all, r % inner] of [outer, classes, inner]. With probabilities labels are an array like the logits,
 * of label_dtype, and loss = -sum label * log p; otherwise class_labels has one class per row and loss = -log p there. */
typedef struct RowLosses {
    const void *logits, *labels;
    const int *class_labels; /* NULL: labels */
    DType dtype, label_dtype, result; /* result: of what is written */
    int64_t outer, classes, inner;
    void *probabilities, *gradients, *losses; /* gradient: p - label. NULL: not wanted */
    double sum; /* of the losses, in order of the rows */
} RowLosses;

void us_row_losses(RowLosses *work);

#endif
