#include "kernels/arrays/elementwise.h"
#include "tensor/clones.h"
#include "tensor/convert.h"

typedef union Tile {
    float floats[TILE_ELEMENTS];
    double doubles[TILE_ELEMENTS];
} __attribute__((aligned(64))) Tile;

static DType compute_type(DType dtype)
{
    return dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT16 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
}

static const void *load(const ArrayMap *map, DType compute, const void *array, int64_t begin, int64_t count, Tile *tile)
{
    const void *elements = (const char *)array + begin * (int64_t)us_dtype_size(map->dtype);
    if (map->dtype == compute) {
        return elements;
    }
    if (compute == DTYPE_FLOAT32) {
        us_load_float(tile->floats, elements, map->dtype, 1, count);
    } else {
        us_load_double(tile->doubles, elements, map->dtype, 1, count);
    }
    return tile;
}

static void store(const ArrayMap *map, DType compute, void *array, int64_t begin, int64_t count, const Tile *tile)
{
    void *elements = (char *)array + begin * (int64_t)us_dtype_size(map->output_dtype);
    if (compute == DTYPE_FLOAT32) {
        us_store_float(elements, map->output_dtype, 1, tile->floats, count);
    } else {
        us_store_double(elements, map->output_dtype, 1, tile->doubles, count);
    }
}

static void call(const ArrayMap *map, DType compute, int64_t count, const void **inputs, void **outputs)
{
    const TileBodies *bodies = &map->kernel->levels[us_level()];
    if (compute == DTYPE_FLOAT32) {
        bodies->body_float(map->numbers, count, (const float *const *)inputs, (float *const *)outputs);
    } else {
        bodies->body_double(map->numbers, count, (const double *const *)inputs, (double *const *)outputs);
    }
}

static const char *at(const void *array, DType dtype, int64_t index)
{
    return (const char *)array + index * (int64_t)us_dtype_size(dtype);
}

/* The arrays as they are, by the body of their type. */
static bool map_in_place(const ArrayMap *map, int64_t begin, int64_t end)
{
    const TileBodies *bodies = &map->kernel->levels[us_level()];
    const void *inputs[ARRAY_INPUTS];
    void *outputs[ARRAY_OUTPUTS];
    for (int k = 0; k < map->inputs; k++) {
        inputs[k] = at(map->input[k], map->dtype, begin);
    }
    for (int k = 0; k < map->outputs; k++) {
        outputs[k] = (void *)at(map->output[k], map->dtype, begin);
    }
    const int64_t count = end - begin;
    if (map->output_dtype != map->dtype || begin >= end) {
        return false;
    }
    switch (map->dtype) {
    case DTYPE_FLOAT32:
        bodies->body_float(map->numbers, count, (const float *const *)inputs, (float *const *)outputs);
        return true;
    case DTYPE_FLOAT16:
        bodies->body_half(map->numbers, count, (const uint16_t *const *)inputs, (uint16_t *const *)outputs);
        return true;
    case DTYPE_FLOAT64:
        bodies->body_double(map->numbers, count, (const double *const *)inputs, (double *const *)outputs);
        return true;
    default:
        return false;
    }
}

void us_array_map(const ArrayMap *map, int64_t begin, int64_t end)
{
    if (map_in_place(map, begin, end)) {
        return;
    }
    const DType compute = compute_type(map->dtype);
    const bool direct = map->output_dtype == compute;
    Tile tiles[ARRAY_INPUTS + ARRAY_OUTPUTS];
    const void *inputs[ARRAY_INPUTS];
    void *outputs[ARRAY_OUTPUTS];
    for (; begin < end; begin += TILE_ELEMENTS) {
        const int64_t count = end - begin < TILE_ELEMENTS ? end - begin : TILE_ELEMENTS;
        for (int k = 0; k < map->inputs; k++) {
            inputs[k] = load(map, compute, map->input[k], begin, count, &tiles[k]);
        }
        for (int k = 0; k < map->outputs; k++) {
            outputs[k] = direct ? (char *)map->output[k] + begin * (int64_t)us_dtype_size(compute)
                                : (char *)&tiles[ARRAY_INPUTS + k];
        }
        call(map, compute, count, inputs, outputs);
        for (int k = 0; k < map->outputs && !direct; k++) {
            store(map, compute, map->output[k], begin, count, &tiles[ARRAY_INPUTS + k]);
        }
    }
}

/* In PARTS sums side by side, of elements that are as many apart. */
enum { PARTS = 8 };
KERNEL_CLONES static double sum_tile(const Tile *tile, DType type, int64_t count)
{
    double sums[PARTS] = {0}, sum = 0;
    for (int64_t i = 0; i + PARTS <= count; i += PARTS) {
        for (int k = 0; k < PARTS; k++) {
            sums[k] += type == DTYPE_FLOAT32 ? (double)tile->floats[i + k] : tile->doubles[i + k];
        }
    }
    for (int64_t i = count / PARTS * PARTS; i < count; i++) {
        sums[i % PARTS] += type == DTYPE_FLOAT32 ? (double)tile->floats[i] : tile->doubles[i];
    }
    for (int k = 0; k < PARTS; k++) {
        sum += sums[k];
    }
    return sum;
}

double us_array_map_sum(const ArrayMap *map, int64_t begin, int64_t end)
{
    const DType compute = compute_type(map->dtype);
    Tile tiles[ARRAY_INPUTS + ARRAY_OUTPUTS];
    const void *inputs[ARRAY_INPUTS];
    void *outputs[ARRAY_OUTPUTS];
    for (int k = 0; k < map->outputs; k++) {
        outputs[k] = &tiles[ARRAY_INPUTS + k];
    }
    double sum = 0;
    for (; begin < end; begin += TILE_ELEMENTS) {
        const int64_t count = end - begin < TILE_ELEMENTS ? end - begin : TILE_ELEMENTS;
        for (int k = 0; k < map->inputs; k++) {
            inputs[k] = load(map, compute, map->input[k], begin, count, &tiles[k]);
        }
        call(map, compute, count, inputs, outputs);
        sum += sum_tile(&tiles[ARRAY_INPUTS], compute, count);
    }
    return sum;
}

void us_array_sequence(double start, double step, void *out, DType dtype, int64_t begin, int64_t end)
{
    Tile tile;
    for (; begin < end; begin += TILE_ELEMENTS) {
        const int64_t count = end - begin < TILE_ELEMENTS ? end - begin : TILE_ELEMENTS;
        for (int64_t i = 0; i < count; i++) {
            tile.doubles[i] = start + (double)(begin + i) * step;
        }
        us_store_double((char *)out + begin * (int64_t)us_dtype_size(dtype), dtype, 1, tile.doubles, count);
    }
}

void us_array_complex_product(const ArrayMap *map, int64_t begin, int64_t end)
{
    if (map->dtype == DTYPE_COMPLEX64) {
        const float *x = map->input[0], *y = map->input[1];
        float *out = map->output[0];
        for (int64_t i = 2 * begin; i < 2 * end; i += 2) {
            const float real = x[i] * y[i] - x[i + 1] * y[i + 1];
            out[i + 1] = x[i] * y[i + 1] + x[i + 1] * y[i];
            out[i] = real;
        }
        return;
    }
    const double *x = map->input[0], *y = map->input[1];
    double *out = map->output[0];
    for (int64_t i = 2 * begin; i < 2 * end; i += 2) {
        const double real = x[i] * y[i] - x[i + 1] * y[i + 1];
        out[i + 1] = x[i] * y[i + 1] + x[i + 1] * y[i];
        out[i] = real;
    }
}
