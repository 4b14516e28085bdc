#include "kernels/matmul/amx.h"

#include "kernels/matmul/lines.h"
#include "report/report.h"

#include <stdatomic.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define HAS_AMX 1
#endif

/* A strip is 16 lines of an operand: tiles of 32 of the depth, padded with zeros. A tile of A is rows of 16 pairs, one of
 * B has the pairs below each other: [pair][column][2]. Two strips of each meet at a time, over SLAB tiles, which stay in
 * the first cache. */
enum { SIDE = 16, DEEP = 32, TILE_ELEMENTS = SIDE * DEEP, SLAB = 8, BLOCK = 2 * SIDE };

static int64_t tiles_of(int64_t size, int64_t tile)
{
    return (size + tile - 1) / tile;
}

/* bfloat16 numbers whose sum is a number of the type. */
static int parts_of(DType dtype)
{
    return dtype == DTYPE_FLOAT16 ? 2 : 1;
}

size_t us_amx_panel(DType dtype, int64_t lines, int64_t depth)
{
    return (size_t)(tiles_of(lines, SIDE) * tiles_of(depth, DEEP) * parts_of(dtype) * TILE_ELEMENTS) * sizeof(uint16_t);
}

#ifdef HAS_AMX

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- the processor ----------------------------------------------------------------------------------------------- */

/* Asks the kernel for the tiles' state, for the whole process. */
static bool may_use_tiles(void)
{
    enum { FEATURES = 7, TILE_BITS = 1 << 22 | 1 << 24, REQUEST = 0x1023, TILE_DATA = 18 };
    unsigned a, b, c, d;
    return __get_cpuid_count(FEATURES, 0, &a, &b, &c, &d) && (d & TILE_BITS) == TILE_BITS &&
           syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

static bool is_used(void)
{
    enum { UNKNOWN, OFF, ON };
    static _Atomic int known;
    int found = atomic_load_explicit(&known, memory_order_relaxed);
    if (found == UNKNOWN) {
        static const char *const names[] = {"off", "on", NULL};
        __builtin_cpu_init();
        found = us_environment_choice("UNDERSTUDY_AMX", names, 1) == 1 && __builtin_cpu_supports("x86-64-v4") &&
                may_use_tiles() ? ON : OFF;
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return found == ON;
}

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-bf16")

/* ---- panels ------------------------------------------------------------------------------------------------------ */

/* Rows of A or columns of B; steps in elements. */
typedef struct Operand {
    const uint16_t *data;
    int64_t lines, depth, line_step, depth_step;
    bool below;  /* pairs lie below each other */
    int parts;
    uint16_t *panel;
    int64_t tiles; /* of the depth */
    __m512i extreme; /* of bfloat16, the least magnitude that is not zero, less 1; of float16, the largest */
} Operand;

static void transpose(__m512i *rows)
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

/* Lines that lie along the depth. */
static inline void load_lines(__m512i *rows, const uint16_t *from, int64_t step, int64_t lines, int64_t depth)
{
    const __mmask32 mask = depth >= DEEP ? 0xffffffff : (__mmask32)((1U << depth) - 1);
    for (int i = 0; i < SIDE; i++) {
        rows[i] = i < lines ? _mm512_maskz_loadu_epi16(mask, from + i * step) : _mm512_setzero_si512();
    }
}

/* Lines that lie beside each other, in pairs below each other. */
static inline void load_pairs(__m512i *rows, const uint16_t *from, int64_t step, int64_t lines, int64_t depth)
{
    const __mmask16 mask = lines >= SIDE ? 0xffff : (__mmask16)((1U << lines) - 1);
    for (int i = 0; i < SIDE; i++) {
        const __mmask16 low = 2 * i < depth ? mask : 0, high = 2 * i + 1 < depth ? mask : 0;
        const __m256i first = _mm256_maskz_loadu_epi16(low, from + 2 * i * step);
        const __m256i second = _mm256_maskz_loadu_epi16(high, from + (2 * i + 1) * step);
        rows[i] = _mm512_or_si512(_mm512_cvtepu16_epi32(first),
                                  _mm512_slli_epi32(_mm512_cvtepu16_epi32(second), 16));
    }
}

static void load_apart(__m512i *rows, const Operand *operand, const uint16_t *from, int64_t lines, int64_t depth)
{
    uint16_t values[SIDE][DEEP] = {{0}};
    for (int64_t i = 0; i < lines && i < SIDE; i++) {
        for (int64_t k = 0; k < depth && k < DEEP; k++) {
            values[i][k] = from[i * operand->line_step + k * operand->depth_step];
        }
    }
    load_lines(rows, values[0], DEEP, SIDE, DEEP);
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

static inline void pack_tile(Operand *operand, int64_t strip, int64_t tile)
{
    const int64_t lines = operand->lines - strip * SIDE, depth = operand->depth - tile * DEEP;
    const uint16_t *from = operand->data + strip * SIDE * operand->line_step + tile * DEEP * operand->depth_step;
    uint16_t *to = operand->panel + (strip * operand->tiles + tile) * operand->parts * TILE_ELEMENTS;
    const bool beside = operand->line_step == 1 && operand->depth_step != 1;
    __m512i rows[SIDE];
    if (beside) {
        load_pairs(rows, from, operand->depth_step, lines, depth);
    } else if (operand->depth_step == 1) {
        load_lines(rows, from, operand->line_step, lines, depth);
    } else {
        load_apart(rows, operand, from, lines, depth);
    }
    const __m512i magnitude = _mm512_set1_epi16(0x7fff), one = _mm512_set1_epi16(1);
    for (int i = 0; i < SIDE; i++) {
        const __m512i found = _mm512_and_si512(rows[i], magnitude);
        operand->extreme = operand->parts == 2 ? _mm512_max_epu16(operand->extreme, found)
                                               : _mm512_min_epu16(operand->extreme, _mm512_sub_epi16(found, one));
    }
    if (beside != operand->below) {
        transpose(rows);
    }
    for (int i = 0; i < SIDE; i++) {
        __m512i low;
        if (operand->parts == 2) {
            split(rows[i], &rows[i], &low);
            _mm512_store_si512(to + TILE_ELEMENTS + i * DEEP, low);
        }
        _mm512_store_si512(to + i * DEEP, rows[i]);
    }
}

static uint16_t least_of(__m512i values, bool largest)
{
    uint16_t all[DEEP];
    _mm512_storeu_si512(all, values);
    uint16_t found = all[0];
    for (int i = 1; i < DEEP; i++) {
        found = (all[i] > found) == largest ? all[i] : found;
    }
    return found;
}

/* Packs an operand, along its memory. Every number is a multiple of 2^unit; false: the instructions do not take some. */
static bool pack(Operand *operand, int *unit)
{
    enum { INFINITE = 0x7c00, LEAST_HALF = -24, LEAST_NORMAL = 0x80, SIGNIFICAND = 7, BIAS = 127 };
    const int64_t strips = tiles_of(operand->lines, SIDE);
    const bool halves = operand->parts == 2;
    operand->extreme = halves ? _mm512_setzero_si512() : _mm512_set1_epi16(-1);
    const bool along = operand->depth_step == 1;
    for (int64_t outer = 0; outer < (along ? strips : operand->tiles); outer++) {
        for (int64_t inner = 0; inner < (along ? operand->tiles : strips); inner++) {
            pack_tile(operand, along ? outer : inner, along ? inner : outer);
        }
    }
    const int extreme = least_of(operand->extreme, halves);
    *unit = halves ? LEAST_HALF : ((extreme + 1) >> SIGNIFICAND) - BIAS - SIGNIFICAND;
    return halves ? extreme < INFINITE : extreme + 1 >= LEAST_NORMAL;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* The part of two strips of A and two of B that is multiplied, and the order of the parts of their numbers. */
typedef struct Meeting {
    const uint16_t *a[2], *b[2];
    int64_t tiles;
    int a_parts, b_parts;
} Meeting;

/* Tiles 0 to 3: sums, 4 and 5: A, 6 and 7: B. Not on the stack: GCC's intrinsic does not say that it reads all of it. */
enum { ROW = 64 };
static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} all_tiles = {.palette = 1,
               .row_bytes = {ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW},
               .rows = {SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE}};

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

static void multiply_block(const Meeting *meeting, float *c, int64_t stride, bool adds)
{
    const uint16_t *a0 = meeting->a[0], *a1 = meeting->a[1], *b0 = meeting->b[0], *b1 = meeting->b[1];
    const int64_t a_step = meeting->a_parts * TILE_ELEMENTS, b_step = meeting->b_parts * TILE_ELEMENTS;
    __asm__ volatile("" ::: "memory"); /* GCC's intrinsics do not say that they read memory */
    load_sums(c, stride, adds);
    for (int64_t tile = 0; tile < meeting->tiles; tile++, a0 += a_step, a1 += a_step, b0 += b_step, b1 += b_step) {
        for (int pair = 0; pair < meeting->a_parts * meeting->b_parts; pair++) {
            const int64_t of_a = pair % meeting->a_parts * TILE_ELEMENTS, of_b = pair / meeting->a_parts * TILE_ELEMENTS;
            _tile_loadd(6, b0 + of_b, ROW);
            _tile_loadd(4, a0 + of_a, ROW);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(7, b1 + of_b, ROW);
            _tile_dpbf16ps(1, 4, 7);
            _tile_loadd(5, a1 + of_a, ROW);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, c, stride * 4);
    _tile_stored(1, c + SIDE, stride * 4);
    _tile_stored(2, c + SIDE * stride, stride * 4);
    _tile_stored(3, c + SIDE * stride + SIDE, stride * 4);
}

/* A block of which only a part belongs to the result. */
static void multiply_edge(const Meeting *meeting, int64_t rows, int64_t columns, float *c, int64_t stride, bool adds)
{
    _Alignas(64) float sums[BLOCK * BLOCK];
    for (int64_t i = 0; adds && i < rows; i++) {
        memcpy(sums + i * BLOCK, c + i * stride, (size_t)columns * sizeof *c);
    }
    multiply_block(meeting, sums, BLOCK, adds);
    for (int64_t i = 0; i < rows; i++) {
        memcpy(c + i * stride, sums + i * BLOCK, (size_t)columns * sizeof *c);
    }
}

/* The slab's tiles of a strip, or of the last strip instead of one behind it. */
static const uint16_t *strip_at(const Operand *operand, int64_t strip, int64_t tile)
{
    const int64_t last = tiles_of(operand->lines, SIDE) - 1;
    return operand->panel + (least(strip, last) * operand->tiles + tile) * operand->parts * TILE_ELEMENTS;
}

static void multiply_slab(const Operand *a, const Operand *b, int64_t first, int64_t tiles, bool adds, float *c,
                          int64_t stride)
{
    for (int64_t column = 0; column < b->lines; column += BLOCK) {
        for (int64_t row = 0; row < a->lines; row += BLOCK) {
            const int64_t rows = least(BLOCK, a->lines - row), columns = least(BLOCK, b->lines - column);
            Meeting meeting = {.tiles = tiles, .a_parts = a->parts, .b_parts = b->parts};
            for (int i = 0; i < 2; i++) {
                meeting.a[i] = strip_at(a, row / SIDE + i, first);
                meeting.b[i] = strip_at(b, column / SIDE + i, first);
            }
            float *to = c + row * stride + column;
            if (rows == BLOCK && columns == BLOCK) {
                multiply_block(&meeting, to, stride, adds);
            } else {
                multiply_edge(&meeting, rows, columns, to, stride, adds);
            }
        }
    }
}

bool us_amx_multiply(const Sizes *sizes, const Matrix *a, const Matrix *b, void *panel_a, void *panel_b, bool adds,
                       float *c, int64_t stride)
{
    enum { LEAST_EXPONENT = -126 };
    const int64_t tiles = tiles_of(sizes->k, DEEP);
    Operand left = {.data = a->data, .lines = sizes->m, .depth = sizes->k, .line_step = a->row, .depth_step = a->column,
                    .parts = parts_of(a->dtype), .panel = panel_a, .tiles = tiles};
    Operand right = {.data = b->data, .lines = sizes->n, .depth = sizes->k, .line_step = b->column,
                     .depth_step = b->row, .below = true, .parts = parts_of(b->dtype), .panel = panel_b, .tiles = tiles};
    int left_unit, right_unit;
    if (!pack(&left, &left_unit) || !pack(&right, &right_unit) || left_unit + right_unit < LEAST_EXPONENT) {
        return false;
    }
    _tile_loadconfig(&all_tiles);
    for (int64_t first = 0; first < tiles; first += SLAB) {
        multiply_slab(&left, &right, first, least(SLAB, tiles - first), adds || first > 0, c, stride);
    }
    _tile_release();
    return true;
}

#pragma GCC pop_options

bool us_amx_takes(DType a, DType b)
{
    return a == b && (a == DTYPE_BFLOAT16 || a == DTYPE_FLOAT16) && is_used();
}

#else

bool us_amx_takes(DType a, DType b)
{
    (void)a, (void)b;
    return false;
}

bool us_amx_multiply(const Sizes *sizes, const Matrix *a, const Matrix *b, void *panel_a, void *panel_b, bool adds,
                       float *c, int64_t stride)
{
    (void)sizes, (void)a, (void)b, (void)panel_a, (void)panel_b, (void)adds, (void)c, (void)stride;
    return false;
}

#endif
