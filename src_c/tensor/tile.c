#include "tensor/tile.h"

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

/* The shape all operands share, with neighbouring axes merged where every operand allows it. */
typedef struct Walk {
    const TileKernel *kernel;
    const void *attributes;
    int input_count, operand_count; /* inputs first, then outputs */
    const View *operands[TILE_OPERAND_LIMIT];
    Access access[TILE_OPERAND_LIMIT];
    size_t size[TILE_OPERAND_LIMIT]; /* bytes of an element */
    double scalar[TILE_OPERAND_LIMIT];
    Compute compute;
    TileBodyFused *fused;
    DType via;
    int32_t rank;
    int64_t elements;
    int64_t shape[VIEW_RANK_LIMIT];
    int64_t strides[TILE_OPERAND_LIMIT][VIEW_RANK_LIMIT];
} Walk;

/* Whether an axis can be merged into the walk's last axis for every operand. */
static bool merges(const Walk *walk, int32_t axis)
{
    int32_t last = walk->rank - 1;
    for (int k = 0; k < walk->operand_count; k++) {
        const View *view = walk->operands[k];
        int64_t span;
        if (__builtin_mul_overflow(view->strides[axis], view->shape[axis], &span) || walk->strides[k][last] != span) {
            return false;
        }
    }
    return true;
}

static void merge_axes(Walk *walk)
{
    const View *shape_of = walk->operands[walk->operand_count - 1];
    for (int32_t axis = 0; axis < shape_of->rank; axis++) {
        if (shape_of->shape[axis] == 1) {
            continue;
        }
        if (walk->rank > 0 && merges(walk, axis)) {
            walk->shape[walk->rank - 1] *= shape_of->shape[axis];
        } else {
            walk->shape[walk->rank++] = shape_of->shape[axis];
        }
        for (int k = 0; k < walk->operand_count; k++) {
            walk->strides[k][walk->rank - 1] = walk->operands[k]->strides[axis];
        }
    }
    if (walk->rank == 0) {
        walk->rank = 1;
        walk->shape[0] = 1;
        for (int k = 0; k < walk->operand_count; k++) {
            walk->strides[k][0] = 1;
        }
    }
}

static bool is_scalar(const Walk *walk, int k)
{
    return k < walk->input_count && walk->rank == 1 && walk->strides[k][0] == 0;
}

static bool is_unit_stride(const Walk *walk, int k)
{
    return walk->rank == 1 && walk->strides[k][0] == 1;
}

static TileBodyFused *fused_body(const Walk *walk)
{
    DType dtype = walk->operands[0]->dtype;
    for (int k = 0; k < walk->operand_count; k++) {
        if (walk->operands[k]->dtype != dtype || (!is_unit_stride(walk, k) && !is_scalar(walk, k))) {
            return NULL;
        }
    }
    if (walk->via != DTYPE_NONE && walk->via != dtype) {
        return NULL;
    }
    return dtype == DTYPE_FLOAT16    ? walk->kernel->body_half
           : dtype == DTYPE_BFLOAT16 ? walk->kernel->body_bfloat
                                     : NULL;
}

static void choose_compute(Walk *walk)
{
    walk->fused = fused_body(walk);
    walk->compute = walk->fused ? COMPUTE_FUSED : COMPUTE_FLOAT;
    for (int k = 0; k < walk->operand_count; k++) {
        if (walk->operands[k]->dtype == DTYPE_FLOAT64 && walk->kernel->body_double) {
            walk->compute = COMPUTE_DOUBLE;
        }
    }
    DType native = walk->compute == COMPUTE_DOUBLE ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
    for (int k = 0; k < walk->operand_count; k++) {
        bool in_place = walk->compute == COMPUTE_FUSED || walk->operands[k]->dtype == native;
        walk->access[k] = is_scalar(walk, k)                        ? ACCESS_SCALAR
                          : in_place && is_unit_stride(walk, k) ? ACCESS_DIRECT
                                                                    : ACCESS_GATHER;
    }
}

/* Calls of load or store for one tile: one per run along the last axis. */
typedef void TileRun(DType dtype, void *tile, void *elements, int64_t stride, int64_t count);

static void load_float(DType dtype, void *tile, void *elements, int64_t stride, int64_t count)
{
    us_load_float(tile, elements, dtype, stride, count);
}

static void load_double(DType dtype, void *tile, void *elements, int64_t stride, int64_t count)
{
    us_load_double(tile, elements, dtype, stride, count);
}

static void store_float(DType dtype, void *tile, void *elements, int64_t stride, int64_t count)
{
    us_store_float(elements, dtype, stride, tile, count);
}

static void store_double(DType dtype, void *tile, void *elements, int64_t stride, int64_t count)
{
    us_store_double(elements, dtype, stride, tile, count);
}

/* Walks `count` elements of operand k from row-major position `begin`. */
static void walk_runs(const Walk *walk, int k, int64_t begin, int64_t count, char *tile, TileRun *run)
{
    const int32_t last = walk->rank - 1;
    const int64_t *strides = walk->strides[k];
    const DType dtype = walk->operands[k]->dtype;
    const size_t tile_size = walk->compute == COMPUTE_DOUBLE ? sizeof(double) : sizeof(float);
    int64_t index[VIEW_RANK_LIMIT];
    int64_t offset = 0;
    for (int32_t axis = last; axis >= 0; axis--) {
        index[axis] = begin % walk->shape[axis];
        begin /= walk->shape[axis];
        offset += index[axis] * strides[axis];
    }
    char *data = walk->operands[k]->data;
    while (count > 0) {
        int64_t length = walk->shape[last] - index[last];
        length = length < count ? length : count;
        run(dtype, tile, data + offset * (int64_t)walk->size[k], strides[last], length);
        tile += (size_t)length * tile_size;
        count -= length;
        index[last] += length;
        offset += length * strides[last];
        for (int32_t axis = last; axis > 0 && index[axis] == walk->shape[axis]; axis--) {
            offset += strides[axis - 1] - walk->shape[axis] * strides[axis];
            index[axis] = 0;
            index[axis - 1]++;
        }
    }
}

/* Rounds compute values to `via` and back. */
static void round_via(const Walk *walk, char *array, int64_t count)
{
    uint16_t narrow[TILE_ELEMENTS];
    float single[TILE_ELEMENTS];
    const bool is_16_bit = us_dtype_size(walk->via) == sizeof *narrow;
    if (walk->compute == COMPUTE_DOUBLE) {
        void *rounded = is_16_bit ? (void *)narrow : single;
        us_store_double(rounded, walk->via, 1, (double *)array, count);
        us_load_double((double *)array, rounded, walk->via, 1, count);
    } else {
        us_store_float(narrow, walk->via, 1, (float *)array, count);
        us_load_float((float *)array, narrow, walk->via, 1, count);
    }
}

static bool rounds_via(const Walk *walk, int k)
{
    DType via = walk->via;
    if (walk->compute == COMPUTE_FUSED || via == walk->operands[k]->dtype || via == DTYPE_NONE) {
        return false;
    }
    return via == DTYPE_FLOAT16 || via == DTYPE_BFLOAT16 ||
           (via == DTYPE_FLOAT32 && walk->compute == COMPUTE_DOUBLE);
}

static void call_body(const Walk *walk, int64_t count, void **arrays)
{
    void **outputs = arrays + walk->input_count;
    switch (walk->compute) {
    case COMPUTE_FUSED:
        walk->fused(walk->attributes, count, (const uint16_t *const *)arrays, (uint16_t *const *)outputs);
        return;
    case COMPUTE_DOUBLE:
        walk->kernel->body_double(walk->attributes, count, (const double *const *)arrays, (double *const *)outputs);
        return;
    case COMPUTE_FLOAT:
        walk->kernel->body_float(walk->attributes, count, (const float *const *)arrays, (float *const *)outputs);
        return;
    }
}

typedef union Tile {
    double doubles[TILE_ELEMENTS];
    float floats[TILE_ELEMENTS];
    uint16_t shorts[TILE_ELEMENTS];
} __attribute__((aligned(64))) Tile;

static void read_scalars(Walk *walk)
{
    for (int k = 0; k < walk->input_count; k++) {
        if (walk->access[k] == ACCESS_SCALAR) {
            us_load_double(&walk->scalar[k], walk->operands[k]->data, walk->operands[k]->dtype, 1, 1);
        }
    }
}

static void fill_scalar(const Walk *walk, int k, Tile *tile)
{
    const double value = walk->scalar[k];
    if (walk->compute == COMPUTE_DOUBLE) {
        for (int i = 0; i < TILE_ELEMENTS; i++) {
            tile->doubles[i] = value;
        }
    } else if (walk->compute == COMPUTE_FLOAT) {
        for (int i = 0; i < TILE_ELEMENTS; i++) {
            tile->floats[i] = (float)value;
        }
    } else {
        uint16_t narrow;
        us_store_double(&narrow, walk->operands[k]->dtype, 1, &value, 1);
        for (int i = 0; i < TILE_ELEMENTS; i++) {
            tile->shorts[i] = narrow;
        }
    }
}

static void run_tile(const Walk *walk, int64_t begin, int64_t count, Tile *tiles)
{
    TileRun *const load = walk->compute == COMPUTE_DOUBLE ? load_double : load_float;
    TileRun *const store = walk->compute == COMPUTE_DOUBLE ? store_double : store_float;
    void *arrays[TILE_OPERAND_LIMIT];
    for (int k = 0; k < walk->operand_count; k++) {
        if (walk->access[k] == ACCESS_DIRECT) {
            arrays[k] = (char *)walk->operands[k]->data + begin * (int64_t)walk->size[k];
        } else {
            arrays[k] = &tiles[k];
        }
        if (walk->access[k] == ACCESS_GATHER && k < walk->input_count) {
            walk_runs(walk, k, begin, count, arrays[k], load);
        }
    }
    call_body(walk, count, arrays);
    for (int k = walk->input_count; k < walk->operand_count; k++) {
        if (rounds_via(walk, k)) {
            round_via(walk, arrays[k], count);
        }
        if (walk->access[k] == ACCESS_GATHER) {
            walk_runs(walk, k, begin, count, arrays[k], store);
        }
    }
}

static void run_piece(void *context, int64_t piece)
{
    const Walk *walk = context;
    Tile tiles[TILE_OPERAND_LIMIT];
    for (int k = 0; k < walk->input_count; k++) {
        if (walk->access[k] == ACCESS_SCALAR) {
            fill_scalar(walk, k, &tiles[k]);
        }
    }
    const int64_t piece_elements = (int64_t)PIECE_TILES * TILE_ELEMENTS;
    int64_t begin = piece * piece_elements;
    int64_t end = walk->elements - begin > piece_elements ? begin + piece_elements : walk->elements;
    for (; begin < end; begin += TILE_ELEMENTS) {
        run_tile(walk, begin, end - begin > TILE_ELEMENTS ? TILE_ELEMENTS : end - begin, tiles);
    }
}

void us_tile_run(const TileKernel *kernel, const void *attributes, int input_count, const View *inputs, int output_count,
                 const View *outputs, DType via)
{
    Walk walk = {.kernel = kernel, .attributes = attributes, .input_count = input_count, .via = via};
    walk.elements = us_view_elements(&outputs[0]);
    if (walk.elements <= 0) {
        return;
    }
    walk.operand_count = input_count + output_count;
    size_t bytes_per_element = 0;
    for (int k = 0; k < walk.operand_count; k++) {
        walk.operands[k] = k < input_count ? &inputs[k] : &outputs[k - input_count];
        walk.size[k] = us_dtype_size(walk.operands[k]->dtype);
        bytes_per_element += walk.size[k];
    }
    merge_axes(&walk);
    choose_compute(&walk);
    read_scalars(&walk);
    const int64_t piece_elements = (int64_t)PIECE_TILES * TILE_ELEMENTS;
    const int64_t pieces = (walk.elements + piece_elements - 1) / piece_elements;
    if (walk.elements <= SERIAL_BYTES / (int64_t)bytes_per_element) {
        for (int64_t piece = 0; piece < pieces; piece++) {
            run_piece(&walk, piece);
        }
        return;
    }
    us_parallel(pieces, run_piece, &walk);
}
