#include "kernels/softmax/plan.h"

#include "kernels/maths/maths.h"
#include "kernels/move/transpose.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/levels.h"
#include "tensor/parallel.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Groups longer than ROW_LIMIT are taken apart into parts (e^x is formed twice instead of being kept). Columns are
 * handled so many at a time that the values kept for them fit in a core's cache. Rows shorter than SHORT_ROW elements,
 * or of one type than SHORT_TURNED_ROW bytes, backwards than SHORT_TURNED_BACK elements, are handled as columns, which
 * fill the vectors and share what is done once in a row. PIECE is the least worth of parallel work. Columns are cut
 * narrower than COLUMN_LEAST only beyond LONG_COLUMN elements, and then to LEAST_BYTES: runs of memory would get too
 * short. Where nothing is kept of whole groups they are RUN_COLUMNS wide; then rows some COLUMNS_AHEAD_BYTES on are
 * fetched. */
enum { ROW_LIMIT = 262144, COLUMN_LIMIT = 1024, COLUMN_CACHE = 24576, GATHERED_CACHE = 8192, SHORT_ROW = 64,
       SHORT_TURNED_ROW = 256, SHORT_TURNED_BACK = 32, PIECE = 16384, SERIAL_BYTES = 128 * 1024, FETCH_AHEAD = 4096,
       COLUMN_LEAST = 64, LONG_COLUMN = 2048, LEAST_BYTES = 128, RUN_COLUMNS = 256, BLOCKS_OF_THREAD = 4,
       BLOCKED_GROUP = 1024, BLOCKED_BYTES = 16 << 20, BLOCK_ROWS = 32, PIECES_WANTED = 32, NEIGHBOURS = 8,
       COLUMNS_AHEAD_BYTES = 4096, TILE_BYTES = 128 * 1024, MOST_TILE_BYTES = 4 << 20 };

#define LOOPS "kernels/softmax/softmax.inc"
#include "tensor/instantiate.inc"

#define LOOPS_OF(type) \
    {part_max_##type, part_sum_##type, part_forward_##type, part_dot_##type, part_backward_##type, \
     rows_forward_##type, rows_backward_##type, columns_forward_##type, columns_backward_##type}

static const SoftmaxLoops loops[DTYPE_FLOAT64 + 1] = {
    [DTYPE_FLOAT32] = LOOPS_OF(float), [DTYPE_FLOAT16] = LOOPS_OF(half), [DTYPE_BFLOAT16] = LOOPS_OF(bfloat),
    [DTYPE_FLOAT64] = LOOPS_OF(double),
};

static int64_t whole_vectors(int64_t count)
{
    return (count + LANES - 1) / LANES * LANES;
}

/* ---- rows ---- */

/* `rows` that are `alongs` elements apart. `scratch`: room for e of one. */
static void run_loops(const SoftmaxPlan *plan, int64_t rows, const int64_t *alongs, void *const *data, char *scratch)
{
    if (us_softmax_is_forward(plan)) {
        plan->loops->rows_forward(&plan->work, rows, alongs, plan->group, data[0], data[1], scratch);
    } else {
        plan->loops->rows_backward(&plan->work, rows, alongs, plan->group, data[0], data[1], data[2]);
    }
}

/* Rows from number `row` on that lie equally far apart, at most so many; their number. */
static int64_t run_direct_rows(const SoftmaxPlan *plan, int64_t row, int64_t most, char *scratch)
{
    const Axes *axes = &plan->other_axes;
    const int64_t inner = axes->shape[axes->rank - 1], rows = smaller(most, inner - row % inner);
    int64_t alongs[3];
    void *data[3];
    for (int k = 0; k < plan->count; k++) {
        alongs[k] = axes->strides[k][axes->rank - 1];
        data[k] = us_softmax_element(plan->views[k], us_axes_offset(axes, k, row));
    }
    run_loops(plan, rows, alongs, data, scratch);
    return rows;
}

/* `scratch`: room for e, then for one row of every view. */
static void run_gathered_row(const SoftmaxPlan *plan, int64_t row, char *scratch)
{
    const size_t row_bytes = (size_t)whole_vectors(plan->group) * us_dtype_size(plan->compute);
    const bool wide = plan->compute == DTYPE_FLOAT64;
    const int last = plan->count - 1;
    void *data[3], *gathered[3];
    for (int k = 0; k < plan->count; k++) {
        const View *view = plan->views[k];
        data[k] = us_softmax_element(view, us_axes_offset(&plan->other_axes, k, row));
        gathered[k] = scratch + (size_t)(k + 1) * row_bytes;
        if (k < last || plan->work.beta != 0) {
            us_axes_load(&plan->group_axes, k, data[k], view->dtype, 0, plan->group, wide, gathered[k]);
        }
    }
    run_loops(plan, 1, (const int64_t[3]){0}, gathered, scratch);
    us_axes_store(&plan->group_axes, last, data[last], plan->views[last]->dtype, 0, plan->group, wide, gathered[last]);
}

/* ---- rows of one type whose elements lie apart in some views ---- */

static size_t tile_bytes(const SoftmaxPlan *plan)
{
    return us_scratch_bytes(us_scratch_count(plan->tile, plan->group), us_dtype_size(plan->views[0]->dtype));
}

/* Between `rows` of a view and a tile. */
static void move_tile(const SoftmaxPlan *plan, int k, int64_t rows, char *data, char *tile, bool stores)
{
    const Axes *others = &plan->other_axes;
    const int64_t size = (int64_t)us_dtype_size(plan->views[k]->dtype), row = plan->group * size;
    const int64_t apart = plan->group_axes.strides[k][0], along = others->strides[k][others->rank - 1];
    if (along == 1 && stores) {
        us_transpose(data, apart * size, tile, row, rows, plan->group, size);
    } else if (along == 1) {
        us_transpose(tile, row, data, apart * size, plan->group, rows, size);
    }
    for (int64_t i = 0; along != 1 && i < rows; i++, tile += row, data += along * size) {
        if (stores) {
            us_copy_elements(data, apart, tile, 1, size, plan->group);
        } else {
            us_copy_elements(tile, 1, data, apart, size, plan->group);
        }
    }
}

/* Rows from number `row` on, at most so many; their number. `scratch`: room for e, then for a tile of every view. */
static int64_t run_tile(const SoftmaxPlan *plan, int64_t row, int64_t most, char *scratch)
{
    const Axes *others = &plan->other_axes;
    const int64_t inner = others->shape[others->rank - 1];
    const int64_t rows = smaller(smaller(most, plan->tile), inner - row % inner);
    const int last = plan->count - 1;
    char *const tiles = scratch + (size_t)whole_vectors(plan->group) * us_dtype_size(plan->compute);
    int64_t alongs[3];
    void *data[3], *used[3];
    for (int k = 0; k < plan->count; k++) {
        const bool gathers = plan->group_axes.strides[k][0] != 1;
        data[k] = us_softmax_element(plan->views[k], us_axes_offset(others, k, row));
        used[k] = gathers ? tiles + (size_t)k * tile_bytes(plan) : data[k];
        alongs[k] = gathers ? plan->group : others->strides[k][others->rank - 1];
        if (gathers && (k < last || plan->work.beta != 0)) {
            move_tile(plan, k, rows, data[k], used[k], false);
        }
    }
    run_loops(plan, rows, alongs, used, scratch);
    if (used[last] != data[last]) {
        move_tile(plan, last, rows, data[last], used[last], true);
    }
    return rows;
}

/* ---- columns: neighbours along the last of the other axes ---- */

/* Between element j of `width` neighbouring groups and a unit-stride array. */
static void gather_columns(const SoftmaxPlan *plan, int k, const char *data, int64_t width, void *to)
{
    const DType dtype = plan->views[k]->dtype;
    const int64_t group_stride = plan->group_axes.strides[k][0] * (int64_t)us_dtype_size(dtype);
    const int64_t stride = plan->other_axes.strides[k][plan->other_axes.rank - 1], size = (int64_t)us_dtype_size(dtype);
    if (plan->turned) {
        us_transpose(to, width * size, data, stride * size, width, plan->group, size);
        return;
    }
    for (int64_t j = 0; j < plan->group; j++) {
        if (plan->compute == DTYPE_FLOAT64) {
            us_load_double((double *)to + j * width, data + j * group_stride, dtype, stride, width);
        } else {
            us_load_float((float *)to + j * width, data + j * group_stride, dtype, stride, width);
        }
    }
}

static void scatter_columns(const SoftmaxPlan *plan, int k, char *data, int64_t width, const void *from)
{
    const DType dtype = plan->views[k]->dtype;
    const int64_t group_stride = plan->group_axes.strides[k][0] * (int64_t)us_dtype_size(dtype);
    const int64_t stride = plan->other_axes.strides[k][plan->other_axes.rank - 1], size = (int64_t)us_dtype_size(dtype);
    if (plan->turned) {
        us_transpose(data, stride * size, from, width * size, plan->group, width, size);
        return;
    }
    for (int64_t j = 0; j < plan->group; j++) {
        if (plan->compute == DTYPE_FLOAT64) {
            us_store_double(data + j * group_stride, dtype, stride, (const double *)from + j * width, width);
        } else {
            us_store_float(data + j * group_stride, dtype, stride, (const float *)from + j * width, width);
        }
    }
}

static size_t columns_bytes(const SoftmaxPlan *plan, int64_t rows)
{
    return us_scratch_bytes(us_scratch_count(rows, whole_vectors(plan->width)), us_dtype_size(plan->compute));
}

static void run_columns(const SoftmaxPlan *plan, int64_t block, char *scratch)
{
    const int64_t inner = plan->other_axes.shape[plan->other_axes.rank - 1], begin = block % plan->blocks * plan->width;
    const int64_t position = block / plan->blocks * inner + begin, width = smaller(inner - begin, plan->width);
    const size_t gathered_bytes = columns_bytes(plan, plan->group);
    const int last = plan->count - 1;
    int64_t strides[3];
    void *data[3], *arrays[3];
    for (int k = 0; k < plan->count; k++) {
        data[k] = us_softmax_element(plan->views[k], us_axes_offset(&plan->other_axes, k, position));
        arrays[k] = plan->direct ? data[k] : scratch + (size_t)(k + 1) * gathered_bytes;
        strides[k] = plan->direct ? plan->group_axes.strides[k][0] : width;
        if (!plan->direct && (k < last || plan->work.beta != 0)) {
            gather_columns(plan, k, data[k], width, arrays[k]);
        }
    }
    if (us_softmax_is_forward(plan)) {
        plan->loops->columns_forward(&plan->work, plan->group, plan->rows, strides, width, arrays[0], arrays[1], scratch);
    } else {
        plan->loops->columns_backward(&plan->work, plan->group, strides, width, arrays[0], arrays[1], arrays[2]);
    }
    if (!plan->direct) {
        scatter_columns(plan, last, data[last], width, arrays[last]);
    }
}

/* ---- pieces of rows or of columns ---- */

static void run_piece(void *context, int64_t piece)
{
    SoftmaxPlan *plan = context;
    _Alignas(64) char small[16384];
    char *scratch = plan->scratch_bytes <= sizeof small ? small : us_scratch_take(plan->scratch_bytes);
    if (!scratch) {
        atomic_store_explicit(&plan->no_memory, true, memory_order_relaxed);
        return;
    }
    const int64_t begin = piece * plan->piece, end = begin + smaller(plan->others - begin, plan->piece);
    for (int64_t i = begin, done = 1; i < end; i += done) {
        if (plan->blocks > 0) {
            run_columns(plan, i, scratch);
        } else if (plan->direct) {
            done = run_direct_rows(plan, i, end - i, scratch);
        } else if (plan->tile > 0) {
            done = run_tile(plan, i, end - i, scratch);
        } else {
            run_gathered_row(plan, i, scratch);
        }
    }
    us_softmax_ends(plan);
    if (scratch != small) {
        us_scratch_give_back(scratch);
    }
}

static bool is_small(const SoftmaxPlan *plan)
{
    int64_t bytes = 0;
    for (int k = 0; k < plan->count; k++) {
        bytes += (int64_t)us_dtype_size(plan->views[k]->dtype);
    }
    return us_view_elements(plan->views[0]) <= SERIAL_BYTES / bytes;
}

static void run_pieces(SoftmaxPlan *plan, size_t scratch_bytes)
{
    plan->scratch_bytes = scratch_bytes;
    const int64_t pieces = (plan->others + plan->piece - 1) / plan->piece;
    if (is_small(plan)) {
        for (int64_t piece = 0; piece < pieces; piece++) {
            run_piece(plan, piece);
        }
    } else {
        us_parallel(pieces, run_piece, plan);
    }
}

/* ---- the choice between rows, columns and parts ---- */

static bool all_of_one_type(const SoftmaxPlan *plan)
{
    for (int k = 1; k < plan->count; k++) {
        if (plan->views[k]->dtype != plan->views[0]->dtype) {
            return false;
        }
    }
    return true;
}

static bool has_unit_stride(const SoftmaxPlan *plan, const Axes *axes)
{
    for (int k = 0; k < plan->count; k++) {
        if (axes->strides[k][axes->rank - 1] != 1) {
            return false;
        }
    }
    return true;
}

/* As many rows as fill lines of memory where neighbours are elements of different rows, and more while they stay in the second
 * cache; of very long ones, fewer. */
static int64_t rows_of_tile(const SoftmaxPlan *plan)
{
    const int64_t size = (int64_t)us_dtype_size(plan->views[0]->dtype), line = CACHE_LINE_BYTES / size;
    const int64_t row = smaller(plan->group, MOST_TILE_BYTES) * size; /* a view may have 2^63 - 1 elements */
    return larger(1, smaller(larger(TILE_BYTES / row, line), MOST_TILE_BYTES / row));
}

static void run_rows(SoftmaxPlan *plan)
{
    const bool is_long = plan->group > ROW_LIMIT || (plan->group >= 2 * PART && plan->others < us_parallel_threads());
    if (plan->direct && is_long) {
        if (!us_softmax_run_parts(plan)) {
            atomic_store_explicit(&plan->no_memory, true, memory_order_relaxed);
        }
        return;
    }
    plan->piece = plan->group < PIECE ? PIECE / plan->group : 1;
    if (plan->tile > 0) {
        plan->piece = larger(plan->piece, plan->tile);
        run_pieces(plan, us_scratch_bytes(whole_vectors(plan->group), us_dtype_size(plan->compute)) +
                             (size_t)plan->count * tile_bytes(plan));
        return;
    }
    const size_t rows = !plan->direct ? (size_t)plan->count + 1 : us_softmax_is_forward(plan) ? 1 : 0;
    run_pieces(plan, us_scratch_bytes(whole_vectors(plan->group), rows * us_dtype_size(plan->compute)));
}

/* Long groups of large arrays: forming e^x twice costs less than the short runs of memory that keeping it would leave. */
static bool is_in_blocks(const SoftmaxPlan *plan)
{
    const int64_t many = BLOCKED_BYTES / (int64_t)us_dtype_size(plan->views[0]->dtype);
    const bool is_direct = us_softmax_is_forward(plan) && plan->direct;
    return is_direct && plan->group >= BLOCKED_GROUP && us_view_elements(plan->views[0]) >= many;
}

/* Where values of whole groups are kept, as many as fit in the cache. */
static int64_t width_of_kept(const SoftmaxPlan *plan)
{
    const int64_t width = (plan->direct ? COLUMN_CACHE : GATHERED_CACHE) / plan->group / LANES * LANES;
    const int64_t shortest = LEAST_BYTES / (int64_t)us_dtype_size(plan->views[0]->dtype);
    const int64_t least = plan->group > LONG_COLUMN ? shortest : COLUMN_LEAST;
    return width < least ? least : smaller(width, COLUMN_LIMIT);
}

/* Where they are not, long runs of memory, as far as every thread gets some blocks. */
static int64_t width_of_runs(int64_t inner)
{
    const int64_t share = inner / (BLOCKS_OF_THREAD * us_parallel_threads()) / LANES * LANES;
    return share < COLUMN_LEAST ? COLUMN_LEAST : smaller(share, RUN_COLUMNS);
}

static void run_all_columns(SoftmaxPlan *plan)
{
    const int64_t inner = plan->other_axes.shape[plan->other_axes.rank - 1];
    const bool in_blocks = is_in_blocks(plan), keeps = !plan->direct || (us_softmax_is_forward(plan) && !in_blocks);
    plan->width = smaller(keeps ? width_of_kept(plan) : width_of_runs(inner), inner);
    plan->rows = in_blocks ? BLOCK_ROWS : plan->group; /* whatever the width: sums are formed in one order */
    plan->blocks = (inner + plan->width - 1) / plan->width;
    plan->others = plan->others / inner * plan->blocks;
    const int64_t block = plan->width * plan->group;
    /* Blocks side by side: each reads ahead for the next one. */
    const int64_t together = smaller(plan->others / PIECES_WANTED, NEIGHBOURS);
    plan->piece = block < PIECE ? PIECE / block : together > 1 ? together : 1;
    const size_t gathered = plan->direct ? 0 : (size_t)plan->count * columns_bytes(plan, plan->group);
    const size_t kept = plan->direct && !us_softmax_is_forward(plan) ? 0 : columns_bytes(plan, plan->rows);
    run_pieces(plan, gathered + kept);
}

/* Whether the elements of a group lie farther apart than its neighbours do. */
static bool has_groups_apart(const SoftmaxPlan *plan)
{
    const Axes *others = &plan->other_axes, *group = &plan->group_axes;
    for (int k = 0; k < plan->count; k++) {
        if (llabs(group->strides[k][0]) < llabs(others->strides[k][others->rank - 1])) {
            return false;
        }
    }
    return true;
}

/* Columns where neighbouring groups lie side by side; otherwise where the groups are short, or lie side by side with gaps. */
static bool chooses_columns(const SoftmaxPlan *plan, bool one_type)
{
    if (plan->group_axes.rank != 1) {
        return false;
    }
    if (one_type && has_unit_stride(plan, &plan->other_axes)) {
        return plan->group == 1 || !has_unit_stride(plan, &plan->group_axes);
    }
    const bool are_rows = has_unit_stride(plan, &plan->group_axes);
    const int64_t turned_forward = SHORT_TURNED_ROW / (int64_t)us_dtype_size(plan->views[0]->dtype);
    const int64_t turned = us_softmax_is_forward(plan) ? turned_forward : SHORT_TURNED_BACK;
    const int64_t gathered = has_groups_apart(plan) ? PIECE : SHORT_ROW;
    const bool is_short = plan->group < (!are_rows ? gathered : one_type ? turned : SHORT_ROW);
    return is_short && plan->other_axes.shape[plan->other_axes.rank - 1] >= LANES;
}

/* Whether the results go past the caches: no cache can keep them, they are not what the kernel reads, and whole lines are
 * written at a time. */
static bool goes_past(const SoftmaxPlan *plan, bool columns)
{
    const View *result = plan->views[plan->count - 1];
    const int64_t size = (int64_t)us_dtype_size(result->dtype), line = CACHE_LINE_BYTES / size;
    const Axes *others = &plan->other_axes, *group = &plan->group_axes;
    bool past = plan->direct && plan->work.beta == 0 && us_view_elements(result) >= PAST_MAP_BYTES / size &&
                (uintptr_t)result->data % CACHE_LINE_BYTES == 0 &&
                (columns ? others->shape[others->rank - 1] : plan->group) % line == 0;
    for (int k = 0; k < plan->count - 1; k++) {
        past &= plan->views[k]->data != result->data;
    }
    const int last = plan->count - 1;
    for (int axis = 0; axis < others->rank - (columns ? 1 : 0); axis++) {
        past &= others->strides[last][axis] % line == 0;
    }
    return past && (!columns || group->strides[last][0] % line == 0);
}

static KernelStatus run(const View *views, int count, const Softmax *softmax)
{
    const SoftmaxWork work = {.algorithm = softmax->algorithm, .alpha = softmax->alpha, .beta = softmax->beta};
    SoftmaxPlan plan = {.work = work, .count = count, .compute = DTYPE_FLOAT32};
    for (int k = 0; k < count; k++) {
        plan.views[k] = &views[k];
        plan.compute = views[k].dtype == DTYPE_FLOAT64 ? DTYPE_FLOAT64 : plan.compute;
    }
    const int64_t elements = us_view_elements(&views[0]);
    if (elements <= 0) {
        return KERNEL_OK;
    }
    us_axes_add(&plan.group_axes, plan.views, count, softmax->first_axis, softmax->last_axis + 1);
    us_axes_add(&plan.other_axes, plan.views, count, 0, softmax->first_axis);
    us_axes_add(&plan.other_axes, plan.views, count, softmax->last_axis + 1, views[0].rank);
    plan.group = us_shape_elements(plan.group_axes.rank, plan.group_axes.shape);
    plan.others = elements / plan.group;
    const bool one_type = all_of_one_type(&plan) && us_dtype_is_float(views[0].dtype);
    const bool columns = chooses_columns(&plan, one_type);
    const Axes *run_axes = columns ? &plan.other_axes : &plan.group_axes;
    plan.direct = one_type && plan.group_axes.rank == 1 && has_unit_stride(&plan, run_axes);
    plan.turned = columns && one_type && !plan.direct && has_unit_stride(&plan, &plan.group_axes);
    plan.tile = !columns && one_type && !plan.direct && plan.group_axes.rank == 1 ? rows_of_tile(&plan) : 0;
    plan.work.past = goes_past(&plan, columns);
    plan.loops = &loops[plan.direct || plan.turned || plan.tile > 0 ? views[0].dtype : plan.compute];
    if (columns) {
        run_all_columns(&plan);
    } else {
        run_rows(&plan);
    }
    return atomic_load_explicit(&plan.no_memory, memory_order_relaxed) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_softmax_forward(const View *views, const void *attributes)
{
    return run(views, 2, attributes);
}

KernelStatus us_softmax_backward(const View *views, const void *attributes)
{
    return run(views, 3, attributes);
}
