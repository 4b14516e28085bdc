#include "kernels/matmul/bf16_tiles.h"

#include "report/report.h"
#include "tensor/convert.h"
#include "tensor/levels.h"

#include <stdatomic.h>

enum { SIDE = BF16_SIDE };

/* How numbers are multiplied, from the slowest. */
typedef enum Instructions { NONE, AVX512, AMX } Instructions;

#ifdef US_BF16

#include <cpuid.h>
#include <immintrin.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- the processor ----------------------------------------------------------------------------------------------- */

/* Asks the kernel for the tiles' state, for the whole process. */
static bool may_use_tiles(void)
{
    enum { FEATURES = 7, TILE_BITS = 1 << 22 | 1 << 24 | 1 << 25, REQUEST = 0x1023, TILE_DATA = 18 };
    unsigned a, b, c, d;
    return __get_cpuid_count(FEATURES, 0, &a, &b, &c, &d) && (d & TILE_BITS) == TILE_BITS &&
           syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

static Instructions best_instructions(Instructions most)
{
    if (most < AVX512 || !us_is_v4() || !__builtin_cpu_supports("avx512bf16")) {
        return NONE;
    }
    return most == AMX && may_use_tiles() ? AMX : AVX512;
}

static Instructions instructions(void)
{
    static _Atomic int known; /* instructions + 1; 0: not looked up yet */
    int found = atomic_load_explicit(&known, memory_order_relaxed) - 1;
    if (found < 0) {
        static const char *const names[] = {"off", "avx512", "amx", NULL};
        found = (int)best_instructions((Instructions)us_environment_choice("UNDERSTUDY_BF16", names, AMX));
        atomic_store_explicit(&known, found + 1, memory_order_relaxed);
    }
    return (Instructions)found;
}

/* ---- by AMX ------------------------------------------------------------------------------------------------------ */

#pragma GCC push_options
#pragma GCC target("avx512f,amx-tile,amx-bf16,amx-int8")

/* Tiles 0 to 3: sums, 4 and 5: A, 6 and 7: B. Not on the stack: GCC's intrinsic does not say that it reads all of it. */
enum { ROW = 64 };
static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} all_tiles = {.palette = 1,
               .row_bytes = {ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW},
               .rows = {SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE}};

static void begin(void)
{
    _tile_loadconfig(&all_tiles);
}

static void end(void)
{
    _tile_release();
}

static inline void load_sums(const float *c, int64_t stride, bool adds)
{
    if (adds) {
        _tile_loadd(0, c, stride * 4);
        _tile_loadd(1, c + SIDE, stride * 4);
        _tile_loadd(2, c + SIDE * stride, stride * 4);
        _tile_loadd(3, c + SIDE * stride + SIDE, stride * 4);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
}

/* The intrinsics want the numbers of tiles as they are written. */
#define ADD_PRODUCT(bytes, sums, a, b) \
    if (bytes) { \
        _tile_dpbusd(sums, a, b); \
    } else { \
        _tile_dpbf16ps(sums, a, b); \
    }

US_ALWAYS_INLINE void add_tiles(const Bf16Meeting *meeting, bool bytes, int64_t of_a, int64_t of_b, bool two_a, bool two_b)
{
    const int64_t a_row = meeting->a_row * 2, b_row = meeting->b_row * 2;
    _tile_loadd(6, meeting->b[0] + of_b, b_row);
    _tile_loadd(4, meeting->a[0] + of_a, a_row);
    ADD_PRODUCT(bytes, 0, 4, 6)
    if (two_b) {
        _tile_loadd(7, meeting->b[1] + of_b, b_row);
        ADD_PRODUCT(bytes, 1, 4, 7)
    }
    if (two_a) {
        _tile_loadd(5, meeting->a[1] + of_a, a_row);
        ADD_PRODUCT(bytes, 2, 5, 6)
    }
    if (two_a && two_b) {
        ADD_PRODUCT(bytes, 3, 5, 7)
    }
}
#undef ADD_PRODUCT

US_ALWAYS_INLINE void add_all_tiles(const Bf16Meeting *meeting, bool bytes, bool two_a, bool two_b)
{
    for (int64_t tile = 0; tile < meeting->tiles; tile++) {
        const int64_t of_a = meeting->a_tiles[tile], of_b = meeting->b_tiles[tile];
        for (int b = 0; b < meeting->parts; b++) {
            for (int a = 0; a < meeting->parts; a++) {
                add_tiles(meeting, bytes, of_a + a * meeting->a_part, of_b + b * meeting->b_part, two_a, two_b);
            }
        }
    }
}

US_ALWAYS_INLINE void add_meeting(const Bf16Meeting *meeting, bool bytes)
{
    const bool two_a = meeting->a[1] != meeting->a[0], two_b = meeting->b[1] != meeting->b[0];
    if (two_a && two_b) {
        add_all_tiles(meeting, bytes, true, true);
    } else if (two_a) {
        add_all_tiles(meeting, bytes, true, false);
    } else if (two_b) {
        add_all_tiles(meeting, bytes, false, true);
    } else {
        add_all_tiles(meeting, bytes, false, false);
    }
}

static void multiply_by_tiles(const Bf16Meeting *meeting, float *c, int64_t stride, bool adds)
{
    __asm__ volatile("" ::: "memory"); /* GCC's intrinsics do not say that they read memory */
    load_sums(c, stride, adds);
    if (meeting->bytes) {
        add_meeting(meeting, true);
    } else {
        add_meeting(meeting, false);
    }
    _tile_stored(0, c, stride * 4);
    _tile_stored(1, c + SIDE, stride * 4);
    _tile_stored(2, c + SIDE * stride, stride * 4);
    _tile_stored(3, c + SIDE * stride + SIDE, stride * 4);
}

#pragma GCC pop_options

/* ---- by AVX-512 -------------------------------------------------------------------------------------------------- */

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512bf16,avx512vnni")

/* As many sums as the instruction's latency and throughput ask for: rows of A by strips of B. */
enum { SUMS = 16, PAIRS = BF16_DEEP / 2 };

US_ALWAYS_INLINE __m512i pair_of(const uint16_t *from)
{
    int pair;
    memcpy(&pair, from, sizeof pair);
    return _mm512_set1_epi32(pair);
}

/* Sums of float32, or of int32. */
US_ALWAYS_INLINE __m512i add_pair(bool bytes, __m512i sums, __m512i a, __m512i b)
{
    return bytes ? _mm512_dpbusd_epi32(sums, a, b)
                 : _mm512_castps_si512(_mm512_dpbf16_ps(_mm512_castsi512_ps(sums), (__m512bh)a, (__m512bh)b));
}

/* The first pairs of a tile of A by those of B. */
US_ALWAYS_INLINE void add_pairs(bool bytes, __m512i *sums, const uint16_t *a, int64_t a_row, const uint16_t *const *b,
                                int64_t of_b, int64_t b_row, int strips, int64_t pairs)
{
#pragma GCC unroll 4
    for (int64_t pair = 0; pair < pairs; pair++) {
        __m512i columns[2];
        for (int i = 0; i < strips; i++) {
            columns[i] = _mm512_loadu_si512(b[i] + of_b + pair * b_row);
        }
        for (int row = 0; row < SUMS / strips; row++) {
            const __m512i numbers = pair_of(a + row * a_row + 2 * pair);
            for (int i = 0; i < strips; i++) {
                sums[row * strips + i] = add_pair(bytes, sums[row * strips + i], numbers, columns[i]);
            }
        }
    }
}

/* sums += products of some rows of A. */
US_ALWAYS_INLINE void add_rows(const Bf16Meeting *meeting, bool bytes, const uint16_t *a, int64_t a_row, int64_t b_row,
                               __m512i *sums, int strips)
{
    const int64_t last = meeting->tiles - 1;
    for (int64_t tile = 0; tile < last; tile++) {
        add_pairs(bytes, sums, a + meeting->a_tiles[tile], a_row, meeting->b, meeting->b_tiles[tile], b_row, strips, PAIRS);
    }
    add_pairs(bytes, sums, a + meeting->a_tiles[last], a_row, meeting->b, meeting->b_tiles[last], b_row, strips,
              PAIRS - meeting->empty);
}

US_ALWAYS_INLINE void multiply_rows(const Bf16Meeting *meeting, bool bytes, const uint16_t *a, int64_t a_row, int64_t b_row,
                                    float *c, int64_t stride, bool adds, int strips)
{
    __m512i sums[SUMS];
    for (int i = 0; i < SUMS; i++) {
        sums[i] = adds ? _mm512_loadu_si512(c + i / strips * stride + i % strips * SIDE) : _mm512_setzero_si512();
    }
    add_rows(meeting, bytes, a, a_row, b_row, sums, strips);
    for (int i = 0; i < SUMS; i++) {
        _mm512_storeu_si512(c + i / strips * stride + i % strips * SIDE, sums[i]);
    }
}

US_ALWAYS_INLINE void multiply_strips(const Bf16Meeting *meeting, bool bytes, int64_t a_row, int64_t b_row, float *c,
                                      int64_t stride, bool adds)
{
    const bool two_b = meeting->b[1] != meeting->b[0];
    for (int strip = 0; strip < 2 && (strip == 0 || meeting->a[1] != meeting->a[0]); strip++) {
        const uint16_t *a = meeting->a[strip];
        float *to = c + strip * SIDE * stride;
        if (two_b) {
            for (int half = 0; half < 2; half++) {
                const int64_t row = half * SIDE / 2;
                multiply_rows(meeting, bytes, a + row * a_row, a_row, b_row, to + row * stride, stride, adds, 2);
            }
        } else {
            multiply_rows(meeting, bytes, a, a_row, b_row, to, stride, adds, 1);
        }
    }
}

/* Of whole tiles the compiler knows every offset, and 1.06 times as many products pass a second. */
static void multiply_by_pairs(const Bf16Meeting *meeting, float *c, int64_t stride, bool adds)
{
    if (meeting->bytes) {
        multiply_strips(meeting, true, BF16_DEEP, BF16_DEEP, c, stride, adds);
    } else if (meeting->a_row == BF16_DEEP && meeting->b_row == BF16_DEEP) {
        multiply_strips(meeting, false, BF16_DEEP, BF16_DEEP, c, stride, adds);
    } else {
        multiply_strips(meeting, false, meeting->a_row, meeting->b_row, c, stride, adds);
    }
}

/* 32 sums, none of them denormal, as bfloat16; or as float16. */
US_ALWAYS_INLINE __m512i rounded_pair(__m512i first, __m512i second, bool half)
{
    const __m512 low = _mm512_castsi512_ps(first), high = _mm512_castsi512_ps(second);
    return half ? _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT)),
                                     _mm512_cvtps_ph(high, _MM_FROUND_TO_NEAREST_INT), 1)
                : (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

/* A row of 32 sums, of which the mask's belong to the result. */
US_ALWAYS_INLINE void round_row(__m512i first, __m512i second, bool half, uint16_t *to, __mmask32 mask)
{
    const __m512i rounded = rounded_pair(first, second, half);
    if (mask == UINT32_MAX) { /* masked stores are slow */
        _mm512_storeu_si512(to, rounded);
    } else {
        _mm512_mask_storeu_epi16(to, mask, rounded);
    }
}

static void round_rows(const float *sums, int64_t rows, bool half, uint16_t *to, int64_t stride, __mmask32 mask)
{
    for (int64_t i = 0; i < rows; i++, sums += BF16_BLOCK) {
        round_row(_mm512_loadu_si512(sums), _mm512_loadu_si512(sums + SIDE), half, to + i * stride, mask);
    }
}

static void multiply_rounded_by_pairs(const Bf16Meeting *meeting, int64_t rows, uint16_t *c, int64_t stride, __mmask32 mask)
{
    enum { ROWS = SUMS / 2 };
    for (int64_t row = 0; row < rows; row += ROWS) {
        const uint16_t *a = meeting->a[row / SIDE] + row % SIDE * BF16_DEEP;
        __m512i sums[SUMS] = {_mm512_setzero_si512()};
        add_rows(meeting, false, a, BF16_DEEP, BF16_DEEP, sums, 2);
        for (int i = 0; i < ROWS && row + i < rows; i++) {
            round_row(sums[2 * i], sums[2 * i + 1], false, c + (row + i) * stride, mask);
        }
    }
}

#pragma GCC pop_options

/* ---- by either --------------------------------------------------------------------------------------------------- */

static bool multiplies_bytes(void)
{
    return instructions() != NONE && __builtin_cpu_supports("avx512vnni");
}

bool us_bf16_takes(DType a, DType b)
{
    if (a == DTYPE_UINT16) {
        return b == a && multiplies_bytes();
    }
    /* Without AMX, float32 is faster than the four products of two parts each. */
    return a == b && ((a == DTYPE_BFLOAT16 && instructions() != NONE) || (a == DTYPE_FLOAT16 && instructions() == AMX));
}

void us_bf16_begin(void)
{
    if (instructions() == AMX) {
        begin();
    }
}

void us_bf16_end(void)
{
    if (instructions() == AMX) {
        end();
    }
}

int64_t us_bf16_slab(int64_t limit)
{
    enum { IN_FIRST_CACHE = 8 };
    return instructions() == AMX && limit > IN_FIRST_CACHE ? IN_FIRST_CACHE : limit;
}

void us_bf16_multiply_block(const Bf16Meeting *meeting, float *c, int64_t stride, bool adds)
{
    if (instructions() == AMX) {
        multiply_by_tiles(meeting, c, stride, adds);
    } else {
        multiply_by_pairs(meeting, c, stride, adds);
    }
}

void us_bf16_multiply_rounded(const Bf16Meeting *meeting, int64_t rows, int64_t columns, uint16_t *c, int64_t stride)
{
    const uint32_t mask = (uint32_t)((UINT64_C(1) << columns) - 1);
    if (instructions() == AMX) {
        _Alignas(64) float sums[BF16_BLOCK * BF16_BLOCK];
        multiply_by_tiles(meeting, sums, BF16_BLOCK, false);
        round_rows(sums, rows, meeting->parts == 2, c, stride, mask);
    } else {
        multiply_rounded_by_pairs(meeting, rows, c, stride, mask);
    }
}

#else /* nothing but us_bf16_takes is called */

bool us_bf16_takes(DType a, DType b)
{
    (void)a, (void)b;
    return false;
}

void us_bf16_begin(void)
{
}

void us_bf16_end(void)
{
}

int64_t us_bf16_slab(int64_t limit)
{
    return limit;
}

void us_bf16_multiply_block(const Bf16Meeting *meeting, float *c, int64_t stride, bool adds)
{
    (void)meeting, (void)c, (void)stride, (void)adds;
}

void us_bf16_multiply_rounded(const Bf16Meeting *meeting, int64_t rows, int64_t columns, uint16_t *c, int64_t stride)
{
    (void)meeting, (void)rows, (void)columns, (void)c, (void)stride;
}

#endif
