/* Copies of elements between views, bit by bit: transposes, slices, broadcasts, tiles and whatever else strides can say. */
#ifndef UNDERSTUDY_COPY_VIEW_H
#define UNDERSTUDY_COPY_VIEW_H

#include "tensor/view.h"

/* to = from. One shape, element types of one size; the views share no element, but `from` may repeat its own (stride 0). */
void us_copy_view(const View *to, const View *from);

/* Every element is `element`, or 0; the view may be empty. */
void us_fill_view(const View *target, const void *element);
void us_clear_view(const View *target);

#endif
