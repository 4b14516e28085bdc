/* Slopes of the keys of a sequence, of which each row has some. Rows are taken in groups: those of a group are differentiated on
 * all threads, and then what they leave is added in their order. So the bits are the same for any number of threads. */
#ifndef UNDERSTUDY_ATTENTION_KEY_SLOPES_H
#define UNDERSTUDY_ATTENTION_KEY_SLOPES_H

#include "kernels/kernels.h"

typedef struct KeySlopes {
    int64_t most, width, group; /* keys of a row; numbers of a key; rows of a group */
    float *sums;                /* of every key of the sequence */
    float *slopes;              /* of every row of a group: those of its keys */
    int64_t *places, *counts;   /* of every row of a group: its keys, and how many there are */
} KeySlopes;

/* Rows of a group, as far as there is room for what they leave. */
int64_t us_row_group(int64_t most, int64_t width);

/* Room for the keys of a sequence, whose sums are 0, and for a group of its rows. A block of scratch memory; NULL: there is
 * none. */
void *us_take_key_slopes(KeySlopes *slopes, int64_t keys);
void us_add_key_slopes(const KeySlopes *slopes, int64_t rows);

#endif
