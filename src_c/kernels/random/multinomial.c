#include "kernels/linear.h"
#include "kernels/maths/maths.h"
#include "kernels/random/draws.h"
#include "kernels/scratch.h"
#include "tensor/lane.h"
#include "tensor/parallel.h"

#include <math.h>
#include <stdatomic.h>

enum { WORDS = 1024, NUMBERS = WORDS / 2, GROUPS = WORDS / PHILOX_GROUP };

typedef struct Work {
    View weights, out;
    RandomStream stream;
    bool replaces;
    int64_t classes, samples, tiles; /* tiles of words of a row */
    atomic_bool lacks_memory;
} Work;

/* Numbers of (0, 1] of a row, one after the other. */
typedef struct Numbers {
    RandomStream stream;
    uint64_t tile;
    int64_t next;
    uint32_t words[WORDS];
} Numbers;

static double next_number(Numbers *numbers)
{
    const int64_t i = numbers->next++ % NUMBERS;
    if (i == 0) {
        us_philox_words(numbers->stream, numbers->tile++ * GROUPS, GROUPS, numbers->words);
    }
    return ((double)(numbers->words[i] >> 5) * 0x1p26 + (double)(numbers->words[NUMBERS + i] >> 6) + 1) * 0x1p-53;
}

static void put(const Work *work, int64_t row, int64_t sample, int64_t class)
{
    const View *out = &work->out;
    ((int64_t *)out->data)[row * out->strides[0] + sample * out->strides[1]] = class;
}

/* The class whose part of the cumulated weights the number falls into. `sums` holds the weights. */
static void draw_again_and_again(const Work *work, int64_t row, Numbers *numbers, double *sums)
{
    double total = 0;
    for (int64_t i = 0; i < work->classes; i++) {
        total += sums[i] > 0 ? sums[i] : 0;
        sums[i] = total;
    }
    for (int64_t sample = 0; sample < work->samples; sample++) {
        const double number = next_number(numbers) * total;
        int64_t low = 0, high = work->classes - 1; /* the first sum that is not below the number */
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (sums[middle] < number) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        put(work, row, sample, low);
    }
}

/* ---- without replacement: classes as their exponential waiting times come to an end ---- */

typedef struct Waiting {
    double time;
    int64_t class;
} Waiting;

static bool is_later(const Waiting *a, const Waiting *b)
{
    return a->time > b->time || (a->time == b->time && a->class > b->class);
}

/* The latest is on top. */
static void sink(Waiting *heap, int64_t size, int64_t place)
{
    const Waiting moved = heap[place];
    for (int64_t child; (child = 2 * place + 1) < size; place = child) {
        child += child + 1 < size && is_later(&heap[child + 1], &heap[child]);
        if (!is_later(&heap[child], &moved)) {
            break;
        }
        heap[place] = heap[child];
    }
    heap[place] = moved;
}

static void draw_each_once(const Work *work, int64_t row, Numbers *numbers, const double *weights, Waiting *heap)
{
    for (int64_t i = 0; i < work->classes; i++) {
        const double number = next_number(numbers);
        const Waiting waiting = {weights[i] > 0 ? -log_double(number) / weights[i] : INFINITY, i};
        if (i < work->samples) {
            heap[i] = waiting;
        } else if (is_later(&heap[0], &waiting)) {
            heap[0] = waiting;
            sink(heap, work->samples, 0);
        }
        for (int64_t place = i + 1 == work->samples ? i / 2 : -1; place >= 0; place--) {
            sink(heap, work->samples, place);
        }
    }
    for (int64_t left = work->samples; left > 0; left--) {
        put(work, row, left - 1, heap[0].class);
        heap[0] = heap[left - 1];
        sink(heap, left - 1, 0);
    }
}

static void draw_row(void *context, int64_t row)
{
    Work *work = context;
    const size_t heap_size = us_scratch_bytes(work->replaces ? 0 : work->samples, sizeof(Waiting));
    char *block = us_scratch_take(us_scratch_bytes(work->classes, sizeof(double)) + heap_size), *cursor = block;
    if (block == NULL) {
        atomic_store(&work->lacks_memory, true);
        return;
    }
    double *weights = us_scratch_part(&cursor, (size_t)work->classes * sizeof *weights);
    Numbers numbers = {.stream = work->stream, .tile = (uint64_t)(row * work->tiles)};
    us_linear_load_double(&work->weights, row * work->classes, work->classes, weights);
    if (work->replaces) {
        draw_again_and_again(work, row, &numbers, weights);
    } else {
        draw_each_once(work, row, &numbers, weights, (void *)cursor);
    }
    us_scratch_give_back(block);
}

KernelStatus us_multinomial(const View *views, const void *attributes)
{
    const Multinomial *call = attributes;
    Work work = {.weights = views[0], .out = views[1], .replaces = call->replaces};
    work.stream = us_stream_of(call->stream, &views[2], &views[3]);
    work.classes = work.weights.shape[1];
    work.samples = work.out.shape[1];
    work.tiles = ((work.replaces ? work.samples : work.classes) + NUMBERS - 1) / NUMBERS;
    if (work.classes > 0 && work.samples > 0) {
        us_parallel(work.out.shape[0], draw_row, &work);
    }
    return atomic_load(&work.lacks_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
