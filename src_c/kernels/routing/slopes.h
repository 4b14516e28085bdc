/* Rows of gradients: for the files of this folder. */
#ifndef UNDERSTUDY_ROUTING_SLOPES_H
#define UNDERSTUDY_ROUTING_SLOPES_H

#include "tensor/view.h"

/* Row `to` of `gradient` = scale * row `from` of slopes; -1: zeros. */
void us_put_slopes(const View *slopes, int64_t from, float scale, const View *gradient, int64_t to);

/* The sum of row `row` of slopes times (token `place` + row `expert` of bias), in double, rounded once; -1: none. */
float us_dot_slopes(const View *slopes, int64_t row, const View *tokens, int64_t place, const View *bias, int64_t expert);

#endif
