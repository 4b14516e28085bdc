/* Copies of elements between views, bit by bit: transposes, slices, broadcasts, tiles and whatever else strides can say. */
#ifndef UNDERSTUDY_COPY_VIEW_H
#define UNDERSTUDY_COPY_VIEW_H

#include "tensor/view.h"

/* Bytes of a row of the least square that is turned at once. */
enum { SQUARE_BYTES = 16 };

/* to = from. One shape, element types of one size; the views share no element, but `from` may repeat its own (stride 0). */
void us_copy_view(const View *to, const View *from);

/* Every element is `element`, or 0; the view may be empty. */
void us_fill_view(const View *target, const void *element);
void us_clear_view(const View *target);

/* to[c][r] = from[r][c] on the calling thread: elements of `element` bytes, neighbours in the rows of both, which are to_row and
 * from_row bytes apart. */
void us_transpose(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t rows, int64_t columns,
                  int64_t element);

#endif
