#include "kernels/sort/sample.h"

#include "kernels/maths/maths.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "kernels/sort/lines.h"
#include "kernels/sort/sort.h"
#include "tensor/parallel.h"

#include <math.h>

enum { SCORES, K, P, Q, LEAST, CHOSEN, LEFT, COLUMNS, PROBS };

typedef struct Sampling {
    const View *views;
    SampleTokens how;
    int64_t columns, sorted_columns; /* of a row's best scores */
    View sorted, order;
    float *probs; /* a row of `columns` for each row */
} Sampling;

/* What is kept of a row: the first ones of `size`, in descending order or, if not `ordered`, all as they are. */
typedef struct Kept {
    int64_t size, count;
    bool ordered;
    float *probs;
} Kept;

static double least_of(const Sampling *work, int64_t row)
{
    return us_view_is_absent(&work->views[LEAST]) ? 0 : us_line_number(&work->views[LEAST], row);
}

static int64_t valid_k(const Sampling *work, int64_t row)
{
    const double k = us_line_number(&work->views[K], row);
    return k >= 1 && k <= (double)work->columns && k <= (double)work->how.most ? (int64_t)k : 0;
}

/* How many of a row's scores have to be in order. */
static int64_t wanted_order(const Sampling *work, int64_t row)
{
    const int64_t k = valid_k(work, row);
    const bool all = us_line_number(&work->views[P], row) < 1 || least_of(work, row) > 0;
    return k > 0 ? k : all ? work->columns : 0;
}

static int64_t column_of(const Sampling *work, int64_t row, const Kept *kept, int64_t place)
{
    return kept->ordered ? ((const int64_t *)work->order.data)[row * work->sorted_columns + place] : place;
}

/* The scores as weights, whose sum is the result. */
static double weigh(const Sampling *work, int64_t row, const Kept *kept)
{
    float *weights = kept->probs;
    us_row_load(kept->ordered ? &work->sorted : &work->views[SCORES], row, 0, kept->size, weights);
    if (work->how.normalized) {
        return 1;
    }
    float largest = weights[0];
    for (int64_t i = 1; i < kept->size; i++) {
        largest = weights[i] > largest ? weights[i] : largest;
    }
    for (int64_t i = 0; i < kept->size; i++) {
        weights[i] = exp_float(weights[i] - largest);
    }
    double total = 0; /* in a loop of its own: powers need not wait for the sum */
    for (int64_t i = 0; i < kept->size; i++) {
        total += (double)weights[i];
    }
    return total;
}

static void drop_behind_p(double p, double total, Kept *kept)
{
    double before = (double)kept->probs[0];
    int64_t count = 1;
    while (count < kept->count && before < p * total) {
        before += (double)kept->probs[count++];
    }
    kept->count = count;
}

static void drop_below_least(double least, Kept *kept)
{
    const double bound = (double)kept->probs[0] * least;
    int64_t count = 1;
    while (least < 1 && count < kept->count && (double)kept->probs[count] >= bound) {
        count++;
    }
    kept->count = count;
}

static Kept keep(const Sampling *work, int64_t row)
{
    const double p = us_line_number(&work->views[P], row), least = least_of(work, row);
    const int64_t ordered = wanted_order(work, row);
    Kept kept = {.size = ordered > 0 ? ordered : work->columns, .ordered = ordered > 0,
                 .probs = work->probs + row * work->columns};
    const double total = weigh(work, row, &kept);
    kept.count = kept.size;
    if (p < 1) {
        drop_behind_p(p, total, &kept);
    }
    for (int64_t i = 0; i < kept.size && !work->how.normalized; i++) {
        kept.probs[i] = (float)((double)kept.probs[i] / total);
    }
    if (least > 0) {
        drop_below_least(least, &kept);
    }
    return kept;
}

enum { PIECE = 256 };

/* prob / (q + eps), or prob. */
static void form_chances(const Sampling *work, int64_t row, const Kept *kept, int64_t begin, int64_t count, double *chances)
{
    const View *q = &work->views[Q];
    for (int64_t i = 0; i < count; i++) {
        chances[i] = (double)kept->probs[begin + i];
    }
    if (!us_view_is_absent(q)) {
        float divisors[PIECE];
        us_row_load(q, row, begin, count, divisors);
        for (int64_t i = 0; i < count; i++) {
            chances[i] /= (double)divisors[i] + work->how.eps;
        }
    }
}

/* The first of the largest ones, or of those that are NaN. */
static int64_t choose(const Sampling *work, int64_t row, const Kept *kept)
{
    int64_t best = 0;
    double largest = -INFINITY;
    for (int64_t begin = 0; begin < kept->count && !isnan(largest); begin += PIECE) {
        double chances[PIECE];
        const int64_t count = smaller(kept->count - begin, PIECE);
        form_chances(work, row, kept, begin, count, chances);
        int above = 0; /* seldom any: vectors look first */
        for (int64_t i = 0; i < count; i++) {
            above |= !(chances[i] <= largest);
        }
        for (int64_t i = 0; i < count && above; i++) {
            if (chances[i] > largest || (isnan(chances[i]) && !isnan(largest))) {
                best = begin + i;
                largest = chances[i];
            }
        }
    }
    return best;
}

static void fill(const View *view, int64_t row, int64_t begin, float value)
{
    float values[PIECE];
    for (int i = 0; i < PIECE; i++) {
        values[i] = value;
    }
    const int64_t size = view->shape[1];
    for (int64_t i = begin; i < size; i += PIECE) {
        us_row_store(view, row, i, smaller(size - i, PIECE), values);
    }
}

static void put_left(const Sampling *work, int64_t row, const Kept *kept)
{
    const View *left = &work->views[LEFT];
    fill(left, row, 0, work->how.normalized ? 0 : -INFINITY);
    for (int64_t i = 0; i < kept->count; i++) {
        float score;
        const int64_t column = column_of(work, row, kept, i);
        us_row_load(&work->views[SCORES], row, column, 1, &score);
        us_row_store(left, row, column, 1, &score);
    }
}

static void put_order(const Sampling *work, int64_t row, const Kept *kept)
{
    const Line columns = us_line_of(&work->views[COLUMNS], 1, row);
    us_row_store(&work->views[PROBS], row, 0, kept->count, kept->probs);
    fill(&work->views[PROBS], row, kept->count, 0);
    for (int64_t i = 0; i < work->columns; i++) {
        *(int64_t *)(void *)us_line_element(&columns, i) = i < kept->size ? column_of(work, row, kept, i) : 0;
    }
}

static void sample_row(void *context, int64_t row)
{
    const Sampling *work = context;
    const Kept kept = keep(work, row);
    const Line chosen = us_line_of(&work->views[CHOSEN], 0, 0);
    if (chosen.data != NULL) {
        *(int64_t *)(void *)us_line_element(&chosen, row) = column_of(work, row, &kept, choose(work, row, &kept));
    }
    if (!us_view_is_absent(&work->views[LEFT])) {
        put_left(work, row, &kept);
    }
    if (!us_view_is_absent(&work->views[PROBS])) {
        put_order(work, row, &kept);
    }
}

static KernelStatus sort_best(const Sampling *work)
{
    if (work->sorted_columns == 0) {
        return KERNEL_OK;
    }
    const View best[] = {work->views[SCORES], work->sorted, work->order};
    Kernel *kernel = work->sorted_columns == work->columns ? us_sort : us_topk;
    return kernel(best, &(SortLines){.axis = 1, .descending = true});
}

KernelStatus us_sample_tokens(const View *views, const void *attributes)
{
    const int64_t rows = views[SCORES].shape[0];
    Sampling work = {.views = views, .how = *(const SampleTokens *)attributes, .columns = views[SCORES].shape[1]};
    if (us_view_is_empty(&views[SCORES])) {
        return KERNEL_OK;
    }
    for (int64_t row = 0; row < rows; row++) {
        const int64_t wanted = wanted_order(&work, row);
        work.sorted_columns = wanted > work.sorted_columns ? wanted : work.sorted_columns;
    }
    const DType dtype = views[SCORES].dtype;
    const int64_t shape[] = {rows, work.sorted_columns}, sorted = us_scratch_count(rows, work.sorted_columns);
    const size_t parts[] = {us_scratch_bytes(sorted, us_dtype_size(dtype)), us_scratch_bytes(sorted, sizeof(int64_t)),
                            us_scratch_bytes(us_view_elements(&views[SCORES]), sizeof *work.probs)};
    char *block = us_scratch_take(us_scratch_sum(parts, 3)), *cursor = block;
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    work.sorted = us_view_contiguous(us_scratch_part(&cursor, parts[0]), dtype, 2, shape);
    work.order = us_view_contiguous(us_scratch_part(&cursor, parts[1]), DTYPE_INT64, 2, shape);
    work.probs = us_scratch_part(&cursor, parts[2]);
    const KernelStatus status = sort_best(&work);
    if (status == KERNEL_OK) {
        us_parallel(rows, sample_row, &work);
    }
    us_scratch_give_back(block);
    return status;
}
