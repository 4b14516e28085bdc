/* Maps of tokens and experts, and the gates of their pairs: for the files of this folder. */
#ifndef UNDERSTUDY_ROUTING_BY_MAP_H
#define UNDERSTUDY_ROUTING_BY_MAP_H

#include "tensor/view.h"

#include <string.h>

static inline char *gate_at(const View *gates, int64_t token, int64_t expert)
{
    return (char *)gates->data + (token * gates->strides[0] + expert * gates->strides[1]) * (int64_t)us_dtype_size(gates->dtype);
}

static inline bool is_marked(const View *map, int64_t token, int64_t expert)
{
    return *gate_at(map, token, expert) != 0; /* a map has bytes */
}

static inline char *row_gate_at(const View *gates, int64_t row)
{
    return (char *)gates->data + row * gates->strides[0] * (int64_t)us_dtype_size(gates->dtype);
}

/* From one of the two to the other, of one type; from NULL: 0. */
static inline void copy_gate(char *to, const char *from, const View *gates)
{
    if (from == NULL) {
        memset(to, 0, us_dtype_size(gates->dtype));
    } else {
        memcpy(to, from, us_dtype_size(gates->dtype));
    }
}

#endif
