/* Low-rank updates of rows, each by the weights of its own adapter. */
#ifndef UNDERSTUDY_LORA_H
#define UNDERSTUDY_LORA_H

#include "kernels/kernels.h"

/* out = y, but from column `begin` on y + scale * (x a^T) b^T, with a and b those that the row's index names, in float32 and
 * rounded once. An index outside them is a fault.
 * Views: y [rows, width], x [rows, depth], b [adapters, columns, rank], indices [rows] (int32), out (as y; may be y itself),
 * a? [adapters, rank, depth]: without it x is x a^T. */
typedef struct AddLora {
    int64_t begin;
    float scale;
} AddLora;
Kernel us_add_lora;

#endif
