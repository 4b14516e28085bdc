/* Reductions, searches and hashes (ft-dsp-manual 4). */
#include "ftdsp/manual.h"
#include "ftdsp/number.h"
#include "kernels/reduce/reductions.h"
#include "kernels/scratch.h"
#include "kernels/sort/beats.h"
#include "report/hash.h"
#include "tensor/convert.h"
#include "tensor/lane.h"
#include "tensor/parallel.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* ---- reduce ---- */

typedef enum ReduceMode { MODE_MEAN, MODE_MAX, MODE_MIN, MODE_PROD, MODE_SUM, MODE_SUM_SQUARE, MODE_ASUM, MODE_L2,
                         MODES } ReduceMode;

/* Squares and magnitudes are those of the first step's elements. */
static const Reduction *reduction_of(ReduceMode mode, bool first)
{
    static const Reduction *const firsts[] = {
        &us_reduce_mean, &us_reduce_max, &us_reduce_min, &us_reduce_prod, &us_reduce_sum,
        &us_reduce_sum_squares, &us_reduce_norm_1, &us_reduce_sum_squares,
    };
    return first || mode <= MODE_SUM ? firsts[mode] : &us_reduce_sum;
}

static int64_t step_elements(const ReduceParameter *p, int step, bool reduced)
{
    return us_shape_elements(3, (int64_t[]){p->outer_sizes_[step], reduced ? 1 : p->axis_sizes_[step], p->inner_sizes_[step]});
}

static void check_steps(FtCall *call, const ReduceParameter *p)
{
    ft_require(call, p, "param", "null", FT_BAD_POINTER, "param is NULL");
    ft_require(call, p->num_axes_ >= 1 && p->num_axes_ <= ARRAY_RANK_LIMIT, "num_axes_", "range", FT_BAD_SIZE,
               "num_axes_ is %d; from 1 to %d axes are supported", p->num_axes_, (int)ARRAY_RANK_LIMIT);
    ft_require(call, p->mode_ >= 0 && p->mode_ < MODES, "mode_", "range", FT_BAD_ATTRIBUTE, "mode_ is %d, none of 0 to 7",
               p->mode_);
    ft_require(call, p->outer_sizes_ && p->inner_sizes_ && p->axis_sizes_, "param", "sizes", FT_BAD_POINTER,
               "outer_sizes_, inner_sizes_ or axis_sizes_ is NULL");
    for (int step = 0; ft_ok(call) && step < p->num_axes_; step++) {
        const int64_t before = step == 0 ? p->total_num_ : step_elements(p, step - 1, true);
        ft_require(call, before >= 0 && step_elements(p, step, false) == before, "total_num_", "mismatch", FT_BAD_SIZE,
                   "step %d has sizes %d, %d, %d, but %lld elements come into it", step, p->outer_sizes_[step],
                   p->axis_sizes_[step], p->inner_sizes_[step], (long long)before);
    }
    ft_require(call, step_elements(p, p->num_axes_ - 1, true) == p->output_num_, "output_num_", "mismatch", FT_BAD_SIZE,
               "output_num_ is %d, the last step has %lld results", p->output_num_,
               (long long)step_elements(p, p->num_axes_ - 1, true));
}

/* States are float64. */
static DType compute_type(DType dtype)
{
    return dtype == DTYPE_FLOAT16 || dtype == DTYPE_FLOAT32 ? dtype : DTYPE_FLOAT64;
}

/* One step from elements of a type to float64. */
static KernelStatus reduce_step(const ReduceParameter *p, int step, const void *from, DType dtype, double *to)
{
    const int64_t sizes[] = {p->outer_sizes_[step], p->axis_sizes_[step], p->inner_sizes_[step]};
    const View views[] = {us_view_contiguous((void *)from, dtype, 3, sizes),
                          us_view_contiguous(to, DTYPE_FLOAT64, 3, (int64_t[]){sizes[0], 1, sizes[2]})};
    const ReduceCall reduce = {.reduction = reduction_of(p->mode_, step == 0), .compute = compute_type(dtype),
                               .result = DTYPE_FLOAT64, .axes = 2, .outputs = 1};
    return us_reduce(views, &reduce);
}

/* Of the steps' results; after an empty axis a later one can be larger than the first. */
static int64_t largest_result(const ReduceParameter *p)
{
    int64_t most = 0;
    for (int step = 0; step < p->num_axes_; step++) {
        const int64_t elements = step_elements(p, step, true);
        most = elements > most ? elements : most;
    }
    return most;
}

/* Steps take turns in the two halves of `memory`, each of `half` numbers. */
static KernelStatus reduce_steps(const ReduceParameter *p, const void *src, DType dtype, double *memory, int64_t half,
                                 double **result)
{
    double *halves[] = {memory, memory + half};
    KernelStatus status = reduce_step(p, 0, src, dtype, halves[0]);
    for (int step = 1; status == KERNEL_OK && step < p->num_axes_; step++) {
        status = reduce_step(p, step, halves[(step + 1) % 2], DTYPE_FLOAT64, halves[step % 2]);
    }
    *result = halves[(p->num_axes_ - 1) % 2];
    for (int64_t i = 0; p->mode_ == MODE_L2 && i < p->output_num_; i++) {
        (*result)[i] = sqrt((*result)[i]);
    }
    return status;
}

void ft_op_reduce(FtCall *call, const FtReduce *a)
{
    const ReduceParameter *p = a->param;
    check_steps(call, p);
    const int64_t from = ft_ok(call) ? p->total_num_ : 0, to = ft_ok(call) ? p->output_num_ : 0;
    ft_operand(call, "src", a->src, from, call->dtype);
    ft_operand(call, "dst", a->dst, to, a->D);
    ft_apart(call, "dst", a->dst, ft_bytes(to, a->D), "src", a->src, ft_bytes(from, call->dtype));
    if (!ft_ok(call) || to == 0) {
        return;
    }
    const int64_t half = largest_result(p);
    double *memory = us_scratch_array(half, 2 * sizeof *memory), *result = NULL;
    ft_finish(call, memory ? reduce_steps(p, a->src, call->dtype, memory, half, &result) : KERNEL_NO_MEMORY);
    if (ft_ok(call)) {
        us_store_double(a->dst, a->D, 1, result, to);
    }
    us_scratch_give_back(memory);
}

/* ---- the largest and smallest ---- */

typedef struct Candidate {
    double value;
    int64_t index;
} Candidate;

/* The larger first, NaN before all, of equal ones the first. */
static int by_value(const Candidate *first, const Candidate *second)
{
    const bool first_nan = first->value != first->value, second_nan = second->value != second->value;
    const int values = first_nan || second_nan ? second_nan - first_nan
                                               : (first->value < second->value) - (first->value > second->value);
    return values ? values : (first->index > second->index) - (first->index < second->index);
}

/* Lines of `length` elements, `inner` apart, whose best are searched. */
typedef struct Search {
    const FtArgmax *a;
    DType dtype;
    double sign; /* -1: the smallest */
    void *values;
    int64_t length, inner;
    atomic_bool no_memory;
} Search;

/* Moves a candidate of a heap, whose first is the last by value, down to its place. */
static void sift(Candidate *heap, int64_t count, int64_t at)
{
    const Candidate moved = heap[at];
    for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        child += child + 1 < count && by_value(&heap[child + 1], &heap[child]) > 0;
        if (by_value(&heap[child], &moved) < 0) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

/* Puts a candidate among the best, of which there are `count` so far; `limit` of them are a heap. */
static int64_t insert(Candidate *best, int64_t count, int64_t limit, Candidate candidate)
{
    if (count == limit) {
        if (by_value(&candidate, &best[0]) < 0) {
            best[0] = candidate;
            sift(best, count, 0);
        }
        return count;
    }
    best[count++] = candidate;
    for (int64_t at = count / 2 - 1; count == limit && at >= 0; at--) {
        sift(best, count, at);
    }
    return count;
}

/* A heap becomes a list, best first. */
static void sort(Candidate *heap, int64_t count)
{
    while (count > 1) {
        const Candidate last = heap[0];
        heap[0] = heap[--count];
        heap[count] = last;
        sift(heap, count, 0);
    }
}

static void search_line(void *context, int64_t line)
{
    enum { TILE = 128 };
    Search *search = context;
    const FtArgmax *a = search->a;
    const int64_t inner = search->inner, from = line / inner * search->length * inner + line % inner;
    const int64_t to = line / inner * a->topk * inner + line % inner;
    double tile[TILE];
    Candidate *best = us_scratch_array(a->topk + 1, sizeof *best);
    if (!best) {
        search->no_memory = true;
        return;
    }
    for (int64_t begin = 0, found = 0; begin < search->length && a->topk > 0; begin += TILE) {
        const int64_t count = search->length - begin < TILE ? search->length - begin : TILE;
        const char *elements = (const char *)a->input + ft_bytes(from + begin * inner, search->dtype);
        us_load_double(tile, elements, search->dtype, inner, count);
        if (found == a->topk && !us_one_beats(tile, count, search->sign, best[0].value)) {
            continue; /* equal ones come later */
        }
        for (int64_t k = 0; k < count; k++) {
            found = insert(best, found, a->topk, (Candidate){search->sign * tile[k], begin + k});
        }
    }
    sort(best, a->topk);
    for (int64_t k = 0; k < a->topk; k++) {
        const double value = search->sign * best[k].value;
        ((int *)a->output)[to + k * inner] = (int)best[k].index;
        if (search->values) {
            us_store_double((char *)search->values + ft_bytes(to + k * inner, search->dtype), search->dtype, 1, &value, 1);
        }
    }
    us_scratch_give_back(best);
}

/* One of each line, of [outer, length, inner]. */
static KernelStatus the_best(const FtArgmax *a, DType dtype, double sign, void *values, const int64_t *sizes)
{
    const int64_t kept[] = {sizes[0], 1, sizes[2]};
    const View views[] = {us_view_contiguous((void *)a->input, dtype, 3, sizes),
                          values ? us_view_contiguous(values, dtype, 3, kept) : us_view_absent(),
                          us_view_contiguous(a->output, DTYPE_INT32, 3, kept)};
    const ReduceCall reduce = {.reduction = sign > 0 ? &us_reduce_max_index : &us_reduce_min_index, .compute = dtype,
                               .result = dtype, .axes = 2, .outputs = 2};
    return us_reduce(views, &reduce);
}

/* An operand and its bytes, for checks of all against all. */
typedef struct Extent {
    const char *name;
    const void *data;
    int64_t bytes;
    bool written;
} Extent;

static void all_apart(FtCall *call, const Extent *extents, int count)
{
    for (int k = 1; k < count; k++) {
        for (int i = 0; i < k; i++) {
            if (extents[k].written) {
                ft_apart(call, extents[k].name, extents[k].data, extents[k].bytes, extents[i].name, extents[i].data,
                         extents[i].bytes);
            }
        }
    }
}

static void best(FtCall *call, const FtArgmax *a, double sign)
{
    const Shape shape = ft_shape(call, "in_shape", (const int *)a->in_shape, a->input_shape_size);
    const int axis = a->axis;
    ft_require(call, axis >= 0 && axis < shape.rank, "axis", "range", FT_BAD_ATTRIBUTE, "axis is %d of %d axes", axis,
               shape.rank);
    ft_require(call, a->topk <= shape.size[axis], "topk", "mismatch", FT_BAD_ATTRIBUTE, "topk is %d of %lld elements", a->topk,
               (long long)shape.size[axis]);
    if (!ft_ok(call) || shape.elements == 0) { /* the sizes beside an empty axis may multiply to anything */
        return;
    }
    const int64_t length = shape.size[axis], outer = us_shape_elements(axis, shape.size);
    const int64_t inner = us_shape_elements(shape.rank - axis - 1, shape.size + axis + 1), count = outer * a->topk * inner;
    Shape picked = shape;
    picked.size[axis] = a->topk;
    picked.elements = count;
    ft_strides(call, "in_strides", a->in_strides, &shape);
    ft_strides(call, "out_strides", a->out_strides, &picked);
    void *values = a->out_value ? a->output_value : NULL;
    const int64_t value_count = a->out_value ? count : 0;
    ft_operand(call, "output", a->output, count, DTYPE_INT32);
    ft_operand(call, "output_value", values, value_count, call->dtype);
    ft_operand(call, "arg_elements", a->arg_elements, length, call->dtype);
    ft_operand(call, "index", a->index, length, DTYPE_INT32);
    all_apart(call, (Extent[]){{"input", a->input, ft_bytes(shape.elements, call->dtype), false},
                               {"output", a->output, ft_bytes(count, DTYPE_INT32), true},
                               {"output_value", values, ft_bytes(value_count, call->dtype), true},
                               {"arg_elements", a->arg_elements, ft_bytes(length, call->dtype), true},
                               {"index", a->index, ft_bytes(length, DTYPE_INT32), true}}, 5);
    if (ft_ok(call) && a->topk == 1) {
        ft_finish(call, the_best(a, call->dtype, sign, values, (int64_t[]){outer, length, inner}));
    } else if (ft_ok(call)) {
        Search search = {.a = a, .dtype = call->dtype, .sign = sign, .values = values, .length = length, .inner = inner};
        us_parallel(outer * inner, search_line, &search);
        ft_finish(call, search.no_memory ? KERNEL_NO_MEMORY : KERNEL_OK);
    }
}

void ft_op_argmax(FtCall *call, const FtArgmax *a)
{
    best(call, a, 1);
}

void ft_op_argmin(FtCall *call, const FtArgmin *a)
{
    best(call, &(FtArgmax){a->input, a->output, a->output_value, a->in_shape, a->in_strides, a->out_strides, a->arg_elements,
                           a->index, a->topk, a->out_value, a->input_shape_size, a->axis}, -1);
}

/* ---- what is not zero ---- */

enum { NONZERO_TILE = 1024 };

/* Which of `count` elements from `first` on are not zero: 1 or 0; how many. */
static int64_t nonzero_tile(const FtNonzero *a, DType dtype, int64_t first, int64_t count, uint8_t *is_nonzero)
{
    int64_t found = 0;
    us_convert(is_nonzero, DTYPE_BOOL, (const char *)a->input + ft_bytes(first, dtype), dtype, count);
    for (int64_t i = 0; i < count; i++) {
        found += is_nonzero[i];
    }
    return found;
}

static int64_t tile_count(const FtNonzero *a, int64_t first)
{
    return a->length - first < NONZERO_TILE ? a->length - first : NONZERO_TILE;
}

void ft_op_nonzero(FtCall *call, const FtNonzero *a)
{
    const Shape shape = ft_shape(call, "shape", a->shape, a->input_rank);
    int *found = a->non_zero_num, *output = a->output;
    ft_require(call, a->length == shape.elements, "length", "mismatch", FT_BAD_SIZE, "length is %d, the shape has %lld",
               a->length, (long long)shape.elements);
    uint32_t strides[ARRAY_RANK_LIMIT] = {0};
    for (int d = 0; ft_ok(call) && d < shape.rank && a->length > 0; d++) {
        ft_require(call, a->dim_strides[d] >= 1, "dim_strides", "range", FT_BAD_SIZE, "dim_strides[%d] is %d", d,
                   a->dim_strides[d]);
        strides[d] = (uint32_t)a->dim_strides[d];
    }
    ft_require(call, *found >= 0, "non_zero_num", "negative", FT_BAD_SIZE, "*non_zero_num is %d; it begins with 0", *found);
    int64_t count = 0;
    uint8_t is_nonzero[NONZERO_TILE];
    for (int64_t i = 0; ft_ok(call) && i < a->length; i += NONZERO_TILE) {
        count += nonzero_tile(a, call->dtype, i, tile_count(a, i), is_nonzero);
    }
    const int64_t rows = ft_ok(call) ? *found + count : 0, bytes = ft_bytes(rows * shape.rank, DTYPE_INT32);
    ft_operand(call, "output", output, rows * shape.rank, DTYPE_INT32);
    ft_apart(call, "output", output, bytes, "input", a->input, ft_bytes(a->length, call->dtype));
    ft_apart(call, "non_zero_num", found, ft_bytes(1, DTYPE_INT32), "output", output, bytes);
    for (int64_t i = 0; ft_ok(call) && i < a->length; i += NONZERO_TILE) {
        nonzero_tile(a, call->dtype, i, tile_count(a, i), is_nonzero);
        for (int64_t k = 0; k < tile_count(a, i); k++) {
            for (int d = 0; d < shape.rank && is_nonzero[k]; d++) {
                const uint32_t place = (uint32_t)(i + k) / strides[d];
                output[*found * (int64_t)shape.rank + d] = (int)(place % (uint32_t)shape.size[d]);
            }
            *found += is_nonzero[k];
        }
    }
}

/* ---- rows without an entry ---- */

static void move_value(const FtCall *call, void *to, int64_t index, const void *from, int64_t source)
{
    memcpy((char *)to + ft_bytes(index, call->dtype), (const char *)from + ft_bytes(source, call->dtype),
           us_dtype_size(call->dtype));
}

static void store_default(const FtCall *call, void *to, int64_t index, double value)
{
    const double parts[2] = {value, 0}; /* of a complex number */
    const bool pair = call->dtype == DTYPE_COMPLEX64 || call->dtype == DTYPE_COMPLEX128;
    const DType part = call->dtype == DTYPE_COMPLEX64    ? DTYPE_FLOAT32
                       : call->dtype == DTYPE_COMPLEX128 ? DTYPE_FLOAT64
                                                         : call->dtype;
    us_store_double((char *)to + ft_bytes(index, call->dtype), part, 1, parts, pair ? 2 : 1);
}

void ft_op_sparsefillemptyrows(FtCall *call, const FtSparsefillemptyrows *a)
{
    const int *indices = a->indices_ptr;
    int *ends = a->scratch_ptr, *filled = a->filled_count;
    int *out = a->output_y_indices_ptr, *reverse = a->output_reverse_index_map_ptr;
    /* the outputs have a row each at the least; indices that lie under them are not to be read */
    const int64_t all_indices = ft_bytes((int64_t)a->N * a->rank, DTYPE_INT32);
    const int64_t least = ft_count(call, "output_y_indices_ptr", 2, (int64_t[]){a->dense_rows, a->rank});
    ft_apart(call, "output_y_indices_ptr", out, ft_bytes(least, DTYPE_INT32), "indices_ptr", indices, all_indices);
    ft_apart(call, "output_y_values_ptr", a->output_y_values_ptr, ft_bytes(a->dense_rows, call->dtype), "indices_ptr", indices,
             all_indices);
    /* one row each, and one for each further entry */
    int64_t extra = 0;
    int *counts = us_scratch_array((int64_t)a->dense_rows + 1, sizeof *counts);
    ft_finish(call, counts ? KERNEL_OK : KERNEL_NO_MEMORY);
    if (counts) {
        memset(counts, 0, (size_t)a->dense_rows * sizeof *counts);
    }
    for (int64_t i = 0; ft_ok(call) && i < a->N; i++) {
        const int row = indices[i * a->rank];
        ft_require(call, row >= 0 && row < a->dense_rows, "indices_ptr", "range", FT_BAD_ATTRIBUTE,
                   "entry %lld is in row %d of %d", (long long)i, row, a->dense_rows);
        if (ft_ok(call)) {
            extra += counts[row]++ > 0;
        }
    }
    const int64_t total = a->dense_rows + extra, index_bytes = ft_bytes(total * a->rank, DTYPE_INT32);
    ft_operand(call, "output_y_indices_ptr", out, total * a->rank, DTYPE_INT32);
    ft_operand(call, "output_y_values_ptr", a->output_y_values_ptr, total, call->dtype);
    const Extent extents[] = {{"indices_ptr", indices, ft_bytes((int64_t)a->N * a->rank, DTYPE_INT32), false},
                              {"values_ptr", a->values_ptr, ft_bytes(a->N, call->dtype), false},
                              {"scratch_ptr", ends, ft_bytes(a->dense_rows, DTYPE_INT32), true},
                              {"output_y_indices_ptr", out, index_bytes, true},
                              {"output_y_values_ptr", a->output_y_values_ptr, ft_bytes(total, call->dtype), true},
                              {"output_reverse_index_map_ptr", reverse, ft_bytes(a->N, DTYPE_INT32), true},
                              {"filled_count", filled, ft_bytes(a->dense_rows, DTYPE_INT32), true}};
    all_apart(call, extents, 7);
    for (int row = 0, end = 0; ft_ok(call) && row < a->dense_rows; row++) {
        if (counts[row] == 0) {
            memset(out + (int64_t)end * a->rank, 0, (size_t)a->rank * sizeof *out);
            out[(int64_t)end * a->rank] = row;
            store_default(call, a->output_y_values_ptr, end, a->default_value);
        }
        end += counts[row] > 0 ? counts[row] : 1;
        ends[row] = end;
        filled[row] = 0;
    }
    for (int64_t i = 0; ft_ok(call) && i < a->N; i++) {
        const int row = indices[i * a->rank], place = (row > 0 ? ends[row - 1] : 0) + filled[row]++;
        memcpy(out + (int64_t)place * a->rank, indices + i * a->rank, (size_t)a->rank * sizeof *out);
        move_value(call, a->output_y_values_ptr, place, a->values_ptr, i);
        if (reverse) {
            reverse[i] = place;
        }
    }
    us_scratch_give_back(counts);
}

/* ---- hashes ---- */

static int64_t hash(float seed, int32_t feature)
{
    unsigned char bytes[8];
    memcpy(bytes, &seed, 4);
    memcpy(bytes + 4, &feature, 4);
    return (int64_t)us_hash(bytes, sizeof bytes);
}

void ft_op_lsh_projection(FtCall *call, const FtLshProjection *a)
{
    ft_require(call, a->bits_per_hash <= 32, "bits_per_hash", "limit", FT_BAD_ATTRIBUTE, "bits_per_hash is %d; a result has 32",
               a->bits_per_hash);
    for (int64_t group = 0; ft_ok(call) && group < a->hash_group_num; group++) {
        uint32_t bits = 0;
        for (int bit = 0; bit < a->bits_per_hash; bit++) {
            const float seed = ((const float *)a->hash_seed)[group * a->bits_per_hash + bit];
            double score = 0;
            for (int64_t k = 0; k < a->feature_num; k++) {
                const double weight = a->weight ? ft_number(a->weight, call->dtype, k) : 1;
                score += weight * (double)hash(seed, ((const int32_t *)a->feature)[k]);
            }
            bits = bits << 1 | (score > 0);
        }
        ((int32_t *)a->output)[group] = (int32_t)bits;
    }
}
