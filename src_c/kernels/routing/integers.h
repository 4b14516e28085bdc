/* Integers of views, int32 or int64: for the files of this folder. */
#ifndef UNDERSTUDY_ROUTING_INTEGERS_H
#define UNDERSTUDY_ROUTING_INTEGERS_H

#include "kernels/kernels.h"
#include "kernels/sort/lines.h"

/* Number `column` of row `row`, a line along the last axis. */
static inline int64_t us_integer_at(const View *view, int64_t row, int64_t column)
{
    const Line line = us_line_of(view, view->rank - 1, row);
    const char *element = us_line_element(&line, column);
    return line.dtype == DTYPE_INT64 ? *(const int64_t *)element : *(const int32_t *)element;
}

/* All `count` of them in row-major order. One that is not in lowest … limit - 1 is a fault: "place 3 of 8 is …". */
KernelStatus us_read_integers(const View *view, const char *name, int64_t lowest, int64_t limit, int64_t count, int64_t *to);
/* The fault of number i. */
KernelStatus us_integer_fault(const char *name, const int64_t *integers, int64_t i, int64_t count, int64_t lowest, int64_t limit);

#endif
