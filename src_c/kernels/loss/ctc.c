#include "kernels/loss/ctc.h"

#include "kernels/maths/maths.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"
#include "tensor/lane.h"
#include "tensor/levels.h"
#include "tensor/parallel.h"

#include <stdatomic.h>
#include <string.h>

enum { TILE = 256 }; /* classes */

typedef struct Work {
    const Ctc *call;
    const View *log_probabilities, *targets, *gradient, *losses, *alphas, *out;
    atomic_bool lacks_memory;
} Work;

/* An entry of the batch. A state is a label (odd ones) or the blank before, between and behind them. */
typedef struct Entry {
    int64_t number, steps, labels, states, classes;
    int64_t blank;
    const View *log_probabilities;
    int64_t *classes_of; /* by state; -1: no class */
    bool *skips;         /* by state */
    bool *occurs;        /* by class: some state has it; of the gradient alone, as shares */
    double *shares;      /* by class: of the paths that go through it in a step */
    /* (steps, states): of paths that reach a state, and that go on from it; both with the state's own */
    double *alpha, *beta;
} Entry;

static double get(const View *view, int64_t place)
{
    double value;
    us_load_double(&value, (const char *)view->data + place * (int64_t)us_dtype_size(view->dtype), view->dtype, 1, 1);
    return value;
}

static void put(const View *view, int64_t place, double value)
{
    us_store_double((char *)view->data + place * (int64_t)us_dtype_size(view->dtype), view->dtype, 1, &value, 1);
}

static double log_probability(const Entry *entry, int64_t step, int64_t class)
{
    const int64_t *strides = entry->log_probabilities->strides;
    return class < 0 ? -INFINITY
                     : get(entry->log_probabilities,
                           step * strides[0] + entry->number * strides[1] + class * strides[2]);
}

/* ln(e^x + e^y) */
US_ALWAYS_INLINE double log_sum(double x, double y)
{
    const double top = x > y ? x : y;
    return top == -INFINITY ? top : top + log1p_double(exp_double((x > y ? y : x) - top));
}

/* Whether paths may go from a state to the next but one: not past the blank between equal labels. */
static void find_skips(const Entry *entry)
{
    for (int64_t s = 0; s + 2 < entry->states; s++) {
        entry->skips[s] = s % 2 == 1 && entry->classes_of[s] != entry->classes_of[s + 2];
    }
}

/* Paths that come from a neighbour, or from the next but one where they may. */
static void add_paths(double *restrict sums, const double *restrict more, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] = log_sum(sums[i], more[i]);
    }
}

static void add_skips(double *restrict sums, const double *restrict more, const bool *restrict may, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] = may[i] ? log_sum(sums[i], more[i]) : sums[i];
    }
}

static void add_step(const Entry *entry, int64_t step, double *sums)
{
    for (int64_t s = 0; s < entry->states; s++) {
        sums[s] += log_probability(entry, step, entry->classes_of[s]);
    }
}

static void go_forward(const Entry *entry)
{
    const int64_t states = entry->states;
    for (int64_t step = 0; step < entry->steps; step++) {
        double *now = entry->alpha + step * states;
        const double *before = now - states;
        for (int64_t s = 0; s < states; s++) {
            now[s] = step > 0 ? before[s] : s < 2 ? 0 : -INFINITY;
        }
        if (step > 0) {
            add_paths(now + 1, before, states - 1);
            add_skips(now + 2, before, entry->skips, states - 2);
        }
        add_step(entry, step, now);
    }
}

static void go_back(const Entry *entry)
{
    const int64_t states = entry->states;
    for (int64_t step = entry->steps - 1; step >= 0; step--) {
        double *now = entry->beta + step * states;
        const double *after = now + states;
        const bool is_last = step == entry->steps - 1;
        for (int64_t s = 0; s < states; s++) {
            now[s] = !is_last ? after[s] : s >= states - 2 ? 0 : -INFINITY;
        }
        if (!is_last) {
            add_paths(now, after + 1, states - 1);
            add_skips(now, after + 2, entry->skips, states - 2);
        }
        add_step(entry, step, now);
    }
}

static double loss_of(const Entry *entry)
{
    if (entry->steps == 0) {
        return entry->labels == 0 ? 0 : INFINITY;
    }
    const double *last = entry->alpha + (entry->steps - 1) * entry->states;
    return -(entry->states > 1 ? log_sum(last[entry->states - 1], last[entry->states - 2]) : last[0]);
}

static void find_classes(const Work *work, Entry *entry)
{
    const View *targets = work->targets;
    int64_t first = 0, stride = targets->strides[targets->rank - 1];
    if (targets->rank == 2) {
        first = entry->number * targets->strides[0];
    } else {
        for (int64_t i = 0; i < entry->number; i++) {
            first += work->call->lengths[work->call->batch + i] * stride;
        }
    }
    for (int64_t s = 0; s < entry->states; s++) {
        entry->classes_of[s] = work->call->blank;
        if (s % 2 == 1) {
            int64_t class;
            const char *from = (const char *)targets->data +
                (first + s / 2 * stride) * (int64_t)us_dtype_size(targets->dtype);
            us_convert(&class, DTYPE_INT64, from, targets->dtype, 1);
            entry->classes_of[s] = class >= 0 && class < entry->classes ? class : -1;
        }
    }
}

/* The block of memory that the entry's arrays are in; NULL: there is none. */
static void *begin_entry(const Work *work, int64_t number, bool both_ways, Entry *entry)
{
    const Ctc *call = work->call;
    *entry = (Entry){.number = number,
                     .steps = call->lengths[number],
                     .labels = call->lengths[call->batch + number],
                     .classes = work->log_probabilities->shape[2],
                     .blank = call->blank,
                     .log_probabilities = work->log_probabilities};
    entry->states = 2 * entry->labels + 1;
    const size_t cells = us_scratch_bytes(us_scratch_count(entry->steps, entry->states), sizeof(double));
    const size_t classes = us_scratch_bytes(entry->states, sizeof(int64_t));
    const size_t skips = us_scratch_bytes(entry->states, sizeof(bool));
    const size_t occurs = us_scratch_bytes(both_ways ? entry->classes : 0, sizeof(bool));
    const size_t shares = us_scratch_bytes(both_ways ? entry->classes : 0, sizeof(double));
    char *block = us_scratch_take(classes + skips + cells * (both_ways ? 2 : 1) + occurs + shares + 64);
    char *cursor = block;
    if (block != NULL) {
        entry->classes_of = us_scratch_part(&cursor, classes);
        entry->skips = us_scratch_part(&cursor, skips);
        entry->alpha = us_scratch_part(&cursor, cells);
        entry->beta = both_ways ? us_scratch_part(&cursor, cells) : NULL;
        entry->occurs = us_scratch_part(&cursor, occurs);
        entry->shares = us_scratch_part(&cursor, shares);
        find_classes(work, entry);
        find_skips(entry);
        go_forward(entry);
    }
    return block;
}

static void store_alphas(const Entry *entry, const View *alphas)
{
    for (int64_t step = 0; step < alphas->shape[1]; step++) {
        for (int64_t s = 0; s < alphas->shape[2]; s++) {
            const bool is_there = step < entry->steps && s < entry->states;
            put(alphas, entry->number * alphas->strides[0] + step * alphas->strides[1] + s * alphas->strides[2],
                is_there ? entry->alpha[step * entry->states + s] : -INFINITY);
        }
    }
}

static void forward_entry(void *context, int64_t number)
{
    Work *work = context;
    Entry entry;
    void *block = begin_entry(work, number, false, &entry);
    if (block == NULL) {
        atomic_store(&work->lacks_memory, true);
        return;
    }
    const double loss = loss_of(&entry);
    put(work->losses, number * work->losses->strides[0], work->call->zero_infinity && loss == INFINITY ? 0 : loss);
    store_alphas(&entry, work->alphas);
    us_scratch_give_back(block);
}

static void mark_classes(const Entry *entry)
{
    memset(entry->occurs, 0, (size_t)entry->classes * sizeof *entry->occurs);
    for (int64_t s = 0; s < entry->states; s++) {
        if (entry->classes_of[s] >= 0) {
            entry->occurs[entry->classes_of[s]] = true;
        }
    }
}

static void sum_shares(const Entry *entry, int64_t step)
{
    const double *alpha = entry->alpha + step * entry->states, *beta = entry->beta + step * entry->states;
    for (int64_t class = 0; class < entry->classes; class++) {
        entry->shares[class] = -INFINITY;
    }
    for (int64_t s = 0; s < entry->states; s++) {
        if (entry->classes_of[s] >= 0) {
            double *share = &entry->shares[entry->classes_of[s]];
            *share = log_sum(*share, alpha[s] + beta[s]);
        }
    }
}

/* The share of the paths that go through a class in a step: none does where it cannot be; without a path there are no shares. */
US_ALWAYS_INLINE double share_of(const Entry *entry, int64_t class, double loss, double own)
{
    if (!(loss < INFINITY)) {
        return NAN;
    }
    return entry->occurs[class] && own > -INFINITY ? exp_double(entry->shares[class] + loss - own) : 0;
}

/* The gradient of some classes in a step, or 0: e^x - the share of a class. */
static void differentiate_classes(const Work *work, const Entry *entry, int64_t step, int64_t first, int64_t count, double loss,
                                  double gradient, bool counts)
{
    const View *out = work->out, *from = entry->log_probabilities;
    const int64_t *strides = from->strides;
    const int64_t to = step * out->strides[0] + entry->number * out->strides[1] + first * out->strides[2];
    const int64_t at = step * strides[0] + entry->number * strides[1] + first * strides[2];
    double own[TILE], slopes[TILE] = {0};
    if (counts) {
        us_load_double(own, (const char *)from->data + at * (int64_t)us_dtype_size(from->dtype), from->dtype, strides[2], count);
        for (int64_t i = 0; i < count; i++) {
            slopes[i] = exp_double(own[i]);
        }
        for (int64_t i = 0; i < count; i++) {
            slopes[i] = gradient * (slopes[i] - share_of(entry, first + i, loss, own[i]));
        }
    }
    us_store_double((char *)out->data + to * (int64_t)us_dtype_size(out->dtype), out->dtype, out->strides[2], slopes, count);
}

static void backward_entry(void *context, int64_t number)
{
    Work *work = context;
    Entry entry;
    void *block = begin_entry(work, number, true, &entry);
    if (block == NULL) {
        atomic_store(&work->lacks_memory, true);
        return;
    }
    go_back(&entry);
    mark_classes(&entry);
    const double loss = loss_of(&entry), gradient = get(work->gradient, number * work->gradient->strides[0]);
    for (int64_t step = 0; step < work->out->shape[0]; step++) {
        const bool counts = step < entry.steps && !(work->call->zero_infinity && loss == INFINITY);
        if (counts) {
            sum_shares(&entry, step);
        }
        for (int64_t first = 0; first < entry.classes; first += TILE) {
            differentiate_classes(work, &entry, step, first, smaller(entry.classes - first, TILE), loss, gradient, counts);
        }
    }
    us_scratch_give_back(block);
}

static KernelStatus run(Work *work, ParallelBody *body)
{
    us_parallel(work->call->batch, body, work);
    return atomic_load(&work->lacks_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_ctc_loss(const View *views, const void *attributes)
{
    Work work = {.call = attributes, .log_probabilities = &views[0], .targets = &views[1], .losses = &views[2],
                 .alphas = &views[3]};
    return run(&work, forward_entry);
}

KernelStatus us_ctc_loss_backward(const View *views, const void *attributes)
{
    Work work = {.call = attributes, .gradient = &views[0], .log_probabilities = &views[1], .targets = &views[2],
                 .out = &views[3]};
    return run(&work, backward_entry);
}
