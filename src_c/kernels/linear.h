/* A view's elements by their number in row-major order: for kernels whose tensors need not have the same shape. */
#ifndef UNDERSTUDY_LINEAR_H
#define UNDERSTUDY_LINEAR_H

#include "tensor/view.h"

/* Elements begin … begin+count-1 of the view as float or double, and back. */
void us_linear_load_float(const View *view, int64_t begin, int64_t count, float *values);
void us_linear_load_double(const View *view, int64_t begin, int64_t count, double *values);
void us_linear_store_float(const View *view, int64_t begin, int64_t count, const float *values);
void us_linear_store_double(const View *view, int64_t begin, int64_t count, const double *values);

#endif
