/* Operators that pick, put and add by index (ft-dsp-manual 3). Indices are checked first: one that names nothing is refused
 * before anything is written. */
#include "ftdsp/manual.h"
#include "kernels/index/indexing.h"
#include "kernels/index/rows.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"
#include "tensor/levels.h"
#include "tensor/parallel.h"

#include <stdatomic.h>
#include <string.h>

/* ---- numbers of rows ---- */

/* The first entry that is not in 0 … limit - 1, by all cores. */
typedef struct Check {
    const int *index;
    int64_t count, limit;
    atomic_llong wrong; /* the first so far */
} Check;

enum { CHECK_PIECE = 65536 };

static void check_entries(void *context, int64_t piece)
{
    Check *check = context;
    const int64_t begin = piece * CHECK_PIECE, left = check->count - begin, count = left < CHECK_PIECE ? left : CHECK_PIECE;
    const int64_t first = us_first_outside(check->index + begin, count, check->limit);
    long long known = atomic_load(&check->wrong);
    while (first < count && begin + first < known && !atomic_compare_exchange_weak(&check->wrong, &known, begin + first)) {
    }
}

static int64_t first_outside_of_all(const int *index, int64_t count, int64_t limit)
{
    Check check = {.index = index, .count = count, .limit = limit, .wrong = count};
    us_parallel((count + CHECK_PIECE - 1) / CHECK_PIECE, check_entries, &check);
    return atomic_load(&check.wrong);
}

static void require_inside(FtCall *call, const char *name, const int *index, int64_t count, int64_t limit)
{
    const int64_t wrong = ft_ok(call) ? first_outside_of_all(index, count, limit) : count;
    ft_require(call, wrong == count, name, "range", FT_BAD_ATTRIBUTE, "entry %lld is %d, the axis has %lld", (long long)wrong,
               index[wrong], (long long)limit);
}

/* The rows that `count` groups of `depth` indices name in the first axes of a shape; NULL after a refusal. */
static int64_t *linear_rows(FtCall *call, const char *name, const int *indices, int64_t count, int depth, const Shape *shape)
{
    int64_t *rows = ft_ok(call) ? us_scratch_array(count + 1, sizeof *rows) : NULL;
    ft_finish(call, rows ? KERNEL_OK : KERNEL_NO_MEMORY);
    const bool are_rows = ft_ok(call) && depth == 1 && first_outside_of_all(indices, count, shape->size[0]) == count;
    for (int64_t k = 0; are_rows && k < count; k++) {
        rows[k] = indices[k];
    }
    for (int64_t k = 0; ft_ok(call) && !are_rows && k < count; k++) {
        rows[k] = 0;
        for (int d = 0; d < depth; d++) {
            const int64_t index = indices[k * depth + d];
            ft_require(call, index >= 0 && index < shape->size[d], name, "range", FT_BAD_ATTRIBUTE,
                       "entry %lld is %lld, the axis has %lld", (long long)(k * depth + d), (long long)index,
                       (long long)shape->size[d]);
            rows[k] = rows[k] * shape->size[d] + index;
        }
    }
    if (!ft_ok(call)) {
        us_scratch_give_back(rows);
        rows = NULL;
    }
    return rows;
}

void ft_op_gather(FtCall *call, const FtGather *a)
{
    const Shape input = ft_shape(call, "input_shape", a->input_shape, a->input_ndim);
    const Shape indices = ft_shape(call, "indices_shape", a->indices_shape, a->indices_ndim);
    const int axis = a->axis, common = a->batch_dims;
    ft_require(call, axis >= 0 && axis < input.rank, "axis", "range", FT_BAD_ATTRIBUTE, "axis is %d of %d axes", axis,
               input.rank);
    ft_require(call, common >= 0 && common <= axis && common <= indices.rank, "batch_dims", "range", FT_BAD_ATTRIBUTE,
               "batch_dims is %d, the axis %d, indices has %d axes", common, axis, indices.rank);
    for (int d = 0; ft_ok(call) && d < common; d++) {
        ft_require(call, input.size[d] == indices.size[d], "indices_shape", "mismatch", FT_BAD_SIZE,
                   "axis %d has %lld entries, that of the input %lld", d, (long long)indices.size[d],
                   (long long)input.size[d]);
    }
    if (!ft_ok(call)) {
        return;
    }
    RowPick pick = {.in = a->input, .out = a->output, .axis = input.size[axis]};
    pick.batches = us_shape_elements(common, input.size);
    pick.outer = us_shape_elements(axis - common, input.size + common);
    pick.picks = us_shape_elements(indices.rank - common, indices.size + common);
    const int64_t inner = us_shape_elements(input.rank - axis - 1, input.size + axis + 1);
    const int64_t count = ft_count(call, "output", 4, (int64_t[]){pick.batches, pick.outer, pick.picks, inner});
    ft_operand(call, "output", a->output, count, call->dtype);
    ft_apart(call, "output", a->output, ft_bytes(count, call->dtype), "input", a->input,
             ft_bytes(input.elements, call->dtype));
    ft_apart(call, "output", a->output, ft_bytes(count, call->dtype), "indices", a->indices,
             ft_bytes(indices.elements, DTYPE_INT32));
    pick.row_bytes = ft_bytes(inner, call->dtype);
    const Shape along = {.rank = 1, .size = {pick.axis}, .elements = pick.axis};
    int64_t *rows = count == 0 ? NULL : linear_rows(call, "indices", a->indices, indices.elements, 1, &along);
    if (rows) {
        pick.index = rows;
        us_pick_rows(&pick);
        us_scratch_give_back(rows);
    }
}

/* Slices that the last axis of indices names: what gather_nd and the scatters have in common. */
typedef struct Slices {
    int64_t count, width; /* elements */
    int depth;
} Slices;

static Slices slices_of(FtCall *call, const Shape *shape, const int *indices_shape, int indices_ndim)
{
    const Shape indices = ft_shape(call, "indices_shape", indices_shape, indices_ndim);
    const int64_t depth = ft_ok(call) ? indices.size[indices.rank - 1] : 0;
    ft_require(call, depth >= 1 && depth <= shape->rank, "indices_shape", "mismatch", FT_BAD_SIZE,
               "the last axis has %lld entries for %d axes", (long long)depth, shape->rank);
    if (!ft_ok(call)) {
        return (Slices){0};
    }
    const int64_t count = indices.elements / depth; /* without a slice the sizes may multiply to anything */
    const int64_t width = count == 0 ? 0 : us_shape_elements(shape->rank - (int)depth, shape->size + depth);
    return (Slices){count, width, (int)depth};
}

void ft_op_gather_nd(FtCall *call, const FtGatherNd *a)
{
    const Shape input = ft_shape(call, "input_shape", a->input_shape, a->input_ndim);
    const Slices slices = slices_of(call, &input, a->indices_shape, a->indices_ndim);
    const int64_t count = ft_count(call, "output", 2, (int64_t[]){slices.count, slices.width});
    ft_operand(call, "output", a->output, count, call->dtype);
    ft_apart(call, "output", a->output, ft_bytes(count, call->dtype), "input", a->input,
             ft_bytes(input.elements, call->dtype));
    ft_apart(call, "output", a->output, ft_bytes(count, call->dtype), "indices", a->indices,
             ft_bytes(slices.count * slices.depth, DTYPE_INT32));
    int64_t *rows = count == 0 ? NULL : linear_rows(call, "indices", a->indices, slices.count, slices.depth, &input);
    if (rows) {
        const RowPick pick = {a->input, a->output, rows, 1, 1, 0, slices.count, ft_bytes(slices.width, call->dtype)};
        us_pick_rows(&pick);
        us_scratch_give_back(rows);
    }
}

static void scatter(FtCall *call, void *output, const int *output_shape, int output_ndim, const int *indices,
                    const int *indices_shape, int indices_ndim, const void *updates, bool adds)
{
    const Shape shape = ft_shape(call, "output_shape", output_shape, output_ndim);
    const Slices slices = slices_of(call, &shape, indices_shape, indices_ndim);
    const int64_t count = ft_count(call, "updates", 2, (int64_t[]){slices.count, slices.width});
    ft_operand(call, "updates", updates, count, call->dtype);
    ft_apart(call, "output", output, ft_bytes(shape.elements, call->dtype), "updates", updates,
             ft_bytes(count, call->dtype));
    int64_t *rows = count == 0 ? NULL : linear_rows(call, "indices", indices, slices.count, slices.depth, &shape);
    if (!rows) {
        return;
    }
    if (adds) {
        const View index = us_view_contiguous(rows, DTYPE_INT64, 1, &slices.count);
        const RowSum sum = {.out = output, .rows = updates, .index = &index, .width = slices.width, .dtype = call->dtype,
                            .targets = us_shape_elements(slices.depth, shape.size)};
        ft_finish(call, us_add_rows(&sum));
    } else {
        us_put_rows(output, updates, rows, slices.count, ft_bytes(slices.width, call->dtype));
    }
    us_scratch_give_back(rows);
}

void ft_op_scatter_nd(FtCall *call, const FtScatterNd *a)
{
    scatter(call, a->output, a->output_shape, a->output_ndim, a->indices, a->indices_shape, a->indices_ndim, a->updates, true);
}

void ft_op_scatter_nd_update(FtCall *call, const FtScatterNdUpdate *a)
{
    scatter(call, a->output, a->output_shape, a->output_ndim, a->indices, a->indices_shape, a->indices_ndim, a->updates,
            false);
}

void ft_op_unsorted_segment_sum(FtCall *call, const FtUnsortedSegmentSum *a)
{
    const int64_t count = a->dim0;
    require_inside(call, "index", a->index, count, a->id_max);
    const View index = us_view_contiguous((void *)a->index, DTYPE_INT32, 1, &count);
    const RowSum sum = {.out = a->output, .rows = a->input, .index = &index, .targets = a->id_max, .width = a->dim1,
                        .dtype = call->dtype, .clears = true};
    ft_finish(call, ft_ok(call) ? us_add_rows(&sum) : KERNEL_OK);
}

/* ---- single elements ---- */

static void pick_elements(FtCall *call, const FtGatherd *a, const Shape *input, const Shape *index)
{
    Indexing pick = {.action = INDEX_READ, .rank = index->rank, .index_count = 1, .axis_count = 1, .mask_axis = -1};
    int64_t stride = 1;
    for (int d = input->rank - 1; d >= 0; d--) {
        pick.shape[d] = index->size[d];
        pick.steps[d] = d == a->dim ? 0 : stride;
        pick.axes[0] = d == a->dim ? (IndexedAxis){input->size[d], stride} : pick.axes[0];
        stride *= input->size[d];
    }
    const View views[] = {us_view_absent(), us_view_contiguous((void *)a->input_x, call->dtype, input->rank, input->size),
                          us_view_contiguous(a->output, call->dtype, index->rank, index->size),
                          us_view_contiguous((void *)a->index, DTYPE_INT32, index->rank, index->size)};
    const KernelStatus status = us_indexing(views, &pick);
    ft_require(call, status != KERNEL_FAULT, "index", "range", FT_BAD_ATTRIBUTE, "%s; it was changed during the call",
               us_kernel_fault_text());
    ft_finish(call, status);
}

void ft_op_gatherd(FtCall *call, const FtGatherd *a)
{
    const Shape input = ft_shape(call, "input_shape", a->input_shape, a->input_shape_size);
    const Shape index = ft_shape(call, "index_shape", a->index_shape, a->input_shape_size);
    ft_require(call, a->dim >= 0 && a->dim < a->input_shape_size, "dim", "range", FT_BAD_ATTRIBUTE, "dim is %d of %d axes",
               a->dim, a->input_shape_size);
    for (int d = 0; ft_ok(call) && d < index.rank; d++) {
        ft_require(call, d == a->dim || index.size[d] <= input.size[d], "index_shape", "mismatch", FT_BAD_SIZE,
                   "axis %d has %lld entries, that of the input %lld", d, (long long)index.size[d], (long long)input.size[d]);
    }
    require_inside(call, "index", a->index, ft_ok(call) ? index.elements : 0, ft_ok(call) ? input.size[a->dim] : 0);
    if (ft_ok(call) && index.elements > 0) {
        pick_elements(call, a, &input, &index);
    }
}

/* The sum of three products of ints may leave int64, but then not come back to where places are. */
static int64_t place_of(const FtSparsetodense *a, int64_t entry)
{
    const int *d = (const int *)a->indices_vec + 4 * entry, *s = a->output_strides;
    uint64_t place = (uint64_t)(int64_t)d[3];
    for (int axis = 0; axis < 3; axis++) {
        place += (uint64_t)((int64_t)d[axis] * s[axis]);
    }
    return (int64_t)place;
}

void ft_op_sparsetodense(FtCall *call, const FtSparsetodense *a)
{
    const int64_t size = ft_bytes(1, call->dtype);
    int64_t end = 0;
    ft_operand(call, "sparse_values", a->sparse_values, a->is_scalar && a->sparse_length > 0 ? 1 : a->sparse_length,
               call->dtype);
    ft_apart(call, "output", a->output, size, "indices_vec", a->indices_vec, 16 * (int64_t)a->sparse_length);
    for (int64_t k = 0; ft_ok(call) && k < a->sparse_length; k++) {
        const int64_t place = place_of(a, k);
        ft_require(call, place >= 0 && place < FT_ELEMENT_LIMIT, "indices_vec", "range", FT_BAD_ATTRIBUTE,
                   "entry %lld is place %lld of the output", (long long)k, (long long)place);
        end = ft_ok(call) && place >= end ? place + 1 : end;
    }
    ft_operand(call, "output", a->output, end, call->dtype);
    ft_apart(call, "output", a->output, end * size, "indices_vec", a->indices_vec, 16 * (int64_t)a->sparse_length);
    ft_apart(call, "output", a->output, end * size, "output_strides", a->output_strides, 3 * (int64_t)sizeof(int));
    ft_apart(call, "output", a->output, end * size, "sparse_values", a->sparse_values,
             (a->is_scalar && a->sparse_length > 0 ? 1 : a->sparse_length) * size);
    for (int64_t k = 0; ft_ok(call) && k < a->sparse_length; k++) {
        memcpy((char *)a->output + place_of(a, k) * size,
               (const char *)a->sparse_values + (a->is_scalar ? 0 : k * size), (size_t)size);
    }
}

static int64_t row_major_strides(FtCall *call, const char *name, const int *sizes, int rank, int64_t *strides)
{
    int64_t elements = 1;
    for (int d = rank - 1; ft_ok(call) && d >= 0; d--) {
        strides[d] = elements;
        ft_require(call, sizes[d] >= 0 && !__builtin_mul_overflow(elements, (int64_t)sizes[d], &elements) &&
                   elements <= INT32_MAX, name, "range", FT_BAD_SIZE, "axis %d has %d entries", d, sizes[d]);
    }
    return elements;
}

void ft_op_sparsereshape(FtCall *call, const FtSparsereshape *a)
{
    const int *in_shape = a->in_inshape_ptr, *out_shape = a->in_outshape_ptr, *indices = a->in_indices_ptr;
    int64_t in_stride[ARRAY_RANK_LIMIT], out_stride[ARRAY_RANK_LIMIT];
    ft_rank(call, "input_rank", a->input_rank, 1);
    ft_rank(call, "output_rank", a->output_rank, 1);
    const int64_t from = ft_ok(call) ? row_major_strides(call, "in_inshape_ptr", in_shape, a->input_rank, in_stride) : 0;
    const int64_t to = ft_ok(call) ? row_major_strides(call, "in_outshape_ptr", out_shape, a->output_rank, out_stride) : 0;
    ft_require(call, from == to, "in_outshape_ptr", "mismatch", FT_BAD_SIZE, "the shapes have %lld and %lld elements",
               (long long)from, (long long)to);
    for (int64_t k = 0; ft_ok(call) && k < (int64_t)a->N * a->input_rank; k++) {
        ft_require(call, indices[k] >= 0 && indices[k] < in_shape[k % a->input_rank], "in_indices_ptr", "range",
                   FT_BAD_ATTRIBUTE, "entry %lld is %d, its axis has %d", (long long)k, indices[k], in_shape[k % a->input_rank]);
    }
    if (!ft_ok(call)) {
        return;
    }
    for (int64_t k = 0; k < a->N; k++) {
        int64_t place = 0;
        for (int d = 0; d < a->input_rank; d++) {
            place += indices[k * a->input_rank + d] * in_stride[d];
        }
        for (int d = 0; d < a->output_rank; place %= out_stride[d++]) {
            ((int *)a->out_indices_ptr)[k * a->output_rank + d] = (int)(place / out_stride[d]);
        }
    }
    for (int d = 0; d < a->input_rank; d++) {
        ((int *)a->in_stride)[d] = (int)in_stride[d];
    }
    for (int d = 0; d < a->output_rank; d++) {
        ((int *)a->out_stride)[d] = (int)out_stride[d];
        ((int *)a->out_outshape_ptr)[d] = out_shape[d];
    }
}

/* row *= max_norm / sum of the row, in float64 and rounded once. */
static void regulate(char *row, int64_t count, DType dtype, double max_norm)
{
    enum { TILE = 512 };
    double values[TILE], sum = 0;
    for (int pass = 0; pass < 2; pass++) {
        const double factor = max_norm / sum;
        for (int64_t first = 0; first < count && (pass == 0 || sum != 0); first += TILE) {
            const int64_t tile = count - first < TILE ? count - first : TILE;
            us_load_double(values, row + ft_bytes(first, dtype), dtype, 1, tile);
            for (int64_t i = 0; i < tile; i++) {
                sum += pass == 0 ? values[i] : 0;
                values[i] *= factor;
            }
            if (pass == 1) {
                us_store_double(row + ft_bytes(first, dtype), dtype, 1, values, tile);
            }
        }
    }
}

void ft_op_embeddinglookup(FtCall *call, const FtEmbeddinglookup *a)
{
    const int64_t bytes = ft_bytes(a->layer_size_, call->dtype);
    unsigned char *regulated = a->is_regulated; /* a program's bool may hold any byte */
    for (int i = 0; i < a->ids_size_; i++) {
        const int id = ((const int *)a->ids)[i];
        if (id < 0 || id >= a->layer_num_) {
            continue;
        }
        char *row = (char *)a->input_data + id * bytes;
        if (!regulated[id]) {
            regulate(row, a->layer_size_, call->dtype, a->max_norm_);
            regulated[id] = 1;
        }
        if (bytes > 0) {
            memcpy((char *)a->output + i * bytes, row, (size_t)bytes);
        }
    }
}
