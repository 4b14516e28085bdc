/* Sums and products at places, in the order of the positions, in the wide type, rounded once. Single elements that
 * lie close together have a number of the wide type each; otherwise positions are sorted by the element (or slice)
 * they name, keeping their order, and each group is added up. */
#include "kernels/index/lines.h"
#include "kernels/index/rows.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "kernels/sort/radix.h"
#include "tensor/levels.h"
#include "tensor/parallel.h"

#include <stdatomic.h>
#include <stdlib.h>
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

static void combine_real(double *sums, const double *values, int64_t count, bool multiplies)
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

static void combine_integer(uint64_t *sums, const uint64_t *values, int64_t count, bool multiplies)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] = multiplies ? sums[i] * values[i] : sums[i] + values[i];
    }
}

US_SCALAR static void multiply_complex(double *products, const double *values, int64_t count)
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
    const size_t wide_size = us_dtype_size(wide);
    for (int64_t begin = first; begin < end; begin += SLICE_TILE) {
        const int64_t count = end - begin < SLICE_TILE ? end - begin : SLICE_TILE;
        int64_t offsets[SLICE_TILE];
        for (int64_t i = 0; i < count; i++) {
            offsets[i] = us_axes_offset(&work->axes->outer, PLACE_OTHER, (int64_t)entries[begin + i].place);
        }
        us_place_gather(raw, other->data, offsets, count, us_dtype_size(other->dtype));
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

/* Elements within reach, for each position: more are sorted. Positions of a piece: few enough that its sums stay in the
 * first-level cache. */
enum { SPREAD = 8, DENSE_PIECE = 2048 };

typedef struct DenseRun {
    const Places *places;
    const PlaceAxes *axes;
    PlaceCut cut;
    Lane lane; /* 8 bytes wide */
    bool copies_parts;
    OutsideIndex outside;
    atomic_bool no_memory;
} DenseRun;

/* The elements that the positions of a piece may name, of which no other piece names any, packed. */
typedef struct Reach {
    Axes tensor;   /* where they are in the tensor */
    Axes outer;    /* of the piece: operand PLACE_TENSOR counts packed elements */
    Places places; /* and so do these */
    int64_t count; /* 0: some axis names the same elements, or none */
} Reach;

static Reach reach_of(const Places *places, const PlacePiece *part)
{
    Reach reach = {.outer = part->axes.outer, .places = *places, .count = 1};
    reach.places.tensor.dtype = DTYPE_FLOAT64; /* or as wide */
    struct {
        int64_t size, *stride;
    } axes[VIEW_RANK_LIMIT + INDEX_LIMIT];
    int32_t rank = 0;
    for (int32_t axis = 0; axis < reach.outer.rank + places->count; axis++) {
        IndexedAxis *indexed = &reach.places.axes[axis < reach.outer.rank ? 0 : axis - reach.outer.rank].axis;
        int64_t *stride = axis < reach.outer.rank ? &reach.outer.strides[PLACE_TENSOR][axis] : &indexed->stride;
        const int64_t size = axis < reach.outer.rank ? reach.outer.shape[axis] : indexed->size;
        if (size == 1 || (*stride == 0 && axis < reach.outer.rank)) {
            continue;
        }
        int32_t place = rank++;
        for (; place > 0 && llabs(*axes[place - 1].stride) < llabs(*stride); place--) {
            axes[place] = axes[place - 1];
        }
        axes[place].size = size;
        axes[place].stride = stride;
    }
    for (int32_t axis = 0; axis < rank; axis++) {
        reach.count = *axes[axis].stride == 0 ? 0 : reach.count;
        us_axes_append(&reach.tensor, axes[axis].size, axes[axis].stride, 1);
    }
    us_axes_complete(&reach.tensor, 1);
    for (int32_t axis = rank - 1; axis >= 0; axis--) {
        *axes[axis].stride = reach.count;
        if (__builtin_mul_overflow(reach.count, axes[axis].size, &reach.count)) {
            reach.count = 0;
        }
    }
    return reach;
}

/* Positions of a line; how many: up to the first index that us_place_line leaves to others. */
static int64_t add_line(const DenseRun *run, PlaceLine *line)
{
    const Indexing *call = run->places->call;
    const bool multiplies = call->action == INDEX_MULTIPLY, real = run->lane == LANE_DOUBLE;
    _Alignas(64) char values[SLICE_TILE * sizeof(uint64_t)];
    char *const other = line->other;
    const int64_t other_step = line->other_step, ahead_other = line->ahead_other, whole = line->count;
    line->count = smaller(whole, SLICE_TILE);
    us_place_line_ask(line, us_dtype_size(run->places->other.dtype));
    us_lane_load(run->lane, values, other, run->places->other.dtype, other_step, line->count);
    if (call->scales) {
        scale(run->lane, values, line->count, call->value);
    }
    line->other = values;
    line->other_step = 1;
    line->ahead_other = 0;
    const LineAction action = real ? (multiplies ? LINE_MULTIPLY : LINE_ADD)
                                   : (multiplies ? LINE_MULTIPLY_INTEGERS : LINE_ADD_INTEGERS);
    const int64_t count = us_place_line(line, action, sizeof(uint64_t));
    line->other = other;
    line->other_step = other_step;
    line->ahead_other = ahead_other;
    line->count = whole;
    return count;
}

static void combine_at(Lane lane, bool multiplies, void *all, const int64_t *offsets, const void *values, int64_t count)
{
    double *const reals = all;
    uint64_t *const integers = all;
    if (lane != LANE_DOUBLE) {
        for (int64_t i = 0; i < count; i++) {
            uint64_t *sum = &integers[offsets[i]], value = ((const uint64_t *)values)[i];
            *sum = multiplies ? *sum * value : *sum + value;
        }
    } else if (multiplies) {
        for (int64_t i = 0; i < count; i++) {
            reals[offsets[i]] *= ((const double *)values)[i];
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            reals[offsets[i]] += ((const double *)values)[i];
        }
    }
}

static bool add_dense(const DenseRun *run, const PlacePiece *part, const Reach *reach, int64_t piece, void *sums,
                      OutsideIndex *outside)
{
    const Indexing *call = run->places->call;
    const Axes *outer = &reach->outer;
    const DType dtype = run->places->other.dtype;
    const int64_t total = part->axes.outer_count;
    const bool by_lines = us_places_have_lines(&reach->places, outer);
    int64_t offsets[2][SLICE_TILE];
    _Alignas(64) char raw[SLICE_TILE * sizeof(uint64_t)], values[SLICE_TILE * sizeof(uint64_t)];
    char *const data[2] = {sums, part->data[PLACE_OTHER]};
    PlaceLine line = {0};
    for (int64_t begin = 0, count = -1; begin < total; begin += count) {
        if (by_lines && !us_place_line_next(&line, count)) {
            line = us_place_line_at(&reach->places, outer, data, part->index_data[0], begin);
        }
        count = by_lines ? add_line(run, &line) : 0;
        if (count > 0) {
            continue;
        }
        count = total - begin < SLICE_TILE ? total - begin : SLICE_TILE;
        if (!us_place_tile(&reach->places, outer, part->index_data, begin, count, offsets[PLACE_TENSOR],
                           offsets[PLACE_OTHER], piece, outside)) {
            return false;
        }
        us_place_gather(raw, part->data[PLACE_OTHER], offsets[PLACE_OTHER], count, us_dtype_size(dtype));
        us_lane_load(run->lane, values, raw, dtype, 1, count);
        if (call->scales) {
            scale(run->lane, values, count, call->value);
        }
        combine_at(run->lane, call->action == INDEX_MULTIPLY, sums, offsets[PLACE_TENSOR], values, count);
    }
    return true;
}

static void dense_piece(void *context, int64_t piece)
{
    DenseRun *run = context;
    const PlacePiece part = us_place_piece(run->places, run->axes, &run->cut, piece);
    const Reach reach = reach_of(run->places, &part);
    const DType dtype = run->places->tensor.dtype;
    void *sums = us_scratch_array(reach.count, sizeof(uint64_t));
    if (sums == NULL) {
        atomic_store(&run->no_memory, true);
        return;
    }
    int64_t count = 0;
    const char *from = run->copies_parts ? us_place_part(run->places, &part, &run->cut, &count) : NULL;
    const bool is_whole = from != NULL && count == reach.count; /* then it is not written before the sums are */
    if (from != NULL && !is_whole) {
        us_place_copy_part(run->places, &part, &run->cut);
    }
    OutsideIndex outside = {0};
    us_axes_load(&reach.tensor, 0, is_whole ? from : part.data[PLACE_TENSOR], dtype, 0, reach.count, run->lane, sums);
    if (add_dense(run, &part, &reach, piece, sums, &outside)) {
        us_axes_store(&reach.tensor, 0, part.data[PLACE_TENSOR], dtype, 0, reach.count, run->lane, sums);
    } else {
        us_outside_met(&run->outside, piece, outside.index, outside.size);
        if (is_whole) {
            us_place_copy_part(run->places, &part, &run->cut);
        }
    }
    us_scratch_give_back(sums);
}

/* Whether the elements lie close enough; `cut` is how to divide the work then. Depends on sizes only. */
static bool is_dense(const Places *places, const PlaceAxes *axes, Lane lane, PlaceCut *cut)
{
    if (axes->inner_count != 1 || lane == LANE_COMPLEX128) {
        return false;
    }
    *cut = us_place_cut(axes, true, DENSE_PIECE);
    const PlacePiece part = us_place_piece(places, axes, cut, 0);
    const int64_t count = reach_of(places, &part).count;
    return count > 0 && ceiling(count, SPREAD) <= part.axes.outer_count;
}

static KernelStatus accumulate_dense(const Places *places, const PlaceAxes *axes, PlaceCut cut, Lane lane)
{
    DenseRun run = {.places = places, .axes = axes, .cut = cut, .lane = lane};
    run.copies_parts = us_place_copies_parts(places, axes, &cut);
    run_pieces(cut.pieces, axes->outer_count, dense_piece, &run);
    return atomic_load(&run.no_memory) ? KERNEL_NO_MEMORY : us_outside_status(&run.outside);
}

/* ---- rows that one index tensor names ---- */

enum { LEAST_ROW = 2 }; /* elements */

typedef struct RowNumbers {
    const Places *places; /* offsets into the tensor are numbers of rows */
    const Axes *outer;
    int64_t count, *numbers;
    OutsideIndex outside;
} RowNumbers;

/* The slices as rows of a matrix; `index` are their numbers. */
static RowSum rows_of(const Places *places, const PlaceAxes *axes, const View *index)
{
    const DType dtype = places->tensor.dtype;
    const Lane lane = us_lane_of(us_wide_dtype(dtype));
    return (RowSum){.out = places->tensor.data, .rows = places->other.data, .index = index, .width = axes->inner_count,
                    .targets = places->axes[0].axis.size, .dtype = dtype,
                    .wraps = lane == LANE_INT64 || lane == LANE_UINT64};
}

/* Whether the slices are such rows, which us_add_rows adds in the same type and order. */
static bool are_rows(const Places *places, const PlaceAxes *axes)
{
    const Axes *outer = &axes->outer, *inner = &axes->inner;
    const Indexing *call = places->call;
    const int64_t width = axes->inner_count;
    const bool are_matrix = places->count == 1 && call->action == INDEX_ADD && !call->scales &&
                            places->other.dtype == places->tensor.dtype && width >= LEAST_ROW && inner->rank == 1 &&
                            outer->rank == 1 && inner->strides[PLACE_TENSOR][0] == 1 && inner->strides[PLACE_OTHER][0] == 1 &&
                            places->axes[0].axis.stride == width && outer->strides[PLACE_TENSOR][0] == 0 &&
                            outer->strides[PLACE_OTHER][0] == width;
    if (!are_matrix || us_dtype_is_float(places->tensor.dtype)) {
        return are_matrix;
    }
    const View index = {.rank = 1, .shape = {axes->outer_count}};
    const RowSum rows = rows_of(places, axes, &index);
    return us_adds_narrow_rows(&rows);
}

static void number_piece(void *context, int64_t piece)
{
    RowNumbers *work = context;
    const void *index_data[INDEX_LIMIT] = {work->places->axes[0].index.data};
    const int64_t end = work->count < (piece + 1) * PIECE ? work->count : (piece + 1) * PIECE;
    for (int64_t begin = piece * PIECE; begin < end; begin += PLACE_TILE) {
        const int64_t count = end - begin < PLACE_TILE ? end - begin : PLACE_TILE;
        if (!us_place_tile(work->places, work->outer, index_data, begin, count, work->numbers + begin, NULL, piece,
                           &work->outside)) {
            return;
        }
    }
}

static KernelStatus accumulate_rows(const Places *places, const PlaceAxes *axes)
{
    Places numbered = *places;
    numbered.axes[0].axis.stride = 1;
    RowNumbers work = {.places = &numbered, .outer = &axes->outer, .count = axes->outer_count};
    work.numbers = us_scratch_array(work.count, sizeof *work.numbers);
    if (work.numbers == NULL) {
        return KERNEL_NO_MEMORY;
    }
    run_pieces((work.count + PIECE - 1) / PIECE, work.count, number_piece, &work);
    KernelStatus status = us_outside_status(&work.outside);
    if (status == KERNEL_OK) {
        const View index = us_view_contiguous(work.numbers, DTYPE_INT64, 1, &work.count);
        const RowSum rows = rows_of(places, axes, &index);
        status = us_add_rows(&rows);
    }
    us_scratch_give_back(work.numbers);
    return status;
}

KernelStatus us_accumulate_places(const Places *places)
{
    const PlaceAxes axes = us_place_axes(places);
    const Lane lane = us_lane_of(us_wide_dtype(places->tensor.dtype));
    PlaceCut cut;
    if (is_dense(places, &axes, lane, &cut)) {
        return accumulate_dense(places, &axes, cut, lane);
    }
    if (are_rows(places, &axes)) {
        us_place_copies_parts(places, &axes, &(PlaceCut){.axis = -1});
        return accumulate_rows(places, &axes);
    }
    us_place_copies_parts(places, &axes, &(PlaceCut){.axis = -1});
    Accumulation work = {.places = places, .axes = &axes};
    const int64_t count = axes.outer_count, pieces = (count + PIECE - 1) / PIECE;
    WideEntry *const block = us_scratch_array(count, 2 * sizeof *block);
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
    KernelStatus status = us_outside_status(&work.outside);
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
