#include "kernels/matmul/bf16_tiles.h"

#include "tensor/convert.h"

#ifdef US_BF16

#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq")

/* ---- packing ----------------------------------------------------------------------------------------------------- */

enum { SIDE = BF16_SIDE, DEEP = BF16_DEEP };

US_ALWAYS_INLINE void transpose(__m512i *rows)
{
    __m512i t[SIDE];
    for (int i = 0; i < SIDE; i += 4) {
        const __m512i a = _mm512_unpacklo_epi32(rows[i], rows[i + 1]), b = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
        const __m512i c = _mm512_unpacklo_epi32(rows[i + 2], rows[i + 3]);
        const __m512i d = _mm512_unpackhi_epi32(rows[i + 2], rows[i + 3]);
        t[i] = _mm512_unpacklo_epi64(a, c);
        t[i + 1] = _mm512_unpackhi_epi64(a, c);
        t[i + 2] = _mm512_unpacklo_epi64(b, d);
        t[i + 3] = _mm512_unpackhi_epi64(b, d);
    }
    for (int i = 0; i < 4; i++) {
        const __m512i a = _mm512_shuffle_i32x4(t[i], t[i + 4], 0x88), b = _mm512_shuffle_i32x4(t[i], t[i + 4], 0xdd);
        const __m512i c = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0x88);
        const __m512i d = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0xdd);
        rows[i] = _mm512_shuffle_i32x4(a, c, 0x88);
        rows[i + 4] = _mm512_shuffle_i32x4(b, d, 0x88);
        rows[i + 8] = _mm512_shuffle_i32x4(a, c, 0xdd);
        rows[i + 12] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
}

/* Up to 32 numbers, the first one of every `step`, which is 1 or 2. */
static inline __m512i load_steps(const uint16_t *from, int64_t step, int64_t count)
{
    const uint64_t mask = count >= DEEP ? UINT64_MAX >> (step == 1 ? 0 : 1) : (UINT64_C(1) << (count * step - step + 1)) - 1;
    const __m512i low = _mm512_maskz_loadu_epi16((__mmask32)mask, from);
    if (step == 1) {
        return low;
    }
    const __m512i high = _mm512_maskz_loadu_epi16((__mmask32)(mask >> DEEP), from + DEEP);
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(low)), _mm512_cvtepi32_epi16(high), 1);
}

/* Lines that lie along the depth. */
static inline void load_lines(__m512i *rows, const uint16_t *from, const Bf16Operand *operand, int64_t lines, int64_t depth)
{
    for (int i = 0; i < SIDE; i++) {
        rows[i] = _mm512_setzero_si512();
        __builtin_prefetch(from + (i + SIDE) * operand->line_step);
        if (i < lines) {
            rows[i] = load_steps(from + i * operand->line_step, operand->depth_step, depth);
        }
    }
}

/* Up to 16 numbers. */
static inline __m512i load_few(const uint16_t *from, int64_t step, int64_t count)
{
    if (step == 1) {
        const __mmask16 mask = (__mmask16)((1U << count) - 1);
        return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from));
    }
    const __mmask32 mask = (__mmask32)((UINT64_C(1) << (2 * count - 1)) - 1);
    return _mm512_and_si512(_mm512_maskz_loadu_epi16(mask, from), _mm512_set1_epi32(0xffff));
}

/* Lines that lie beside each other, in pairs below each other. */
static inline void load_pairs(__m512i *rows, const uint16_t *from, const Bf16Operand *operand, int64_t lines, int64_t depth)
{
    const int64_t step = operand->depth_step, count = lines < SIDE ? lines : SIDE;
    for (int i = 0; i < SIDE; i++) {
        rows[i] = _mm512_setzero_si512();
        __builtin_prefetch(from + (DEEP + 2 * i) * step);
        __builtin_prefetch(from + (DEEP + 2 * i + 1) * step);
        if (2 * i < depth) {
            rows[i] = load_few(from + 2 * i * step, operand->line_step, count);
        }
        if (2 * i + 1 < depth) {
            const __m512i second = load_few(from + (2 * i + 1) * step, operand->line_step, count);
            rows[i] = _mm512_or_si512(rows[i], _mm512_slli_epi32(second, 16));
        }
    }
}

static void load_apart(__m512i *rows, const Bf16Operand *operand, const uint16_t *from, int64_t lines, int64_t depth)
{
    uint16_t values[SIDE][DEEP] = {{0}};
    for (int64_t i = 0; i < lines && i < SIDE; i++) {
        for (int64_t k = 0; k < depth && k < DEEP; k++) {
            values[i][k] = from[i * operand->line_step + k * operand->depth_step];
        }
    }
    for (int i = 0; i < SIDE; i++) {
        rows[i] = _mm512_loadu_si512(values[i]);
    }
}

/* The parts of 32 numbers of float16: the upper 8 bits of each significand, and the rest. */
static inline __m512i upper_halves(__m512i first, __m512i second)
{
    const __m256i a = _mm512_cvtepi32_epi16(_mm512_srli_epi32(first, 16));
    const __m256i b = _mm512_cvtepi32_epi16(_mm512_srli_epi32(second, 16));
    return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
}

static inline void split(__m512i halves, __m512i *high, __m512i *low)
{
    const __m512i mask = _mm512_set1_epi32((int)0xffff0000);
    const __m512 a = _mm512_cvtph_ps(_mm512_castsi512_si256(halves));
    const __m512 b = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1));
    const __m512i a_high = _mm512_and_si512(_mm512_castps_si512(a), mask);
    const __m512i b_high = _mm512_and_si512(_mm512_castps_si512(b), mask);
    *high = upper_halves(a_high, b_high);
    *low = upper_halves(_mm512_castps_si512(_mm512_sub_ps(a, _mm512_castsi512_ps(a_high))),
                        _mm512_castps_si512(_mm512_sub_ps(b, _mm512_castsi512_ps(b_high))));
}


/* Of magnitudes: the least one that is not zero, less 1, and the largest. */
typedef struct Extremes {
    __m512i least, most;
} Extremes;

static inline void look_at(Extremes *extremes, __m512i numbers)
{
    const __m512i found = _mm512_and_si512(numbers, _mm512_set1_epi16(0x7fff));
    extremes->least = _mm512_min_epu16(extremes->least, _mm512_sub_epi16(found, _mm512_set1_epi16(1)));
    extremes->most = _mm512_max_epu16(extremes->most, found);
}

/* The form that a tile is written in: padded, only the rows that are there, or only the numbers. */
static void store_rows(const Bf16Operand *operand, uint16_t *to, const __m512i *rows, int64_t lines, int64_t depth)
{
    const int64_t count = operand->fill == BF16_FILL_ALL || lines > SIDE ? SIDE : lines;
    if (operand->fill != BF16_FILL_NOTHING || depth >= DEEP) {
        for (int64_t i = 0; i < count; i++) {
            _mm512_storeu_si512(to + i * operand->layout.row, rows[i]);
        }
        return;
    }
    const __mmask32 mask = (__mmask32)((1U << depth) - 1);
    for (int64_t i = 0; i < count; i++) {
        _mm512_mask_storeu_epi16(to + i * operand->layout.row, mask, rows[i]);
    }
}

static inline void pack_tile(const Bf16Operand *operand, int64_t strip, int64_t tile, Extremes *extremes)
{
    const int64_t lines = operand->lines - strip * SIDE, depth = operand->depth - tile * DEEP;
    const uint16_t *from =
        (const uint16_t *)operand->data + strip * SIDE * operand->line_step + tile * DEEP * operand->depth_step;
    uint16_t *to = operand->tiles + strip * operand->layout.strip + tile * operand->layout.tile;
    const bool along = operand->depth_step == 1 || (operand->depth_step == 2 && operand->line_step != 1);
    const bool beside = !along && (operand->line_step == 1 || operand->line_step == 2);
    __m512i rows[SIDE], low[SIDE];
    if (beside) {
        load_pairs(rows, from, operand, lines, depth);
    } else if (along) {
        load_lines(rows, from, operand, lines, depth);
    } else {
        load_apart(rows, operand, from, lines, depth);
    }
    for (int i = 0; extremes != NULL && i < SIDE; i++) {
        look_at(extremes, rows[i]);
    }
    if (beside != operand->below) {
        transpose(rows);
    }
    if (us_bf16_parts(operand->dtype) == 2) {
        for (int i = 0; i < SIDE; i++) {
            split(rows[i], &rows[i], &low[i]);
        }
        store_rows(operand, to + operand->layout.part, low, lines, depth);
    }
    store_rows(operand, to, rows, lines, depth);
}

/* Two tiles of two whole strips of numbers in one part that lie beside each other, in pairs below each other. */
static void pack_wide(const Bf16Operand *operand, int64_t strip, int64_t tile, Extremes *extremes)
{
    static const uint16_t first[DEEP] = {0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39,
                                         8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
    const __m512i left = _mm512_loadu_si512(first), right = _mm512_add_epi16(left, _mm512_set1_epi16(SIDE));
    const int64_t step = operand->depth_step;
    const uint16_t *from = (const uint16_t *)operand->data + strip * SIDE + tile * DEEP * step;
    uint16_t *to = operand->tiles + strip * operand->layout.strip + tile * operand->layout.tile;
    for (int pair = 0; pair < DEEP / 2; pair++, from += 2 * step, to += operand->layout.row) {
        const __m512i a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(from + step);
        __builtin_prefetch(from + DEEP * step);
        __builtin_prefetch(from + (DEEP + 1) * step);
        if (extremes != NULL) {
            look_at(extremes, a);
            look_at(extremes, b);
        }
        _mm512_storeu_si512(to, _mm512_permutex2var_epi16(a, left, b));
        _mm512_storeu_si512(to + operand->layout.strip, _mm512_permutex2var_epi16(a, right, b));
    }
}

static bool is_wide(const Bf16Operand *operand, int64_t strip, int64_t tile)
{
    return operand->dtype != DTYPE_FLOAT16 && operand->line_step == 1 && operand->depth_step != 1 && operand->below &&
           operand->lines >= (strip + 2) * SIDE && operand->depth >= (tile + 1) * DEEP;
}

static Extremes no_extremes(void)
{
    return (Extremes){.least = _mm512_set1_epi16(-1), .most = _mm512_setzero_si512()};
}

static Bf16Range range_of(const Extremes *extremes)
{
    uint16_t least[DEEP], most[DEEP];
    Bf16Range range = us_bf16_no_range();
    _mm512_storeu_si512(least, extremes->least);
    _mm512_storeu_si512(most, extremes->most);
    for (int i = 0; i < DEEP; i++) {
        range = us_bf16_both(range, (Bf16Range){least[i], most[i]});
    }
    return range;
}

void us_bf16_pack(const Bf16Operand *operand, Bf16Range *range)
{
    const int64_t strips = us_bf16_count(operand->lines, SIDE), tiles = us_bf16_count(operand->depth, DEEP);
    const bool along = operand->depth_step == 1;
    Extremes extremes = no_extremes();
    for (int64_t outer = 0; outer < (along ? strips : tiles); outer++) {
        for (int64_t inner = 0; inner < (along ? tiles : strips); inner++) {
            const int64_t strip = along ? outer : inner, tile = along ? inner : outer;
            if (is_wide(operand, strip, tile)) {
                pack_wide(operand, strip, tile, range != NULL ? &extremes : NULL);
                inner++; /* two strips */
            } else {
                pack_tile(operand, strip, tile, range != NULL ? &extremes : NULL);
            }
        }
    }
    if (range != NULL) {
        *range = us_bf16_both(*range, range_of(&extremes));
    }
}

Bf16Range us_bf16_range(const void *numbers, int64_t count)
{
    const uint16_t *from = numbers;
    Extremes extremes = no_extremes();
    for (int64_t i = 0; i < count; i += DEEP) {
        const __mmask32 mask = count - i >= DEEP ? 0xffffffff : (__mmask32)((1U << (count - i)) - 1);
        look_at(&extremes, _mm512_maskz_loadu_epi16(mask, from + i));
    }
    return range_of(&extremes);
}

void us_bf16_columns(const float *sums, int64_t stride, const int32_t *rows, int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i += SIDE) {
        const int64_t part = count - i < SIDE ? count - i : SIDE;
        const __mmask16 mask = (__mmask16)((1U << part) - 1);
        __m512i block[SIDE];
        for (int64_t k = 0; k < SIDE; k++) {
            block[k] = _mm512_loadu_si512(sums + rows[k < part ? i + k : i] * stride);
        }
        transpose(block);
        for (int64_t k = 0; k < SIDE; k++) {
            _mm512_mask_storeu_epi32(to + k * count + i, mask, block[k]);
        }
    }
}

#pragma GCC pop_options

#else /* never called */

void us_bf16_pack(const Bf16Operand *operand, Bf16Range *range)
{
    (void)operand, (void)range;
}

Bf16Range us_bf16_range(const void *numbers, int64_t count)
{
    (void)numbers, (void)count;
    return us_bf16_no_range();
}

void us_bf16_columns(const float *sums, int64_t stride, const int32_t *rows, int64_t count, float *to)
{
    (void)sums, (void)stride, (void)rows, (void)count, (void)to;
}

#endif

bool us_bf16_is_exact(DType dtype, Bf16Range a, Bf16Range b)
{
    enum { INFINITE = 0x7c00, LEAST_NORMAL = 0x80, SIGNIFICAND = 7, BIAS = 127, LEAST_EXPONENT = -126 };
    if (dtype == DTYPE_FLOAT16) { /* its least number is 2^-24 */
        return a.most < INFINITE && b.most < INFINITE;
    }
    const int least[2] = {a.least + 1, b.least + 1};
    int unit = 0; /* products are multiples of 2^unit */
    for (int i = 0; i < 2; i++) {
        unit += (least[i] >> SIGNIFICAND) - BIAS - SIGNIFICAND;
    }
    return least[0] >= LEAST_NORMAL && least[1] >= LEAST_NORMAL && unit >= LEAST_EXPONENT;
}
