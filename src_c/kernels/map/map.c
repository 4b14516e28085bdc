#include "kernels/map/map.h"

#include "kernels/map/formulas.h"
#include "kernels/move/copy_view.h"
#include "tensor/axes.h"
#include "tensor/parallel.h"

#include <stdlib.h>
#include <string.h>

/* Elements of a piece of parallel work; bytes below which waking other threads costs more than it gains; length of the
 * runs along the last axis from which on operands are used in place run by run; side of the blocks in which operands of
 * another order are read. */
enum {
    PIECE = 16 * 1024,
    SERIAL_BYTES = 128 * 1024,
    LONG_RUN = 64,
    BLOCK = 32,
    TILE_ELEMENTS = 1024,
    TILE_BYTES = 8 * 1024,
};

typedef struct Operand {
    char *data;     /* NULL: an absent input */
    DType dtype;    /* of the view */
    DType array;    /* of the elements that the body reads or writes */
    int64_t size;   /* bytes of an element of the view */
    bool in_place;  /* the body may use the view's own elements where they are neighbours */
    bool is_flat;   /* all of them are */
    bool is_scalar; /* one value everywhere */
} Operand;

/* One tensor operation, ready to run. */
typedef struct Item {
    const MapCall *call;
    MapBody *body;
    Lane lane;
    int count, inputs; /* operands: inputs first */
    Operand operands[MAP_OPERANDS];
    Axes axes;
    bool in_blocks; /* the two innermost axes are a block of BLOCK x BLOCK */
    int64_t elements, tile;
    Number numbers[MAP_CALL_NUMBERS];
} Item;

typedef struct Tile {
    _Alignas(64) char bytes[TILE_BYTES];
} Tile;

/* Tiles of the operands, and room for values on their way from type to type. */
typedef struct Tiles {
    Tile operands[MAP_OPERANDS], raw, values;
} Tiles;

/* ---- preparation ---- */

static bool is_16_bit(DType dtype)
{
    return dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16;
}

static DType real_dtype(DType dtype)
{
    return dtype == DTYPE_COMPLEX64 ? DTYPE_FLOAT32 : dtype == DTYPE_COMPLEX128 ? DTYPE_FLOAT64 : dtype;
}

/* The body that reads and writes 16-bit elements itself pays where operands have that type. */
static MapBody *fused_body(const MapCall *call, const View *views)
{
    bool found = false;
    for (int k = 0; k < call->formula->inputs; k++) {
        found |= views[k].dtype == call->compute;
    }
    if (!is_16_bit(call->compute) || !found || (call->result != call->compute && call->result != DTYPE_BOOL)) {
        return NULL;
    }
    return call->formula->bodies[us_level()][call->compute == DTYPE_FLOAT16 ? FUSED_HALF : FUSED_BFLOAT];
}

/* The axis that is innermost in the memory of an operand where the last one is not; -1: all have the same order. */
static int32_t crossing_axis(const Item *item)
{
    const Axes *axes = &item->axes;
    const int32_t last = axes->rank - 1;
    for (int k = 0; k < item->count; k++) {
        for (int32_t axis = 0; axis < last; axis++) {
            const int64_t stride = llabs(axes->strides[k][axis]);
            const bool is_inner = stride != 0 && stride < llabs(axes->strides[k][last]);
            if (is_inner && axes->shape[axis] % BLOCK == 0 && axes->shape[last] % BLOCK == 0) {
                return axis;
            }
        }
    }
    return -1;
}

/* Splits two axes so that the innermost ones are blocks of BLOCK x BLOCK, which fit in a tile: what is read across the
 * memory of an operand is used before it leaves the cache. */
static void walk_in_blocks(Item *item)
{
    Axes *axes = &item->axes;
    const int32_t crossing = crossing_axis(item), last = axes->rank - 1;
    item->in_blocks = crossing >= 0 && axes->rank + 2 <= VIEW_RANK_LIMIT;
    if (!item->in_blocks) {
        return;
    }
    axes->shape[last + 1] = axes->shape[last + 2] = BLOCK;
    axes->shape[crossing] /= BLOCK;
    axes->shape[last] /= BLOCK;
    for (int k = 0; k < item->count; k++) {
        axes->strides[k][last + 1] = axes->strides[k][crossing];
        axes->strides[k][last + 2] = axes->strides[k][last];
        axes->strides[k][crossing] *= BLOCK;
        axes->strides[k][last] *= BLOCK;
    }
    axes->rank += 2;
}

/* Whether every operand is row-major in the output's shape, or a scalar. */
static bool is_plain(const Item *item, const View *const *views)
{
    const View *out = views[item->inputs];
    for (int k = 0; k < item->count; k++) {
        const bool is_absent = us_view_is_absent(views[k]);
        if (!is_absent && !(us_view_same_shape(views[k], out) && us_view_is_contiguous(views[k]))) {
            return false;
        }
    }
    return true;
}

/* Axes in the order of the first output's memory, neighbours merged where every operand allows it. */
static void lay_out(Item *item, const View *const *views)
{
    const View *out = views[item->inputs];
    Axes *axes = &item->axes;
    if (is_plain(item, views)) {
        item->in_blocks = false;
        axes->rank = 1;
        axes->shape[0] = item->elements;
        for (int k = 0; k < item->count; k++) {
            axes->strides[k][0] = us_view_is_absent(views[k]) ? 0 : 1;
        }
        return;
    }
    int32_t order[VIEW_RANK_LIMIT], rank = 0;
    for (int32_t axis = 0; axis < out->rank; axis++) {
        if (out->shape[axis] == 1) {
            continue;
        }
        int32_t place = rank++;
        while (place > 0 && llabs(out->strides[order[place - 1]]) < llabs(out->strides[axis])) {
            order[place] = order[place - 1];
            place--;
        }
        order[place] = axis;
    }
    axes->rank = 0;
    for (int32_t i = 0; i < rank; i++) {
        int64_t strides[MAP_OPERANDS];
        for (int k = 0; k < item->count; k++) {
            const int32_t own = order[i] - (out->rank - views[k]->rank);
            strides[k] = own < 0 || views[k]->shape[own] == 1 ? 0 : views[k]->strides[own];
        }
        us_axes_append(axes, out->shape[order[i]], strides, item->count);
    }
    us_axes_complete(axes, item->count);
    walk_in_blocks(item);
}

static bool is_flat(const Axes *axes, int k)
{
    int64_t expected = 1;
    for (int32_t axis = axes->rank - 1; axis >= 0; axis--) {
        if (axes->strides[k][axis] != expected) {
            return false;
        }
        expected *= axes->shape[axis];
    }
    return true;
}

static bool is_scalar(const Axes *axes, int k)
{
    for (int32_t axis = 0; axis < axes->rank; axis++) {
        if (axes->strides[k][axis] != 0) {
            return false;
        }
    }
    return true;
}

/* As the compute type holds it, in every form that a lane may ask for. */
static Number read_number(const View *view, DType compute)
{
    _Alignas(16) char rounded[16];
    double parts[2];
    Number number = {0};
    us_convert(rounded, compute, view->data, view->dtype, 1);
    us_convert(parts, DTYPE_COMPLEX128, rounded, compute, 1);
    number.real = parts[0];
    number.imaginary = parts[1];
    us_convert(&number.integer, compute == DTYPE_UINT64 ? DTYPE_UINT64 : DTYPE_INT64, rounded, compute, 1);
    return number;
}

/* The formula's numbers, then those of the absent inputs. */
static void take_numbers(Item *item, const View *views, int64_t index)
{
    const MapCall *call = item->call;
    memcpy(item->numbers, call->numbers, sizeof call->numbers);
    if (call->number_count > 0) {
        const Number *each = ((const MapListCall *)(const void *)call)->each + index * call->number_count;
        memcpy(item->numbers, each, (size_t)call->number_count * sizeof *each);
    }
    for (int k = item->inputs; k < call->inputs; k++) {
        item->numbers[k - item->inputs] = read_number(&views[k], call->compute);
    }
}

static void prepare(Item *item, const MapCall *call, const View *views, int64_t index)
{
    const MapFormula *formula = call->formula;
    const View *operands[MAP_OPERANDS];
    item->call = call;
    item->inputs = formula->inputs;
    item->count = formula->inputs + formula->outputs;
    item->lane = us_lane_of(call->compute);
    item->body = fused_body(call, views);
    const DType array = item->body != NULL ? call->compute : us_lane_dtype(item->lane);
    item->body = item->body != NULL ? item->body : formula->bodies[us_level()][item->lane];
    const DType results[] = {[MAP_SAME] = array, [MAP_BOOL] = DTYPE_BOOL, [MAP_REAL] = real_dtype(array)};
    size_t widest = 1;
    for (int k = 0; k < item->count; k++) {
        const bool is_input = k < item->inputs;
        const View *view = &views[is_input ? k : call->inputs + k - item->inputs];
        Operand *operand = &item->operands[k];
        operands[k] = view;
        *operand = (Operand){.data = view->data, .dtype = view->dtype, .size = (int64_t)us_dtype_size(view->dtype)};
        operand->array = is_input ? array : results[formula->result];
        operand->in_place = view->dtype == operand->array &&
                            (is_input ? call->compute : call->result) == operand->array;
        widest = us_dtype_size(view->dtype) > widest ? us_dtype_size(view->dtype) : widest;
    }
    widest = us_dtype_size(us_lane_dtype(item->lane)) > widest ? us_dtype_size(us_lane_dtype(item->lane)) : widest;
    item->tile = TILE_BYTES / (int64_t)widest < TILE_ELEMENTS ? TILE_BYTES / (int64_t)widest : TILE_ELEMENTS;
    item->elements = us_view_elements(operands[item->inputs]);
    lay_out(item, operands);
    take_numbers(item, views, index);
    for (int k = 0; k < item->count; k++) {
        Operand *operand = &item->operands[k];
        operand->is_flat = is_flat(&item->axes, k);
        operand->is_scalar = k < item->inputs && (us_view_is_absent(operands[k]) || is_scalar(&item->axes, k));
    }
}

/* ---- between views and tiles ---- */

/* Elements of an input's type to elements that the body reads, by way of the compute type. */
static void convert_input(const Item *item, const Operand *operand, const void *from, void *to, int64_t count,
                          Tiles *tiles)
{
    const DType compute = item->call->compute;
    us_convert(operand->array == compute ? to : tiles->values.bytes, compute, from, operand->dtype, count);
    if (operand->array != compute) {
        us_convert(to, operand->array, tiles->values.bytes, compute, count);
    }
}

/* Elements that the body wrote to elements of the output's type, by way of the result's. */
static void convert_output(const Item *item, const Operand *operand, const void *from, void *to, int64_t count,
                           Tiles *tiles)
{
    const DType result = item->call->result;
    if (result == operand->array) {
        us_convert(to, operand->dtype, from, result, count);
        return;
    }
    us_convert(operand->dtype == result ? to : tiles->values.bytes, result, from, operand->array, count);
    if (operand->dtype != result) {
        us_convert(to, operand->dtype, tiles->values.bytes, result, count);
    }
}

static char *place_of(const Item *item, int k, int64_t position)
{
    return item->operands[k].data + us_axes_offset(&item->axes, k, position) * item->operands[k].size;
}

/* Rows of a block of an operand that lies across, read in the order of its memory. False: it is not such a case. */
static bool fetch_across(const Item *item, int k, int64_t position, int64_t count, char *to)
{
    if (!item->in_blocks) {
        return false;
    }
    const int64_t size = item->operands[k].size, *strides = &item->axes.strides[k][item->axes.rank - 2];
    const int64_t begin = position % (BLOCK * BLOCK);
    if (llabs(strides[0]) >= llabs(strides[1]) || begin % BLOCK != 0 || count % BLOCK != 0 ||
        begin + count > BLOCK * BLOCK) {
        return false;
    }
    const char *from = place_of(item, k, position);
    for (int64_t column = 0; column < BLOCK; column++) {
        us_copy_elements(to + column * size, BLOCK, from + column * strides[1] * size, strides[0], size, count / BLOCK);
    }
    return true;
}

static void fetch(const Item *item, int k, int64_t position, int64_t count, Tiles *tiles)
{
    const Operand *operand = &item->operands[k];
    const int64_t stride = item->axes.strides[k][item->axes.rank - 1];
    char *tile = tiles->operands[k].bytes;
    const bool as_it_is = operand->in_place;
    char *raw = as_it_is ? tile : tiles->raw.bytes, *to = raw;
    const bool is_read = fetch_across(item, k, position, count, raw);
    AxesWalk walk;
    for (us_axes_walk(&walk, &item->axes, k, position, count); walk.remaining > 0 && !is_read;) {
        const AxesRun run = us_axes_next(&walk);
        char *from = operand->data + run.offset * operand->size;
        if (run.length == count && stride == 1 && !as_it_is) {
            raw = from;
            break;
        }
        us_copy_elements(to, 1, from, stride, operand->size, run.length);
        to += run.length * operand->size;
    }
    if (!as_it_is) {
        convert_input(item, operand, raw, tile, count, tiles);
    }
}

static void put_back(const Item *item, int k, int64_t position, int64_t count, Tiles *tiles)
{
    const Operand *operand = &item->operands[k];
    const int64_t stride = item->axes.strides[k][item->axes.rank - 1];
    char *from = tiles->operands[k].bytes;
    const bool converts = !operand->in_place;
    AxesWalk walk;
    for (us_axes_walk(&walk, &item->axes, k, position, count); walk.remaining > 0;) {
        const AxesRun run = us_axes_next(&walk);
        char *to = operand->data + run.offset * operand->size;
        if (converts && run.length == count && stride == 1) {
            convert_output(item, operand, from, to, count, tiles);
            return;
        }
        if (converts && from == tiles->operands[k].bytes) {
            convert_output(item, operand, from, tiles->raw.bytes, count, tiles);
            from = tiles->raw.bytes;
        }
        us_copy_elements(to, stride, from, 1, operand->size, run.length);
        from += run.length * operand->size;
    }
}

/* ---- running ---- */

static int64_t whole_lanes(int64_t count)
{
    return (count + LANES - 1) / LANES * LANES;
}

static bool is_direct(const Item *item, int k, int64_t count, bool in_run)
{
    const Operand *operand = &item->operands[k];
    const bool neighbours = operand->is_flat || (in_run && item->axes.strides[k][item->axes.rank - 1] == 1);
    return operand->in_place && neighbours && count % LANES == 0 && !operand->is_scalar;
}

/* One value along the last axis. */
static bool is_constant_in_run(const Item *item, int k)
{
    return k < item->inputs && !item->operands[k].is_scalar && item->axes.strides[k][item->axes.rank - 1] == 0;
}

/* Elements from a position on, no more than a tile unless every operand is used in place. */
static void run_block(const Item *item, int64_t position, int64_t count, bool in_run, Tiles *tiles)
{
    const void *arrays[MAP_OPERANDS];
    bool direct[MAP_OPERANDS];
    for (int k = 0; k < item->count; k++) {
        const Operand *operand = &item->operands[k];
        direct[k] = is_direct(item, k, count, in_run);
        arrays[k] = direct[k] ? place_of(item, k, position) : tiles->operands[k].bytes;
        if (k < item->inputs && !direct[k] && !operand->is_scalar && !(in_run && is_constant_in_run(item, k))) {
            fetch(item, k, position, count, tiles);
            const size_t size = us_dtype_size(operand->array);
            memset(tiles->operands[k].bytes + (size_t)count * size, 0, (size_t)(whole_lanes(count) - count) * size);
        }
    }
    item->body(item->numbers, whole_lanes(count), arrays, (void *const *)&arrays[item->inputs]);
    for (int k = item->inputs; k < item->count; k++) {
        if (!direct[k]) {
            put_back(item, k, position, count, tiles);
        }
    }
}

/* One value to as many elements as blocks of up to `count` need. */
static void fill_tile(const Item *item, int k, const void *value, int64_t count, Tiles *tiles)
{
    const int64_t size = (int64_t)us_dtype_size(item->operands[k].array);
    us_copy_elements(tiles->operands[k].bytes, 1, value, 0, size, whole_lanes(count < item->tile ? count : item->tile));
}

/* What inputs that are constant in the run have there. */
static void fill_constants(const Item *item, int64_t position, int64_t count, Tiles *tiles)
{
    for (int k = 0; k < item->inputs; k++) {
        const Operand *operand = &item->operands[k];
        _Alignas(16) char value[16];
        if (is_constant_in_run(item, k)) {
            const void *place = place_of(item, k, position);
            if (!operand->in_place) {
                convert_input(item, operand, place, value, 1, tiles);
            }
            fill_tile(item, k, operand->in_place ? place : value, count, tiles);
        }
    }
}

static void fill_scalars(const Item *item, int64_t count, Tiles *tiles)
{
    int absent = 0;
    for (int k = 0; k < item->inputs; k++) {
        const Operand *operand = &item->operands[k];
        _Alignas(16) char value[16];
        if (!operand->is_scalar) {
            continue;
        }
        if (operand->dtype != DTYPE_NONE) {
            convert_input(item, operand, operand->data, value, 1, tiles);
        } else {
            const Number *number = &item->numbers[item->call->formula->numbers + absent++];
            const double parts[] = {number->real, number->imaginary};
            if (item->lane == LANE_INT32 || item->lane == LANE_INT64 || item->lane == LANE_UINT64) {
                us_convert(value, operand->array, &number->integer, DTYPE_INT64, 1);
            } else {
                us_convert(value, operand->array, parts, DTYPE_COMPLEX128, 1);
            }
        }
        fill_tile(item, k, value, count, tiles);
    }
}

static void run_range(const Item *item, int64_t begin, int64_t end)
{
    Tiles tiles;
    fill_scalars(item, end - begin, &tiles);
    const int64_t run = item->axes.shape[item->axes.rank - 1];
    const bool by_run = item->axes.rank > 1 && run >= LONG_RUN;
    bool all_direct = true, any_direct = false;
    for (int k = 0; k < item->count; k++) {
        const bool direct = is_direct(item, k, LANES, by_run);
        all_direct &= direct;
        any_direct |= direct;
    }
    for (int64_t position = begin, count; position < end; position += count) {
        count = end - position;
        const int64_t passed = by_run ? position % run : 0;
        if (by_run && run - passed < count) {
            count = run - passed;
        }
        if (by_run && (passed == 0 || position == begin)) {
            fill_constants(item, position, count, &tiles);
        }
        count = !all_direct && count > item->tile ? item->tile : count;
        if (any_direct && count > LANES) {
            count -= count % LANES; /* the rest goes through tiles by itself */
        }
        run_block(item, position, count, by_run, &tiles);
    }
}

typedef struct Work {
    const MapCall *call;
    const View *views;
    const Item *only;       /* where there is one item: prepared */
    const int64_t *pieces;  /* of a list: number of the first piece of every item, and of the last one's end */
} Work;

static void run_only_piece(void *context, int64_t piece)
{
    const Work *work = context;
    const int64_t begin = piece * PIECE, left = work->only->elements - begin;
    run_range(work->only, begin, begin + (left < PIECE ? left : PIECE));
}

static void run_list_piece(void *context, int64_t piece)
{
    const Work *work = context;
    int64_t low = 0, high = work->call->items; /* the item: pieces[low] <= piece < pieces[high] */
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (work->pieces[middle] <= piece) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Item item;
    prepare(&item, work->call, work->views + low * (work->call->inputs + work->call->outputs), low);
    const int64_t begin = (piece - work->pieces[low]) * PIECE, left = item.elements - begin;
    run_range(&item, begin, begin + (left < PIECE ? left : PIECE));
}

static void run_pieces(int64_t pieces, int64_t bytes, ParallelBody *body, Work *work)
{
    if (bytes > SERIAL_BYTES) {
        us_parallel(pieces, body, work);
        return;
    }
    for (int64_t piece = 0; piece < pieces; piece++) {
        body(work, piece);
    }
}

static int64_t bytes_per_element(const MapCall *call, const View *views)
{
    int64_t bytes = 0;
    for (int k = 0; k < call->inputs + call->outputs; k++) {
        bytes += (int64_t)us_dtype_size(views[k].dtype);
    }
    return bytes;
}

static KernelStatus run_list(const MapCall *call, const View *views)
{
    const int32_t step = call->inputs + call->outputs;
    int64_t *pieces = malloc((size_t)(call->items + 1) * sizeof *pieces), bytes = 0;
    if (pieces == NULL) {
        return KERNEL_NO_MEMORY;
    }
    pieces[0] = 0;
    for (int32_t i = 0; i < call->items; i++) {
        const int64_t elements = us_view_elements(&views[i * step + call->inputs]);
        pieces[i + 1] = pieces[i] + (elements + PIECE - 1) / PIECE;
        bytes += elements * bytes_per_element(call, views + i * step);
    }
    Work work = {call, views, NULL, pieces};
    run_pieces(pieces[call->items], bytes, run_list_piece, &work);
    free(pieces);
    return KERNEL_OK;
}

static bool is_same(const View *a, const View *b)
{
    return a->data == b->data && a->dtype == b->dtype && us_view_same_layout(a, b);
}

/* A copy without a conversion moves bits. */
static bool is_move(const MapCall *call, const View *views)
{
    return call->formula == &us_map_copy && call->inputs == 1 && !us_view_is_absent(&views[0]) &&
           views[0].dtype == views[1].dtype && call->compute == views[0].dtype && call->result == views[0].dtype;
}

static void move(const View *from, const View *to)
{
    View source = *to; /* the input, broadcast */
    source.data = from->data;
    for (int32_t axis = 0; axis < to->rank; axis++) {
        const int32_t own = axis - (to->rank - from->rank);
        source.strides[axis] = own < 0 || from->shape[own] == 1 ? 0 : from->strides[own];
    }
    us_copy_view(to, &source);
}

static KernelStatus run_one(const MapCall *call, const View *views)
{
    if (is_move(call, views)) {
        if (!is_same(&views[0], &views[1])) {
            move(&views[0], &views[1]);
        }
    } else if (us_view_elements(&views[call->inputs]) > 0) {
        Item item;
        prepare(&item, call, views, 0);
        Work work = {call, views, &item, NULL};
        const int64_t bytes = item.elements * bytes_per_element(call, views);
        run_pieces((item.elements + PIECE - 1) / PIECE, bytes, run_only_piece, &work);
    }
    return KERNEL_OK;
}

static KernelStatus run(const MapCall *call, const View *views)
{
    return call->items == 1 ? run_one(call, views) : run_list(call, views);
}

/* ---- inputs that overlap outputs without being the same view ---- */

typedef struct Reach {
    const char *begin, *end; /* begin == end: nothing */
} Reach;

static Reach reach_of(const View *view)
{
    int64_t lowest, highest;
    if (us_view_is_absent(view) || !us_view_extent(view, &lowest, &highest) || highest < lowest) {
        return (Reach){0};
    }
    const int64_t size = (int64_t)us_dtype_size(view->dtype);
    return (Reach){(const char *)view->data + lowest * size, (const char *)view->data + (highest + 1) * size};
}

/* Whether input k of an item must be read before the outputs are written. */
static bool is_overwritten(const MapCall *call, const View *views, int k)
{
    const Reach input = reach_of(&views[k]);
    for (int o = call->inputs; o < call->inputs + call->outputs; o++) {
        const bool harmless = k < call->formula->inputs && is_same(&views[k], &views[o]);
        const Reach output = harmless ? (Reach){0} : reach_of(&views[o]);
        if (input.begin < output.end && output.begin < input.end) {
            return true;
        }
    }
    return false;
}

/* Replaces the overwritten inputs by copies in the same layout, and runs. `first` is the first of them. */
static KernelStatus run_with_copies(const MapCall *call, const View *views, int64_t first)
{
    const int32_t step = call->inputs + call->outputs;
    const int64_t count = (int64_t)call->items * step;
    View *own = malloc((size_t)count * sizeof *own);
    void **copies = calloc((size_t)count, sizeof *copies);
    KernelStatus status = own != NULL && copies != NULL ? KERNEL_OK : KERNEL_NO_MEMORY;
    if (status == KERNEL_OK) {
        memcpy(own, views, (size_t)count * sizeof *own);
    }
    for (int64_t i = first; i < count && status == KERNEL_OK; i++) {
        const int k = (int)(i % step);
        if (k >= call->inputs || !is_overwritten(call, views + i - k, k)) {
            continue;
        }
        const Reach reach = reach_of(&views[i]);
        char *copy = malloc((size_t)(reach.end - reach.begin));
        copies[i] = copy;
        if (copy == NULL) {
            status = KERNEL_NO_MEMORY;
            break;
        }
        memcpy(copy, reach.begin, (size_t)(reach.end - reach.begin));
        own[i].data = copy + ((const char *)views[i].data - reach.begin);
    }
    if (status == KERNEL_OK) {
        status = run(call, own);
    }
    for (int64_t i = 0; i < count && copies != NULL; i++) {
        free(copies[i]);
    }
    free(copies);
    free(own);
    return status;
}

KernelStatus us_map(const View *views, const void *attributes)
{
    const MapCall *call = attributes;
    const int32_t step = call->inputs + call->outputs;
    for (int64_t i = 0; i < (int64_t)call->items * step; i++) {
        const int k = (int)(i % step);
        if (k < call->inputs && is_overwritten(call, views + i - k, k)) {
            return run_with_copies(call, views, i);
        }
    }
    return run(call, views);
}

bool us_map_has_lane(const MapFormula *formula, DType compute)
{
    return compute > DTYPE_NONE && compute < DTYPE_COUNT && formula->bodies[LEVEL_BASE][us_lane_of(compute)] != NULL;
}
