#include "kernels/loss/negative_log_likelihood.h"

#include "kernels/maths/maths.h"
#include "kernels/move/copy_view.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/axes.h"
#include "tensor/convert.h"

#include <string.h>

enum { TILE = 256, BLOCK = 16 * TILE }; /* rows; a block has a partial sum */

/* Operands of the walk along the rows. */
enum { CLASSES, TARGET, ROW_LOSS, WALKED };

typedef struct Rows {
    View classes, target, weight, losses; /* losses: of the rows, or their gradients; absent: not one for each */
    Axes axes;
    int64_t class_count, class_stride, count;
    int64_t ignore_index;
    double smoothing;
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
        /* a target of rank 0 goes with [] and [1] */
        walked[ROW_LOSS] = losses->rank > 0 ? &rows->losses : &rows->target;
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

/* What the targets of some rows pick: places in `classes`, and weights. A row that does not count has class 0, weight 0. */
typedef struct Picks {
    int64_t places[TILE], targets[TILE];
    double weights[TILE];
    bool counts[TILE];
} Picks;

/* The picked of the elements at `places`, one behind another, or back there; what is not picked stays. */
US_ALWAYS_INLINE void move_picked(const View *view, const int64_t *places, const bool *counts, int64_t count, char *packed,
                                  int size, bool back)
{
    char *const elements = view->data;
    for (int64_t i = 0; i < count; i++) {
        if (counts[i]) {
            char *element = elements + places[i] * size;
            memcpy(back ? element : packed + i * size, back ? packed + i * size : element, (size_t)size);
        }
    }
}

US_ALWAYS_INLINE void move_any_picked(const View *view, const int64_t *places, const bool *counts, int64_t count, char *packed,
                                      bool back)
{
    switch (us_dtype_size(view->dtype)) {
    case 2: move_picked(view, places, counts, count, packed, 2, back); break;
    case 4: move_picked(view, places, counts, count, packed, 4, back); break;
    default: move_picked(view, places, counts, count, packed, 8, back); break;
    }
}

/* 0 for rows that do not count. */
static void read_picked(const View *view, const int64_t *places, const bool *counts, int64_t count, double *to)
{
    _Alignas(64) char packed[TILE * sizeof(double)];
    memset(packed, 0, (size_t)count * us_dtype_size(view->dtype));
    move_any_picked(view, places, counts, count, packed, false);
    us_load_double(to, packed, view->dtype, 1, count);
}

static void find_weights(const Rows *rows, int64_t count, Picks *picks)
{
    if (us_view_is_absent(&rows->weight)) {
        for (int64_t i = 0; i < count; i++) {
            picks->weights[i] = picks->counts[i];
        }
        return;
    }
    int64_t places[TILE];
    for (int64_t i = 0; i < count; i++) {
        places[i] = picks->targets[i] * rows->weight.strides[0];
    }
    read_picked(&rows->weight, places, picks->counts, count, picks->weights);
}

static void find_targets(const Rows *rows, int64_t begin, int64_t count, Picks *picks)
{
    us_axes_load(&rows->axes, TARGET, rows->target.data, rows->target.dtype, begin, count, LANE_INT64, picks->targets);
    for (int64_t i = 0; i < count; i++) {
        const int64_t target = picks->targets[i];
        picks->counts[i] = (target != rows->ignore_index) & (target >= 0) & (target < rows->class_count);
        picks->targets[i] = picks->counts[i] ? target : 0;
    }
    const int64_t stride = rows->axes.strides[CLASSES][rows->axes.rank - 1];
    AxesWalk walk;
    us_axes_walk(&walk, &rows->axes, CLASSES, begin, count);
    for (int64_t i = 0; walk.remaining > 0;) {
        const AxesRun run = us_axes_next(&walk);
        for (int64_t k = 0; k < run.length; k++, i++) {
            picks->places[i] = run.offset + k * stride + picks->targets[i] * rows->class_stride;
        }
    }
    find_weights(rows, count, picks);
}

/* Of some classes. */
static void load_weights(const Rows *rows, int64_t begin, int64_t count, double *to)
{
    const View *weight = &rows->weight;
    if (!us_view_is_absent(weight)) {
        us_load_double(to, (const char *)weight->data + begin * weight->strides[0] * (int64_t)us_dtype_size(weight->dtype),
                       weight->dtype, weight->strides[0], count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        to[i] = 1;
    }
}

/* Some classes of the row that begins at a place. */
static void load_classes(const Rows *rows, int64_t place, int64_t begin, int64_t count, double *to)
{
    const int64_t first = place + begin * rows->class_stride;
    us_load_double(to, (const char *)rows->classes.data + first * (int64_t)us_dtype_size(rows->classes.dtype),
                   rows->classes.dtype, rows->class_stride, count);
}

/* The losses of all classes of the row. */
static double all_losses(const Rows *rows, int64_t place)
{
    double values[TILE], weights[TILE], sum = 0;
    for (int64_t begin = 0; begin < rows->class_count; begin += TILE) {
        const int64_t count = smaller(rows->class_count - begin, TILE);
        load_classes(rows, place, begin, count, values);
        load_weights(rows, begin, count, weights);
        for (int64_t i = 0; i < count; i++) {
            sum -= weights[i] * values[i];
        }
    }
    return sum;
}

static void find_losses(const Rows *rows, const Picks *picks, int64_t count, double *losses)
{
    read_picked(&rows->classes, picks->places, picks->counts, count, losses);
    for (int64_t i = 0; i < count; i++) {
        losses[i] = picks->counts[i] ? -picks->weights[i] * losses[i] : 0;
    }
    for (int64_t i = 0; i < count && rows->smoothing != 0; i++) {
        if (picks->counts[i]) {
            const double sum = all_losses(rows, picks->places[i] - picks->targets[i] * rows->class_stride);
            losses[i] = (1 - rows->smoothing) * losses[i] + rows->smoothing / (double)rows->class_count * sum;
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
        Picks picks;
        double losses[TILE];
        find_targets(rows, begin, count, &picks);
        find_losses(rows, &picks, count, losses);
        for (int64_t i = 0; i < count; i++) {
            total.loss += losses[i];
            total.weight += picks.weights[i];
        }
        if (!us_view_is_absent(&rows->losses)) {
            us_axes_store(&rows->axes, ROW_LOSS, rows->losses.data, rows->losses.dtype, begin, count, LANE_DOUBLE,
                          losses);
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
    rows.smoothing = call->smoothing;
    const int64_t blocks = rows.count / BLOCK + (rows.count % BLOCK != 0);
    rows.blocks = us_scratch_array(blocks, sizeof *rows.blocks);
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
    if (!us_view_is_absent(&views[4])) {
        write(&views[4], 0, total.weight);
    }
    return KERNEL_OK;
}

static void write_block(void *context, int64_t block)
{
    const Rows *rows = context;
    const int64_t first = block * BLOCK, end = rows->count - first < BLOCK ? rows->count : first + BLOCK;
    for (int64_t begin = first; begin < end; begin += TILE) {
        const int64_t count = end - begin < TILE ? end - begin : TILE;
        Picks picks;
        double gradients[TILE];
        _Alignas(64) char packed[sizeof gradients];
        find_targets(rows, begin, count, &picks);
        const bool each = !us_view_is_absent(&rows->losses);
        if (each) {
            us_axes_load(&rows->axes, ROW_LOSS, rows->losses.data, rows->losses.dtype, begin, count, LANE_DOUBLE,
                         gradients);
        }
        for (int64_t i = 0; i < count; i++) {
            gradients[i] = -picks.weights[i] * (each ? gradients[i] : rows->gradient);
        }
        us_store_double(packed, rows->classes.dtype, 1, gradients, count);
        move_any_picked(&rows->classes, picks.places, picks.counts, count, packed, true);
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
    us_clear_view(out);
    run_pieces(rows.count / BLOCK + (rows.count % BLOCK != 0), rows.count, write_block, &rows);
    return KERNEL_OK;
}

/* ---- cross entropy ---- */

KernelStatus us_cross_entropy(const View *views, const void *attributes)
{
    const Softmax logarithms = {.algorithm = SOFTMAX_LOG, .first_axis = 1, .last_axis = 1, .alpha = 1};
    const KernelStatus status = us_softmax_forward((const View[]){views[0], views[5]}, &logarithms);
    const View likelihood[] = {views[5], views[1], views[2], views[3], views[4]};
    return status != KERNEL_OK ? status : us_negative_log_likelihood(likelihood, attributes);
}

typedef struct CrossEntropy {
    Rows rows; /* of the logarithms */
    View out;
    double divisor, all_weights, gradient; /* all_weights: of all classes */
} CrossEntropy;

static double row_gradient(const CrossEntropy *work, int64_t row)
{
    const View *each = &work->rows.losses;
    return (us_view_is_absent(each) ? work->gradient : read(each, row * each->strides[0])) / work->divisor;
}

/* Some classes of a row, the first of `pick`. */
static void differentiate_classes(const CrossEntropy *work, int64_t row, const Picks *pick, int64_t begin, int64_t count)
{
    const Rows *rows = &work->rows;
    const View *out = &work->out;
    const double gradient = pick->counts[0] ? row_gradient(work, row) : 0;
    const double share = gradient * (1 - rows->smoothing) * pick->weights[0];
    const double spread = gradient * rows->smoothing / (double)rows->class_count;
    double values[TILE] = {0}, weights[TILE];
    if (pick->counts[0]) {
        load_classes(rows, row * rows->classes.strides[0], begin, count, values);
        load_weights(rows, begin, count, weights);
        for (int64_t i = 0; i < count; i++) {
            values[i] = exp_double(values[i]);
        }
        for (int64_t i = 0; i < count; i++) {
            const double p = values[i], own = begin + i == pick->targets[0] ? share : 0;
            values[i] = p * share - own + p * spread * work->all_weights - spread * weights[i];
        }
    }
    us_store_double((char *)out->data + (row * out->strides[0] + begin * out->strides[1]) * (int64_t)us_dtype_size(out->dtype),
                    out->dtype, out->strides[1], values, count);
}

static void differentiate_row(void *context, int64_t row)
{
    const CrossEntropy *work = context;
    const int64_t classes = work->rows.class_count;
    Picks pick;
    find_targets(&work->rows, row, 1, &pick);
    for (int64_t begin = 0; begin < classes; begin += TILE) {
        differentiate_classes(work, row, &pick, begin, smaller(classes - begin, TILE));
    }
}

/* What the mean is divided by. */
static double sum_of_weights(const Rows *rows)
{
    double sum = 0;
    for (int64_t begin = 0; begin < rows->count; begin += TILE) {
        const int64_t count = smaller(rows->count - begin, TILE);
        Picks picks;
        find_targets(rows, begin, count, &picks);
        for (int64_t i = 0; i < count; i++) {
            sum += picks.weights[i];
        }
    }
    return sum;
}

KernelStatus us_cross_entropy_backward(const View *views, const void *attributes)
{
    const NegativeLogLikelihood *call = attributes;
    const bool each = call->reduction == LOSS_NONE;
    CrossEntropy work = {.out = views[4]};
    lay_out(&work.rows, &views[1], &views[2], &views[3], each ? &views[0] : NULL);
    work.rows.ignore_index = call->ignore_index;
    work.rows.smoothing = call->smoothing;
    work.gradient = each ? 0 : read(&views[0], 0);
    double weights[TILE];
    for (int64_t begin = 0; begin < work.rows.class_count; begin += TILE) {
        const int64_t count = smaller(work.rows.class_count - begin, TILE);
        load_weights(&work.rows, begin, count, weights);
        for (int64_t i = 0; i < count; i++) {
            work.all_weights += weights[i];
        }
    }
    work.divisor = call->reduction == LOSS_MEAN ? sum_of_weights(&work.rows) : 1;
    run_pieces(work.rows.count, us_view_elements(&work.out), differentiate_row, &work);
    return KERNEL_OK;
}
