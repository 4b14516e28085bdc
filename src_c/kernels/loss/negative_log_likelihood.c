#include "kernels/loss/negative_log_likelihood.h"

#include "kernels/map/formulas.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/axes.h"
#include "tensor/convert.h"

enum { TILE = 256, BLOCK = 16 * TILE }; /* rows; a block has a partial sum */

/* Operands of the walk along the rows. */
enum { CLASSES, TARGET, ROW_LOSS, WALKED };

typedef struct Rows {
    View classes, target, weight, losses; /* losses: of the rows, or their gradients; absent: not one for each */
    Axes axes;
    int64_t class_count, class_stride, count;
    int64_t ignore_index;
    double gradient; /* of every row, where it is one for all */
    struct Partial {
        double loss, weight;
    } *blocks;
} Rows;

static void lay_out(Rows *rows, const View *classes, const View *target, const View *weight, const View *losses)
{
    const int32_t axis = classes->rank > 1 ? 1 : 0;
    *rows = (Rows){.classes = *classes, .target = *target, .weight = *weight, .losses = us_view_absent()};
    rows->class_count = classes->shape[axis];
    rows->class_stride = classes->strides[axis];
    rows->classes.rank--;
    for (int32_t i = axis; i < rows->classes.rank; i++) {
        rows->classes.shape[i] = classes->shape[i + 1];
        rows->classes.strides[i] = classes->strides[i + 1];
    }
    const View *walked[WALKED] = {&rows->classes, &rows->target, &rows->target};
    if (losses != NULL) {
        rows->losses = *losses;
        walked[ROW_LOSS] = losses->rank > 0 ? &rows->losses : &rows->target; /* a target of rank 0 goes with [] and [1] */
    }
    us_axes_add(&rows->axes, walked, WALKED, 0, rows->classes.rank);
    rows->count = us_view_elements(&rows->target);
}

static double read(const View *view, int64_t place)
{
    double value;
    us_load_double(&value, (const char *)view->data + place * (int64_t)us_dtype_size(view->dtype), view->dtype, 1, 1);
    return value;
}

static void write(const View *view, int64_t place, double value)
{
    us_store_double((char *)view->data + place * (int64_t)us_dtype_size(view->dtype), view->dtype, 1, &value, 1);
}

/* What a row's target picks: its place in `classes`, and its weight. */
typedef struct Pick {
    int64_t place;
    double weight;
    bool counts;
} Pick;

static void find_targets(const Rows *rows, int64_t begin, int64_t count, Pick *picks)
{
    int64_t targets[TILE];
    us_axes_load(&rows->axes, TARGET, rows->target.data, rows->target.dtype, begin, count, LANE_INT64, targets);
    const int64_t stride = rows->axes.strides[CLASSES][rows->axes.rank - 1];
    AxesWalk walk = us_axes_walk(&rows->axes, CLASSES, begin, count);
    for (int64_t i = 0; walk.remaining > 0;) {
        const AxesRun run = us_axes_next(&walk);
        for (int64_t k = 0; k < run.length; k++, i++) {
            const int64_t target = targets[i];
            picks[i] = (Pick){.counts = target != rows->ignore_index && target >= 0 && target < rows->class_count};
            if (picks[i].counts) {
                picks[i].place = run.offset + k * stride + target * rows->class_stride;
                picks[i].weight = read(&rows->weight, target * rows->weight.strides[0]);
            }
        }
    }
}

static void sum_block(void *context, int64_t block)
{
    Rows *rows = context;
    const int64_t first = block * BLOCK, end = rows->count - first < BLOCK ? rows->count : first + BLOCK;
    struct Partial total = {0};
    for (int64_t begin = first; begin < end; begin += TILE) {
        const int64_t count = end - begin < TILE ? end - begin : TILE;
        Pick picks[TILE];
        double losses[TILE];
        find_targets(rows, begin, count, picks);
        for (int64_t i = 0; i < count; i++) {
            losses[i] = picks[i].counts ? -picks[i].weight * read(&rows->classes, picks[i].place) : 0;
            total.loss += losses[i];
            total.weight += picks[i].weight;
        }
        if (!us_view_is_absent(&rows->losses)) {
            us_axes_store(&rows->axes, ROW_LOSS, rows->losses.data, rows->losses.dtype, begin, count, LANE_DOUBLE, losses);
        }
    }
    rows->blocks[block] = total;
}

KernelStatus us_negative_log_likelihood(const View *views, const void *attributes)
{
    const NegativeLogLikelihood *call = attributes;
    Rows rows;
    lay_out(&rows, &views[0], &views[1], &views[2], call->reduction == LOSS_NONE ? &views[3] : NULL);
    rows.ignore_index = call->ignore_index;
    const int64_t blocks = rows.count / BLOCK + (rows.count % BLOCK != 0);
    rows.blocks = us_scratch_take((size_t)(blocks > 0 ? blocks : 1) * sizeof *rows.blocks);
    if (rows.blocks == NULL) {
        return KERNEL_NO_MEMORY;
    }
    run_pieces(blocks, rows.count, sum_block, &rows);
    struct Partial total = {0};
    for (int64_t block = 0; block < blocks; block++) {
        total.loss += rows.blocks[block].loss;
        total.weight += rows.blocks[block].weight;
    }
    us_scratch_give_back(rows.blocks);
    if (call->reduction != LOSS_NONE) {
        write(&views[3], 0, call->reduction == LOSS_MEAN ? total.loss / total.weight : total.loss);
    }
    write(&views[4], 0, total.weight);
    return KERNEL_OK;
}

static void write_block(void *context, int64_t block)
{
    const Rows *rows = context;
    const int64_t first = block * BLOCK, end = rows->count - first < BLOCK ? rows->count : first + BLOCK;
    for (int64_t begin = first; begin < end; begin += TILE) {
        const int64_t count = end - begin < TILE ? end - begin : TILE;
        Pick picks[TILE];
        double gradients[TILE];
        find_targets(rows, begin, count, picks);
        const bool each = !us_view_is_absent(&rows->losses);
        if (each) {
            us_axes_load(&rows->axes, ROW_LOSS, rows->losses.data, rows->losses.dtype, begin, count, LANE_DOUBLE, gradients);
        }
        for (int64_t i = 0; i < count; i++) {
            if (picks[i].counts) {
                write(&rows->classes, picks[i].place, -picks[i].weight * (each ? gradients[i] : rows->gradient));
            }
        }
    }
}

KernelStatus us_negative_log_likelihood_backward(const View *views, const void *attributes)
{
    const NegativeLogLikelihood *call = attributes;
    const View *gradient = &views[0], *out = &views[4];
    const bool each = call->reduction == LOSS_NONE;
    Rows rows;
    lay_out(&rows, out, &views[1], &views[2], each ? gradient : NULL);
    rows.ignore_index = call->ignore_index;
    rows.gradient = each ? 0 : read(gradient, 0) / (call->reduction == LOSS_MEAN ? read(&views[3], 0) : 1);
    const MapCall zeros = {.formula = &us_map_fill, .compute = out->dtype, .result = out->dtype, .inputs = 1, .outputs = 1,
                           .items = 1};
    const KernelStatus status = us_map((const View[]){us_view_absent(), *out}, &zeros);
    if (status == KERNEL_OK) {
        run_pieces(rows.count / BLOCK + (rows.count % BLOCK != 0), rows.count, write_block, &rows);
    }
    return status;
}
