/* The random numbers of all operators: Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy
 * as 1, 2, 3", 2011). A counter makes four words of 32 bits, so any of them can be made by any thread. */
#ifndef UNDERSTUDY_PHILOX_H
#define UNDERSTUDY_PHILOX_H

#include <stdint.h>

/* The key is the seed; a counter's low half is the number of a block of four words, its high half the offset: calls
 * with other offsets have nothing in common. */
typedef struct RandomStream {
    uint64_t seed, offset;
} RandomStream;

/* Sixteen blocks are a group; its words are the first ones of its blocks, then the second ones, … */
enum { PHILOX_LANES = 16, PHILOX_GROUP = 4 * PHILOX_LANES };

/* The words of groups first … first + groups - 1. */
void us_philox_words(RandomStream stream, uint64_t first, int64_t groups, uint32_t *words);

/* A number of 64 bits as one of 0 … range - 1: the high half of their product. Range 0 stands for 2^64. */
static inline uint64_t us_random_below(uint64_t number, uint64_t range)
{
    __extension__ typedef unsigned __int128 Product;
    return range == 0 ? number : (uint64_t)((Product)number * range >> 64);
}

#endif
