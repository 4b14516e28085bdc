/* Rows of tokens in paged caches of keys and values. A cache is [pages, rows, ...]: slot s is row s % rows of page s / rows.
 * Places are int32 or int64. What they name and is not there is a fault, before anything is written. */
#ifndef UNDERSTUDY_INDEX_SLOTS_H
#define UNDERSTUDY_INDEX_SLOTS_H

#include "kernels/kernels.h"

/* Token t is written to slot slots[t] of its cache, token by token, so that of several for one slot the last one stays; a token
 * of slot -1 is left out. The caches have the same pages and rows.
 * views: slots [tokens]; for each of `pairs` tokens [tokens, ...], cache. */
typedef struct Slots {
    int32_t pairs;
} Slots;
Kernel us_put_slots;

/* The tokens of each head of each sequence, one behind another from a slot of their own on. Sequence b has lengths[b] tokens
 * behind those of sequence b - 1, in all those that there are. Entry b * heads + h of slots, counts and begins says what is
 * kept of head h: without begins the last counts[…] tokens; else all, with the mean of tokens begins[…] … + counts[…] - 1 in
 * their place (of none: nothing). Means are sums in float64, rounded once; those of integers truncate.
 * views: slots, counts [sequences * heads], lengths [sequences], begins? [sequences * heads]; for each of `pairs` tokens
 * [tokens, heads, depth], cache [pages, rows, depth]. */
Kernel us_put_compressed;

/* Token t of sequence b comes from row r % rows of the page that pages[b, r / rows] numbers, r = t + offsets[b] / rows * rows.
 * The tokens of a sequence lie behind those of the one before it; those behind the last one stay.
 * views: pages [sequences, …]; lengths [sequences], or, `ends`, [sequences + 1] from 0 on where each begins and the last one
 * ends; offsets? [sequences]; for each of `pairs` cache, tokens [tokens, ...]. */
typedef struct TakePages {
    int32_t pairs;
    bool ends;
} TakePages;
Kernel us_take_pages;

/* A step of decoding for the first `queries` sequences: the sampled token is the sequence's, its position is the length so far,
 * which then grows by one, and its slot is that of this position in the sequence's blocks.
 * views: tokens, positions, lengths, slots [sequences, 1]; sampled [queries, 1]; blocks [sequences, …]; all int64. */
typedef struct AdvanceStep {
    int64_t block_size;
} AdvanceStep;
Kernel us_advance_step;

/* The same where each sequence has guesses for the tokens behind the sampled one, of which some were accepted: its first token
 * is the last sampled one that is not below 0, the others are the guesses, and all positions grow by one and the number of
 * accepted ones; a length is one more than its position.
 * views: tokens, positions, lengths, slots, sampled [sequences, 1 + guesses]; blocks [sequences, …];
 * guesses [sequences, guesses]; accepted [sequences]; all int64. */
Kernel us_advance_guesses;

#endif
