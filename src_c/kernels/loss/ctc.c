#include "kernels/loss/ctc.h"

#include "kernels/maths/maths.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"
#include "tensor/lane.h"
#include "tensor/parallel.h"

#include <stdatomic.h>

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
static double log_sum(double x, double y)
{
    const double top = x > y ? x : y;
    return top == -INFINITY ? top : top + log1p_double(exp_double((x > y ? y : x) - top));
}

/* Whether paths may go from a state to the next but one: not past the blank between equal labels. */
static bool may_skip(const Entry *entry, int64_t from)
{
    return from % 2 == 1 && entry->classes_of[from] != entry->classes_of[from + 2];
}

static void go_forward(const Entry *entry)
{
    for (int64_t step = 0; step < entry->steps; step++) {
        double *now = entry->alpha + step * entry->states;
        const double *before = now - entry->states;
        for (int64_t s = 0; s < entry->states; s++) {
            double sum = step == 0 ? (s < 2 ? 0 : -INFINITY) : before[s];
            if (step > 0 && s > 0) {
                sum = log_sum(sum, before[s - 1]);
            }
            if (step > 0 && s > 1 && may_skip(entry, s - 2)) {
                sum = log_sum(sum, before[s - 2]);
            }
            now[s] = sum + log_probability(entry, step, entry->classes_of[s]);
        }
    }
}

static void go_back(const Entry *entry)
{
    for (int64_t step = entry->steps - 1; step >= 0; step--) {
        double *now = entry->beta + step * entry->states;
        const double *after = now + entry->states;
        const bool is_last = step == entry->steps - 1;
        for (int64_t s = entry->states - 1; s >= 0; s--) {
            double sum = is_last ? (s >= entry->states - 2 ? 0 : -INFINITY) : after[s];
            if (!is_last && s + 1 < entry->states) {
                sum = log_sum(sum, after[s + 1]);
            }
            if (!is_last && s + 2 < entry->states && may_skip(entry, s)) {
                sum = log_sum(sum, after[s + 2]);
            }
            now[s] = sum + log_probability(entry, step, entry->classes_of[s]);
        }
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
    char *block = us_scratch_take(classes + cells * (both_ways ? 2 : 1) + 64);
    char *cursor = block;
    if (block != NULL) {
        entry->classes_of = us_scratch_part(&cursor, classes);
        entry->alpha = us_scratch_part(&cursor, cells);
        entry->beta = both_ways ? us_scratch_part(&cursor, cells) : NULL;
        find_classes(work, entry);
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

/* The gradient of a step: e^x - the share of the paths that go through a class. `shares` has room for all classes. */
static void differentiate_step(const Work *work, const Entry *entry, int64_t step, double loss, double gradient)
{
    const View *out = work->out;
    const int64_t first = step * out->strides[0] + entry->number * out->strides[1];
    const double *alpha = entry->alpha + step * entry->states, *beta = entry->beta + step * entry->states;
    for (int64_t class = 0; class < entry->classes; class++) {
        put(out, first + class * out->strides[2], gradient * exp_double(log_probability(entry, step, class)));
    }
    for (int64_t s = 0; s < entry->states; s++) {
        const int64_t class = entry->classes_of[s];
        bool is_first = class >= 0;
        for (int64_t other = 0; other < s && is_first; other++) {
            is_first = entry->classes_of[other] != class;
        }
        if (!is_first) {
            continue;
        }
        double sum = -INFINITY;
        for (int64_t other = s; other < entry->states; other++) {
            sum = entry->classes_of[other] == class ? log_sum(sum, alpha[other] + beta[other]) : sum;
        }
        const double own = log_probability(entry, step, class);
        put(out, first + class * out->strides[2], gradient * (exp_double(own) - exp_double(sum + loss - own)));
    }
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
    const double loss = loss_of(&entry), gradient = get(work->gradient, number * work->gradient->strides[0]);
    const View *out = work->out;
    for (int64_t step = 0; step < out->shape[0]; step++) {
        if (step < entry.steps && !(work->call->zero_infinity && loss == INFINITY)) {
            differentiate_step(work, &entry, step, loss, gradient);
            continue;
        }
        for (int64_t class = 0; class < entry.classes; class++) {
            put(out, step * out->strides[0] + number * out->strides[1] + class * out->strides[2], 0);
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
