/* The attention that an indexer learns from. */
#ifndef UNDERSTUDY_ATTENTION_TEACHER_H
#define UNDERSTUDY_ATTENTION_TEACHER_H

#include "kernels/attention/tokens.h"

/* Views: query [rows…, M * group, D], key [keys…, M, D], their further parts of R numbers where R is not 0, maximum and sum
 * [batch, M, row, group] or, of packed rows, [M, row, group]. */
typedef struct Teacher {
    const View *query, *key, *rotary_query, *rotary_key, *maximum, *sum;
    float scale;
    int64_t key_heads, group, depth, rotary; /* M; heads that share a key; D and R */
} Teacher;

/* Rows that follow each other in a sequence, and keys of it: those at places, or without places from `key` on. */
typedef struct Lesson {
    int64_t sequence, row, rows; /* row: its number, as in tokens.h */
    const int64_t *places;
    int64_t key, keys;
    float *taught; /* of each row the sums over heads of e^(scale q k - maximum) / sum, of each key; `stride` from row to row */
    int64_t stride;
} Lesson;

KernelStatus us_teach(const Teacher *teacher, const Tokens *tokens, const Lesson *lesson);

#endif
