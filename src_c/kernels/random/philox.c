#include "kernels/random/philox.h"

#include "tensor/convert.h"
#include "tensor/intrinsics.h"
#include "tensor/levels.h"

enum { ROUNDS = 10 };

static const uint64_t MULTIPLIER_0 = 0xd2511f53, MULTIPLIER_1 = 0xcd9e8d57;
static const uint32_t KEY_STEP_0 = 0x9e3779b9, KEY_STEP_1 = 0xbb67ae85;

/* Blocks of a vector, and vectors at a time, none of which waits for another: AVX-512 has twice as many registers. */
enum { WIDTH = REGISTER_BYTES / (int)sizeof(uint64_t), VECTORS = REGISTER_BYTES == 64 ? 4 : 2 };

#if defined(__AVX512F__)
#define MULTIPLY_EVEN(words, factor) (Wide) _mm512_mul_epu32((__m512i)(words), _mm512_set1_epi64((long long)(factor)))
#elif defined(__AVX2__)
#define MULTIPLY_EVEN(words, factor) \
    (Wide) _mm256_mul_epu32((__m256i)(words), _mm256_set1_epi64x((long long)(factor)))
#elif defined(__SSE2__)
#define MULTIPLY_EVEN(words, factor) (Wide) _mm_mul_epu32((__m128i)(words), _mm_set1_epi64x((long long)(factor)))
#elif defined(__aarch64__)
#define MULTIPLY_EVEN(words, factor) \
    (Wide) vmull_u32(vmovn_u64((uint64x2_t)(words)), vdup_n_u32((uint32_t)(factor)))
#else
#define MULTIPLY_EVEN(words, factor) (((Wide)(words) & UINT32_MAX) * (factor))
#endif

/* A word in the low half of each element; what the high half holds does not matter. */
typedef uint64_t Wide __attribute__((vector_size(REGISTER_BYTES)));
typedef uint32_t Words __attribute__((vector_size(4 * WIDTH)));

typedef uint32_t Halves __attribute__((vector_size(REGISTER_BYTES)));

/* The high halves in the place of the low ones: a shuffle, while shifts wait for the multiplier's port. */
US_ALWAYS_INLINE Wide high_halves(Wide wide)
{
    Halves places;
    for (uint32_t k = 0; k < 2 * WIDTH; k++) {
        places[k] = k | 1;
    }
    return (Wide)__builtin_shuffle((Halves)wide, places);
}

US_ALWAYS_INLINE void store_words(uint32_t *words, const Wide *wide)
{
    const Words narrow = __builtin_convertvector(*wide, Words);
    memcpy(words, &narrow, sizeof narrow);
}

/* The words of the blocks whose numbers begin with this one, the first of a group or, of fewer, within it. */
US_ALWAYS_INLINE void make_blocks(RandomStream stream, uint64_t block, int count, uint32_t *words)
{
    const Wide zero = {0};
    Wide numbers = zero, a[VECTORS], b[VECTORS], c[VECTORS], d[VECTORS];
    for (uint32_t k = 0; k < WIDTH; k++) {
        numbers[k] = k;
    }
    for (int k = 0; k < count; k++) {
        const uint64_t first = block + (uint64_t)(k * WIDTH);
        a[k] = numbers + first;
        b[k] = zero + (first >> 32);
        c[k] = zero + stream.offset;
        d[k] = zero + (stream.offset >> 32);
    }
    uint32_t key_0 = (uint32_t)stream.seed, key_1 = (uint32_t)(stream.seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < ROUNDS; round++, key_0 += KEY_STEP_0, key_1 += KEY_STEP_1) {
#pragma GCC unroll 4
        for (int k = 0; k < count; k++) {
            const Wide of_a = MULTIPLY_EVEN(a[k], MULTIPLIER_0), of_c = MULTIPLY_EVEN(c[k], MULTIPLIER_1);
            a[k] = high_halves(of_c) ^ b[k] ^ (uint64_t)key_0;
            b[k] = of_c;
            c[k] = high_halves(of_a) ^ d[k] ^ (uint64_t)key_1;
            d[k] = of_a;
        }
    }
#pragma GCC unroll 4
    for (int k = 0; k < count; k++) {
        const int first = k * WIDTH;
        uint32_t *to = words + first / PHILOX_LANES * PHILOX_GROUP + first % PHILOX_LANES;
        store_words(to, &a[k]);
        store_words(to + PHILOX_LANES, &b[k]);
        store_words(to + 2 * PHILOX_LANES, &c[k]);
        store_words(to + 3 * PHILOX_LANES, &d[k]);
    }
}

void us_philox_words(RandomStream stream, uint64_t first, int64_t groups, uint32_t *words)
{
    enum { BLOCKS = WIDTH * VECTORS };
    const uint64_t block = first * PHILOX_LANES;
    const int64_t count = groups * PHILOX_LANES;
    int64_t k = 0;
    for (; k + BLOCKS <= count; k += BLOCKS) {
        uint32_t *to = words + k / PHILOX_LANES * PHILOX_GROUP + k % PHILOX_LANES;
        make_blocks(stream, block + (uint64_t)k, VECTORS, to);
    }
    if (k < count) { /* of two groups at a time one is left */
        make_blocks(stream, block + (uint64_t)k, VECTORS / 2, words + k / PHILOX_LANES * PHILOX_GROUP);
    }
}
