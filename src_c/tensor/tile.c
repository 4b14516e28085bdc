#include "tensor/tile.h"

#include "tensor/axes.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

/* Tiles of one piece of parallel work, and the number of bytes below which waking other threads costs more than it
 * gains (performance-notes: fork and join take microseconds). */
enum { PIECE_TILES = 16, SERIAL_BYTES = 128 * 1024 };

typedef enum Compute { COMPUTE_FLOAT, COMPUTE_DOUBLE, COMPUTE_FUSED } Compute;

/* How an operand reaches the body. */
typedef enum Access {
    ACCESS_DIRECT, /* in place */
    ACCESS_SCALAR, /* one element seen everywhere: read once, before anything is written */
    ACCESS_GATHER, /* through a tile */
} Access;

typedef struct TileRun {
    const TileBodies *bodies;
    const void *attributes;
    int input_count, operand_count; /* inputs first, then outputs */
    const View *operands[TILE_OPERAND_LIMIT];
    Access access[TILE_OPERAND_LIMIT];
    size_t size[TILE_OPERAND_LIMIT]; /* bytes of an element */
    double scalar[TILE_OPERAND_LIMIT];
    Compute compute;
    TileBodyFused *fused;
    DType via;
    int64_t elements;
    Axes axes;
} TileRun;

static bool is_scalar(const TileRun *run, int k)
{
    return k < run->input_count && run->axes.rank == 1 && run->axes.strides[k][0] == 0;
}

static bool is_unit_stride(const TileRun *run, int k)
{
    return run->axes.rank == 1 && run->axes.strides[k][0] == 1;
}

static TileBodyFused *fused_body(const TileRun *run)
{
    DType dtype = run->operands[0]->dtype;
    for (int k = 0; k < run->operand_count; k++) {
        if (run->operands[k]->dtype != dtype || (!is_unit_stride(run, k) && !is_scalar(run, k))) {
            return NULL;
        }
    }
    if (run->via != DTYPE_NONE && run->via != dtype) {
        return NULL;
    }
    return dtype == DTYPE_FLOAT16    ? run->bodies->body_half
           : dtype == DTYPE_BFLOAT16 ? run->bodies->body_bfloat
                                     : NULL;
}

static void choose_compute(TileRun *run)
{
    run->fused = fused_body(run);
    run->compute = run->fused ? COMPUTE_FUSED : COMPUTE_FLOAT;
    for (int k = 0; k < run->operand_count; k++) {
        if (run->operands[k]->dtype == DTYPE_FLOAT64 && run->bodies->body_double) {
            run->compute = COMPUTE_DOUBLE;
        }
    }
    DType native = run->compute == COMPUTE_DOUBLE ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
    for (int k = 0; k < run->operand_count; k++) {
        bool in_place = run->compute == COMPUTE_FUSED || run->operands[k]->dtype == native;
        run->access[k] = is_scalar(run, k)                        ? ACCESS_SCALAR
                          : in_place && is_unit_stride(run, k) ? ACCESS_DIRECT
                                                                    : ACCESS_GATHER;
    }
}

/* Rounds compute values to `via` and back. */
static void round_via(const TileRun *run, char *array, int64_t count)
{
    uint16_t narrow[TILE_ELEMENTS];
    float single[TILE_ELEMENTS];
    const bool is_16_bit = us_dtype_size(run->via) == sizeof *narrow;
    if (run->compute == COMPUTE_DOUBLE) {
        void *rounded = is_16_bit ? (void *)narrow : single;
        us_store_double(rounded, run->via, 1, (double *)array, count);
        us_load_double((double *)array, rounded, run->via, 1, count);
    } else {
        us_store_float(narrow, run->via, 1, (float *)array, count);
        us_load_float((float *)array, narrow, run->via, 1, count);
    }
}

static bool rounds_via(const TileRun *run, int k)
{
    DType via = run->via;
    if (run->compute == COMPUTE_FUSED || via == run->operands[k]->dtype || via == DTYPE_NONE) {
        return false;
    }
    return via == DTYPE_FLOAT16 || via == DTYPE_BFLOAT16 ||
           (via == DTYPE_FLOAT32 && run->compute == COMPUTE_DOUBLE);
}

static void call_body(const TileRun *run, int64_t count, void **arrays)
{
    void **outputs = arrays + run->input_count;
    switch (run->compute) {
    case COMPUTE_FUSED:
        run->fused(run->attributes, count, (const uint16_t *const *)arrays, (uint16_t *const *)outputs);
        return;
    case COMPUTE_DOUBLE:
        run->bodies->body_double(run->attributes, count, (const double *const *)arrays, (double *const *)outputs);
        return;
    case COMPUTE_FLOAT:
        run->bodies->body_float(run->attributes, count, (const float *const *)arrays, (float *const *)outputs);
        return;
    }
}

typedef union Tile {
    double doubles[TILE_ELEMENTS];
    float floats[TILE_ELEMENTS];
    uint16_t shorts[TILE_ELEMENTS];
} __attribute__((aligned(64))) Tile;

static void read_scalars(TileRun *run)
{
    for (int k = 0; k < run->input_count; k++) {
        if (run->access[k] == ACCESS_SCALAR) {
            us_load_double(&run->scalar[k], run->operands[k]->data, run->operands[k]->dtype, 1, 1);
        }
    }
}

static void fill_scalar(const TileRun *run, int k, Tile *tile)
{
    const double value = run->scalar[k];
    if (run->compute == COMPUTE_DOUBLE) {
        for (int i = 0; i < TILE_ELEMENTS; i++) {
            tile->doubles[i] = value;
        }
    } else if (run->compute == COMPUTE_FLOAT) {
        for (int i = 0; i < TILE_ELEMENTS; i++) {
            tile->floats[i] = (float)value;
        }
    } else {
        uint16_t narrow;
        us_store_double(&narrow, run->operands[k]->dtype, 1, &value, 1);
        for (int i = 0; i < TILE_ELEMENTS; i++) {
            tile->shorts[i] = narrow;
        }
    }
}

static void run_tile(const TileRun *run, int64_t begin, int64_t count, Tile *tiles)
{
    const bool wide = run->compute == COMPUTE_DOUBLE;
    void *arrays[TILE_OPERAND_LIMIT];
    for (int k = 0; k < run->operand_count; k++) {
        const View *view = run->operands[k];
        if (run->access[k] == ACCESS_DIRECT) {
            arrays[k] = (char *)view->data + begin * (int64_t)run->size[k];
        } else {
            arrays[k] = &tiles[k];
        }
        if (run->access[k] == ACCESS_GATHER && k < run->input_count) {
            us_axes_load(&run->axes, k, view->data, view->dtype, begin, count, wide, arrays[k]);
        }
    }
    call_body(run, count, arrays);
    for (int k = run->input_count; k < run->operand_count; k++) {
        const View *view = run->operands[k];
        if (rounds_via(run, k)) {
            round_via(run, arrays[k], count);
        }
        if (run->access[k] == ACCESS_GATHER) {
            us_axes_store(&run->axes, k, view->data, view->dtype, begin, count, wide, arrays[k]);
        }
    }
}

static bool needs_tiles(const TileRun *run)
{
    for (int k = 0; k < run->operand_count; k++) {
        if (run->access[k] != ACCESS_DIRECT || rounds_via(run, k)) {
            return true;
        }
    }
    return false;
}

static void run_piece(void *context, int64_t piece)
{
    const TileRun *run = context;
    Tile tiles[TILE_OPERAND_LIMIT];
    for (int k = 0; k < run->input_count; k++) {
        if (run->access[k] == ACCESS_SCALAR) {
            fill_scalar(run, k, &tiles[k]);
        }
    }
    const int64_t piece_elements = (int64_t)PIECE_TILES * TILE_ELEMENTS;
    int64_t begin = piece * piece_elements;
    int64_t end = run->elements - begin > piece_elements ? begin + piece_elements : run->elements;
    const int64_t step = needs_tiles(run) ? TILE_ELEMENTS : piece_elements;
    for (; begin < end; begin += step) {
        run_tile(run, begin, end - begin > step ? step : end - begin, tiles);
    }
}

void us_tile_run(const TileKernel *kernel, const void *attributes, int input_count, const View *inputs, int output_count,
                 const View *outputs, DType via)
{
    TileRun run = {.bodies = &kernel->levels[us_level()], .attributes = attributes, .input_count = input_count, .via = via};
    run.elements = us_view_elements(&outputs[0]);
    if (run.elements <= 0) {
        return;
    }
    run.operand_count = input_count + output_count;
    size_t bytes_per_element = 0;
    for (int k = 0; k < run.operand_count; k++) {
        run.operands[k] = k < input_count ? &inputs[k] : &outputs[k - input_count];
        run.size[k] = us_dtype_size(run.operands[k]->dtype);
        bytes_per_element += run.size[k];
    }
    us_axes_add(&run.axes, run.operands, run.operand_count, 0, outputs[0].rank);
    choose_compute(&run);
    read_scalars(&run);
    const int64_t piece_elements = (int64_t)PIECE_TILES * TILE_ELEMENTS;
    const int64_t pieces = (run.elements + piece_elements - 1) / piece_elements;
    if (run.elements <= SERIAL_BYTES / (int64_t)bytes_per_element) {
        for (int64_t piece = 0; piece < pieces; piece++) {
            run_piece(&run, piece);
        }
        return;
    }
    us_parallel(pieces, run_piece, &run);
}
