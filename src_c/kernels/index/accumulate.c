/* Sums and products at places, in the order of the positions, in the wide type, rounded once. Single elements that
 * lie close together have a number of the wide type each; otherwise positions are sorted by the element (or slice)
 * they name, keeping their order, and each group is added up. */
#include "kernels/index/places.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sort/radix.h"
#include "tensor/clones.h"
#include "tensor/parallel.h"

#include <stdatomic.h>
#include <string.h>

enum { PIECE = 4096, SLICE_TILE = 512, WIDE_BYTES = 16 };

typedef struct Accumulation {
    const Places *places;
    const PlaceAxes *axes;
    const void *index_data[INDEX_LIMIT];
    OutsideIndex outside;
    int64_t lowest; /* of the offsets into the tensor */
    WideEntry *entries; /* key: offset - lowest; place: outer position */
    int64_t slice_tiles;
} Accumulation;

/* ---- the wide type ---- */

KERNEL_CLONES static void combine_real(double *sums, const double *values, int64_t count, bool multiplies)
{
    if (multiplies) {
        for (int64_t i = 0; i < count; i++) {
            sums[i] *= values[i];
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            sums[i] += values[i];
        }
    }
}

KERNEL_CLONES static void combine_integer(uint64_t *sums, const uint64_t *values, int64_t count, bool multiplies)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] = multiplies ? sums[i] * values[i] : sums[i] + values[i];
    }
}

static void multiply_complex(double *products, const double *values, int64_t count)
{
    for (int64_t i = 0; i < 2 * count; i += 2) {
        const double real = products[i] * values[i] - products[i + 1] * values[i + 1];
        products[i + 1] = products[i] * values[i + 1] + products[i + 1] * values[i];
        products[i] = real;
    }
}

static void combine(Lane lane, void *sums, const void *values, int64_t count, bool multiplies)
{
    if (lane == LANE_COMPLEX128 && multiplies) {
        multiply_complex(sums, values, count);
    } else if (lane == LANE_COMPLEX128 || lane == LANE_DOUBLE) {
        combine_real(sums, values, lane == LANE_DOUBLE ? count : 2 * count, multiplies);
    } else {
        combine_integer(sums, values, count, multiplies);
    }
}

static void scale(Lane lane, void *values, int64_t count, Number number)
{
    const double parts[2] = {number.real, number.imaginary};
    for (int64_t i = 0; i < count; i++) {
        if (lane == LANE_DOUBLE) {
            ((double *)values)[i] *= number.real;
        } else if (lane == LANE_COMPLEX128) {
            multiply_complex((double *)values + 2 * i, parts, 1);
        } else {
            ((uint64_t *)values)[i] *= (uint64_t)number.integer;
        }
    }
}

/* ---- groups ---- */

static char *element_at(const View *view, int64_t offset)
{
    return (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
}

/* Entries first … end-1 name one slice: elements begin … begin+count-1 of it. */
static void add_group(const Accumulation *work, int64_t first, int64_t end, int64_t begin, int64_t count)
{
    _Alignas(64) unsigned char sums[SLICE_TILE * WIDE_BYTES], values[SLICE_TILE * WIDE_BYTES];
    const Places *places = work->places;
    const Indexing *call = places->call;
    const View *tensor = &places->tensor, *other = &places->other;
    const Axes *inner = &work->axes->inner;
    const Lane lane = us_lane_of(us_wide_dtype(tensor->dtype));
    char *target = element_at(tensor, (int64_t)work->entries[first].key + work->lowest);
    us_axes_load(inner, PLACE_TENSOR, target, tensor->dtype, begin, count, lane, sums);
    for (int64_t k = first; k < end; k++) {
        const int64_t offset = us_axes_offset(&work->axes->outer, PLACE_OTHER, (int64_t)work->entries[k].place);
        us_axes_load(inner, PLACE_OTHER, element_at(other, offset), other->dtype, begin, count, lane, values);
        if (call->scales) {
            scale(lane, values, count, call->value);
        }
        combine(lane, sums, values, count, call->action == INDEX_MULTIPLY);
    }
    us_axes_store(inner, PLACE_TENSOR, target, tensor->dtype, begin, count, lane, sums);
}

/* The same where slices are single elements: entries first … end-1, which are whole groups. */
static void add_elements(const Accumulation *work, int64_t first, int64_t end)
{
    _Alignas(64) unsigned char raw[SLICE_TILE * WIDE_BYTES], values[SLICE_TILE * WIDE_BYTES], sum[WIDE_BYTES];
    const Places *places = work->places;
    const View *tensor = &places->tensor, *other = &places->other;
    const WideEntry *entries = work->entries;
    const bool multiplies = places->call->action == INDEX_MULTIPLY;
    const DType wide = us_wide_dtype(tensor->dtype);
    const Lane lane = us_lane_of(wide);
    const size_t size = us_dtype_size(other->dtype), wide_size = us_dtype_size(wide);
    for (int64_t begin = first; begin < end; begin += SLICE_TILE) {
        const int64_t count = end - begin < SLICE_TILE ? end - begin : SLICE_TILE;
        for (int64_t i = 0; i < count; i++) {
            const int64_t offset = us_axes_offset(&work->axes->outer, PLACE_OTHER, (int64_t)entries[begin + i].place);
            memcpy(raw + (size_t)i * size, element_at(other, offset), size);
        }
        us_lane_load(lane, values, raw, other->dtype, 1, count);
        if (places->call->scales) {
            scale(lane, values, count, places->call->value);
        }
        for (int64_t i = 0; i < count; i++) {
            const int64_t at = begin + i;
            char *target = element_at(tensor, (int64_t)entries[at].key + work->lowest);
            if (at == first || entries[at].key != entries[at - 1].key) {
                us_lane_load(lane, sum, target, tensor->dtype, 1, 1);
            }
            combine(lane, sum, values + (size_t)i * wide_size, 1, multiplies);
            if (at + 1 == end || entries[at].key != entries[at + 1].key) {
                us_lane_store(lane, target, tensor->dtype, 1, sum, 1);
            }
        }
    }
}

/* The groups that begin among the entries of a piece, one tile of the slices. */
static void add_piece(void *context, int64_t piece)
{
    const Accumulation *work = context;
    const WideEntry *entries = work->entries;
    const int64_t total = work->axes->outer_count, inner = work->axes->inner_count;
    const int64_t begin = piece / work->slice_tiles * PIECE, end = total < begin + PIECE ? total : begin + PIECE;
    const int64_t tile = piece % work->slice_tiles * SLICE_TILE, rest = inner - tile;
    int64_t first = begin;
    while (first < end && first > 0 && entries[first].key == entries[first - 1].key) {
        first++;
    }
    if (inner == 1 && first < end) {
        int64_t behind = end;
        while (behind < total && entries[behind].key == entries[end - 1].key) {
            behind++;
        }
        add_elements(work, first, behind);
        return;
    }
    while (first < end) {
        int64_t behind = first + 1;
        while (behind < total && entries[behind].key == entries[first].key) {
            behind++;
        }
        add_group(work, first, behind, tile, rest < SLICE_TILE ? rest : SLICE_TILE);
        first = behind;
    }
}

/* ---- the sort ---- */

static void read_piece(void *context, int64_t piece)
{
    Accumulation *work = context;
    const int64_t total = work->axes->outer_count, end = total < (piece + 1) * PIECE ? total : (piece + 1) * PIECE;
    int64_t tensor[PLACE_TILE], other[PLACE_TILE];
    for (int64_t begin = piece * PIECE; begin < end; begin += PLACE_TILE) {
        const int64_t count = end - begin < PLACE_TILE ? end - begin : PLACE_TILE;
        if (!us_place_tile(work->places, &work->axes->outer, work->index_data, begin, count, tensor, other, piece,
                           &work->outside)) {
            return;
        }
        for (int64_t i = 0; i < count; i++) {
            work->entries[begin + i] = (WideEntry){(uint64_t)(tensor[i] - work->lowest), (uint64_t)(begin + i)};
        }
    }
}

/* The smallest and the largest offset that places can have. */
static void offset_limits(const Places *places, const Axes *outer, int64_t *lowest, int64_t *highest)
{
    *lowest = *highest = 0;
    for (int32_t axis = 0; axis < outer->rank; axis++) {
        const int64_t span = (outer->shape[axis] - 1) * outer->strides[PLACE_TENSOR][axis];
        *(span < 0 ? lowest : highest) += span;
    }
    for (int32_t k = 0; k < places->count; k++) {
        const IndexedAxis axis = places->axes[k].axis;
        const int64_t span = axis.size > 0 ? (axis.size - 1) * axis.stride : 0;
        *(span < 0 ? lowest : highest) += span;
    }
}

/* ---- a number for each element ---- */

enum { SPREAD = 8 }; /* elements within reach, for each position: more are sorted */

typedef struct DenseRun {
    const Places *places;
    const PlaceAxes *axes;
    PlaceCut cut;
    Lane lane; /* 8 bytes wide */
    OutsideIndex outside;
    atomic_bool no_memory;
} DenseRun;

typedef union Wide {
    double real;
    uint64_t whole;
} Wide;

/* Adds a tile of values to the numbers of their elements, and marks these. */
static void add_tile(Lane lane, bool multiplies, Wide *sums, uint8_t *named, const int64_t *offsets, const Wide *values,
                     int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        Wide *sum = &sums[offsets[i]];
        named[offsets[i]] = 1;
        if (lane == LANE_DOUBLE) {
            sum->real = multiplies ? sum->real * values[i].real : sum->real + values[i].real;
        } else {
            sum->whole = multiplies ? sum->whole * values[i].whole : sum->whole + values[i].whole;
        }
    }
}

/* The named elements become element + sum, or element * product. */
static void end_sums(const DenseRun *run, char *first, const Wide *sums, const uint8_t *named, int64_t reach)
{
    const DType dtype = run->places->tensor.dtype;
    const size_t size = us_dtype_size(dtype);
    const bool multiplies = run->places->call->action == INDEX_MULTIPLY;
    Wide values[SLICE_TILE];
    for (int64_t begin = 0, end; begin < reach; begin = end) {
        while (begin < reach && named[begin] == 0) {
            begin++;
        }
        for (end = begin; end < reach && end - begin < SLICE_TILE && named[end] != 0; end++) {
        }
        us_lane_load(run->lane, values, first + (size_t)begin * size, dtype, 1, end - begin);
        combine(run->lane, values, sums + begin, end - begin, multiplies);
        us_lane_store(run->lane, first + (size_t)begin * size, dtype, 1, values, end - begin);
    }
}

static void add_dense(const DenseRun *run, const PlacePiece *part, int64_t piece, int64_t lowest, Wide *sums,
                      uint8_t *named, OutsideIndex *outside)
{
    const Places *places = run->places;
    const DType dtype = places->other.dtype;
    const size_t size = us_dtype_size(dtype);
    int64_t offsets[2][SLICE_TILE];
    Wide values[SLICE_TILE];
    _Alignas(64) unsigned char raw[SLICE_TILE * WIDE_BYTES];
    for (int64_t begin = 0; begin < part->axes.outer_count; begin += SLICE_TILE) {
        const int64_t rest = part->axes.outer_count - begin, count = rest < SLICE_TILE ? rest : SLICE_TILE;
        if (!us_place_tile(places, &part->axes.outer, part->index_data, begin, count, offsets[PLACE_TENSOR],
                           offsets[PLACE_OTHER], piece, outside)) {
            return;
        }
        for (int64_t i = 0; i < count; i++) {
            offsets[PLACE_TENSOR][i] -= lowest;
            memcpy(raw + (size_t)i * size, part->data[PLACE_OTHER] + offsets[PLACE_OTHER][i] * (int64_t)size, size);
        }
        us_lane_load(run->lane, values, raw, dtype, 1, count);
        if (places->call->scales) {
            scale(run->lane, values, count, places->call->value);
        }
        add_tile(run->lane, places->call->action == INDEX_MULTIPLY, sums, named, offsets[PLACE_TENSOR], values, count);
    }
}

static void dense_piece(void *context, int64_t piece)
{
    DenseRun *run = context;
    const PlacePiece part = us_place_piece(run->places, run->axes, &run->cut, piece);
    int64_t lowest = 0, highest = 0;
    offset_limits(run->places, &part.axes.outer, &lowest, &highest);
    const int64_t reach = highest - lowest + 1;
    Wide *sums = us_scratch_take((size_t)reach * (sizeof *sums + 1));
    if (sums == NULL) {
        atomic_store(&run->no_memory, true);
        return;
    }
    uint8_t *named = (uint8_t *)(sums + reach);
    const Wide one = run->lane == LANE_DOUBLE ? (Wide){.real = 1} : (Wide){.whole = 1};
    memset(sums, 0, (size_t)reach * (sizeof *sums + 1));
    for (int64_t i = 0; run->places->call->action == INDEX_MULTIPLY && i < reach; i++) {
        sums[i] = one;
    }
    OutsideIndex outside = {0};
    add_dense(run, &part, piece, lowest, sums, named, &outside);
    if (outside.found) {
        us_place_outside(&run->outside, piece, outside.index, outside.size);
    } else {
        end_sums(run, part.data[PLACE_TENSOR] + lowest * (int64_t)us_dtype_size(run->places->tensor.dtype), sums, named,
                 reach);
    }
    us_scratch_give_back(sums);
}

/* How far the elements that positions may name lie apart; of the largest piece. */
static int64_t reach_of(const Places *places, const PlaceAxes *axes, const PlaceCut *cut)
{
    int64_t lowest = 0, highest = 0;
    const PlacePiece part = us_place_piece(places, axes, cut, 0);
    offset_limits(places, &part.axes.outer, &lowest, &highest);
    return highest - lowest + 1;
}

/* Whether the elements lie close enough; `cut` is how to divide the work then. Depends on sizes only. */
static bool is_dense(const Places *places, const PlaceAxes *axes, Lane lane, PlaceCut *cut)
{
    if (axes->inner_count != 1 || lane == LANE_COMPLEX128) {
        return false;
    }
    const int64_t most = SPREAD * axes->outer_count;
    *cut = us_place_cut(axes, true);
    if (reach_of(places, axes, cut) <= most / cut->pieces) {
        return true;
    }
    *cut = (PlaceCut){.axis = -1, .pieces = 1};
    return reach_of(places, axes, cut) <= most;
}

static KernelStatus accumulate_dense(const Places *places, const PlaceAxes *axes, PlaceCut cut, Lane lane)
{
    DenseRun run = {.places = places, .axes = axes, .cut = cut, .lane = lane};
    run_pieces(cut.pieces, axes->outer_count, dense_piece, &run);
    return atomic_load(&run.no_memory) ? KERNEL_NO_MEMORY : us_place_status(&run.outside);
}

KernelStatus us_accumulate_places(const Places *places)
{
    const PlaceAxes axes = us_place_axes(places);
    const Lane lane = us_lane_of(us_wide_dtype(places->tensor.dtype));
    PlaceCut cut;
    if (is_dense(places, &axes, lane, &cut)) {
        return accumulate_dense(places, &axes, cut, lane);
    }
    Accumulation work = {.places = places, .axes = &axes};
    const int64_t count = axes.outer_count, pieces = (count + PIECE - 1) / PIECE;
    WideEntry *const block = us_scratch_take(2 * (size_t)count * sizeof *block);
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    for (int32_t k = 0; k < places->count; k++) {
        work.index_data[k] = places->axes[k].index.data;
    }
    int64_t highest = 0;
    offset_limits(places, &axes.outer, &work.lowest, &highest);
    work.entries = block;
    us_parallel(pieces, read_piece, &work);
    KernelStatus status = us_place_status(&work.outside);
    if (status == KERNEL_OK) {
        const uint64_t range = (uint64_t)(highest - work.lowest);
        work.entries = us_sort_wide(block, block + count, count, range == 0 ? 0 : 64 - __builtin_clzll(range));
        status = work.entries != NULL ? KERNEL_OK : KERNEL_NO_MEMORY;
    }
    if (status == KERNEL_OK) {
        work.slice_tiles = (axes.inner_count + SLICE_TILE - 1) / SLICE_TILE;
        us_parallel(pieces * work.slice_tiles, add_piece, &work);
    }
    us_scratch_give_back(block);
    return status;
}
