#include "kernels/fourier/fourier.h"

#include "kernels/linear.h"
#include "kernels/maths/maths.h"
#include "kernels/move/transpose.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"

#include <string.h>

/* So many transforms run side by side: a vector of float64 of the highest level. */
enum { LANES = 8, PART_LIMIT = 2, TABLE_PIECE = 1024 };

typedef struct Lanes {
    double real[LANES], imaginary[LANES];
} Lanes;

typedef struct Turn {
    double real, imaginary;
} Turn;

typedef struct FourierRun {
    const Fourier *how;
    const View *signal, *window, *out;
    Turn *turns;   /* exp(-2 pi i k / points) */
    Turn *weights; /* the window's */
    int64_t length, frequencies, frames, transforms;
    int32_t parts;
    bool halved; /* an even number of real points is transformed as half as many complex ones */
    KernelStatus status;
} FourierRun;

/* ---- one stage: [p, r, l] numbers become [r, p, l] ---- */

static inline void turn(Lanes *to, const Lanes *from, const Turn *by)
{
    const double negative = -by->imaginary;
    for (int i = 0; i < LANES; i++) {
        to->real[i] = from->real[i] * by->real + from->imaginary[i] * negative;
        to->imaginary[i] = from->real[i] * by->imaginary + from->imaginary[i] * by->real;
    }
}

static inline void add(Lanes *to, const Lanes *a, const Lanes *b)
{
    for (int i = 0; i < LANES; i++) {
        to->real[i] = a->real[i] + b->real[i];
        to->imaginary[i] = a->imaginary[i] + b->imaginary[i];
    }
}

static inline void subtract(Lanes *to, const Lanes *a, const Lanes *b)
{
    for (int i = 0; i < LANES; i++) {
        to->real[i] = a->real[i] - b->real[i];
        to->imaginary[i] = a->imaginary[i] - b->imaginary[i];
    }
}

/* to = a - i b and a + i b. */
static inline void cross(Lanes *less, Lanes *more, const Lanes *a, const Lanes *b)
{
    for (int i = 0; i < LANES; i++) {
        less->real[i] = a->real[i] + b->imaginary[i];
        less->imaginary[i] = a->imaginary[i] - b->real[i];
        more->real[i] = a->real[i] - b->imaginary[i];
        more->imaginary[i] = a->imaginary[i] + b->real[i];
    }
}

typedef struct Stage {
    const Lanes *from;
    Lanes *to;
    const Turn *turns;
    int64_t l, r, step; /* step: turns from one k to the next */
} Stage;

static void by_two(const Stage *stage)
{
    const int64_t l = stage->l, apart = stage->r * l;
    for (int64_t j = 0; j < stage->r; j++) {
        for (int64_t k = 0; k < l; k++) {
            const Lanes *from = stage->from + j * l + k;
            Lanes *to = stage->to + 2 * j * l + k, turned;
            turn(&turned, &from[apart], &stage->turns[k * stage->step]);
            add(&to[0], from, &turned);
            subtract(&to[l], from, &turned);
        }
    }
}

static void by_four(const Stage *stage)
{
    const int64_t l = stage->l, apart = stage->r * l;
    for (int64_t j = 0; j < stage->r; j++) {
        for (int64_t k = 0; k < l; k++) {
            const Lanes *from = stage->from + j * l + k;
            Lanes *to = stage->to + 4 * j * l + k, b, c, d, sum, difference, odd_sum, odd_difference;
            turn(&b, &from[apart], &stage->turns[k * stage->step]);
            turn(&c, &from[2 * apart], &stage->turns[2 * k * stage->step]);
            turn(&d, &from[3 * apart], &stage->turns[3 * k * stage->step]);
            add(&sum, from, &c);
            subtract(&difference, from, &c);
            add(&odd_sum, &b, &d);
            subtract(&odd_difference, &b, &d);
            add(&to[0], &sum, &odd_sum);
            cross(&to[l], &to[3 * l], &difference, &odd_difference);
            subtract(&to[2 * l], &sum, &odd_sum);
        }
    }
}

/* y[s] and y[p - s] are x[0] + the sum over q of cos(2 pi q s / p) * (x[q] + x[p - q]), -+ i * that of sin(2 pi q s / p) *
 * (x[q] - x[p - q]), for q up to p / 2. */
static inline void odd_outputs(const Stage *stage, const Lanes *sums, const Lanes *first, int64_t p, int64_t s, Lanes *to)
{
    const Lanes *differences = sums + p / 2;
    const int64_t root = stage->l * stage->step; /* turns of a p-th */
    Lanes even = *first, odd = {{0}, {0}};
    for (int64_t q = 1, at = s; q <= p / 2; q++, at = at + s >= p ? at + s - p : at + s) {
        const Turn by = stage->turns[at * root];
        const Lanes *sum = &sums[q - 1], *difference = &differences[q - 1];
        for (int i = 0; i < LANES; i++) {
            even.real[i] += sum->real[i] * by.real;
            even.imaginary[i] += sum->imaginary[i] * by.real;
            odd.real[i] -= difference->real[i] * by.imaginary;
            odd.imaginary[i] -= difference->imaginary[i] * by.imaginary;
        }
    }
    cross(&to[s * stage->l], &to[(p - s) * stage->l], &even, &odd);
}

/* `held`: room for p numbers. */
static void by_odd(const Stage *stage, int64_t p, Lanes *held)
{
    const int64_t l = stage->l, apart = stage->r * l;
    for (int64_t j = 0; j < stage->r; j++) {
        for (int64_t k = 0; k < l; k++) {
            const Lanes *from = stage->from + j * l + k;
            Lanes *to = stage->to + j * p * l + k, low, high;
            to[0] = *from;
            for (int64_t q = 1; q <= p / 2; q++) {
                turn(&low, &from[q * apart], &stage->turns[q * k * stage->step]);
                turn(&high, &from[(p - q) * apart], &stage->turns[(p - q) * k * stage->step]);
                add(&held[q - 1], &low, &high);
                subtract(&held[p / 2 + q - 1], &low, &high);
                add(&to[0], &to[0], &held[q - 1]);
            }
            for (int64_t s = 1; s <= p / 2; s++) {
                odd_outputs(stage, held, from, p, s, to);
            }
        }
    }
}

static int64_t next_factor(int64_t rest)
{
    if (rest % 4 == 0) {
        return 4;
    }
    int64_t p = 2;
    while (p * p <= rest && rest % p != 0) {
        p++;
    }
    return rest % p == 0 ? p : rest;
}

/* Numbers of a transform, and what is needed beside them. */
typedef struct Work {
    Lanes *a, *b, *held;
    double *lines; /* what the transforms start from: of each its parts in turn */
    double *values;
} Work;

static int64_t numbers_of(const FourierRun *run)
{
    return run->halved ? run->how->points / 2 : run->how->points;
}

/* The transforms of what is in a; the result is in a, too. */
static void transform(const FourierRun *run, Work *work)
{
    const int64_t n = numbers_of(run), turns = run->how->points / n;
    for (int64_t l = 1, rest = n; rest > 1;) {
        const int64_t p = next_factor(rest);
        rest /= p;
        const Stage stage = {work->a, work->b, run->turns, l, rest, rest * turns};
        if (p == 4) {
            by_four(&stage);
        } else if (p == 2) {
            by_two(&stage);
        } else {
            by_odd(&stage, p, work->held);
        }
        l *= p;
        Lanes *const last = work->a;
        work->a = work->b;
        work->b = last;
    }
}

/* From the transform Z of half as many complex numbers to that of the real ones they are made of: with E, O = (Z[k] +-
 * conjugate Z[n - k]) / 2, E - i * exp(-2 pi i k / points) * O; behind the middle the conjugates. */
static void unfold(const FourierRun *run, Work *work)
{
    const int64_t n = numbers_of(run);
    for (int64_t k = 0; k < run->frequencies; k++) {
        const bool mirrored = k > n;
        const int64_t at = mirrored ? 2 * n - k : k;
        const Lanes *z = &work->a[at % n], *other = &work->a[(n - at) % n];
        Lanes even, odd, turned, *to = &work->b[k];
        for (int i = 0; i < LANES; i++) {
            even.real[i] = 0.5 * (z->real[i] + other->real[i]);
            even.imaginary[i] = 0.5 * (z->imaginary[i] - other->imaginary[i]);
            odd.real[i] = 0.5 * (z->imaginary[i] + other->imaginary[i]);
            odd.imaginary[i] = 0.5 * (other->real[i] - z->real[i]);
        }
        turn(&turned, &odd, &run->turns[at % run->how->points]);
        add(to, &even, &turned);
        for (int i = 0; i < LANES && mirrored; i++) {
            to->imaginary[i] = -to->imaginary[i];
        }
    }
    Lanes *const last = work->a;
    work->a = work->b;
    work->b = last;
}

/* ---- what goes in, and what comes out ---- */

/* Parts of the numbers that a transform starts from, each times its weight. */
static void fill_line(const FourierRun *run, int64_t transform, double *line)
{
    const int64_t points = run->how->points, row = transform / run->frames;
    const int64_t begin = transform % run->frames * run->how->hop, there = bounded(run->length - begin, 0, points);
    us_linear_load_double(run->signal, (row * run->length + begin) * run->parts, there * run->parts, line);
    memset(line + there * run->parts, 0, (size_t)((points - there) * run->parts) * sizeof *line);
    if (run->halved) {
        for (int64_t k = 0; k < points; k++) {
            line[k] *= run->weights[k].real;
        }
        return;
    }
    for (int64_t k = points - 1; k >= 0; k--) { /* backwards: real numbers make room for their imaginary parts */
        const Turn weight = run->weights[k];
        const double real = line[k * run->parts], imaginary = run->parts == PART_LIMIT ? line[k * run->parts + 1] : 0;
        const double negative = -weight.imaginary;
        line[PART_LIMIT * k] = real * weight.real + imaginary * negative;
        line[PART_LIMIT * k + 1] = real * weight.imaginary + imaginary * weight.real;
    }
}

static void fill(const FourierRun *run, int64_t first, int lanes, Work *work)
{
    const int64_t parts = PART_LIMIT * numbers_of(run);
    for (int lane = 0; lane < lanes; lane++) {
        fill_line(run, first + lane, work->lines + lane * parts);
    }
    memset(work->lines + lanes * parts, 0, (size_t)((LANES - lanes) * parts) * sizeof(double));
    us_transpose((char *)work->a, sizeof work->a->real, (const char *)work->lines, parts * (int64_t)sizeof(double), LANES,
                 parts, sizeof(double));
}

/* All frequencies of the only frame of a row. */
static void store_row(const FourierRun *run, int64_t row, int lane, const Work *work)
{
    const double scale = run->how->scale;
    for (int64_t w = 0; w < run->frequencies; w++) {
        work->values[PART_LIMIT * w] = work->a[w].real[lane] * scale;
        work->values[PART_LIMIT * w + 1] = work->a[w].imaginary[lane] * scale;
    }
    us_linear_store_double(run->out, row * run->frequencies * PART_LIMIT, run->frequencies * PART_LIMIT, work->values);
}

/* Neighbouring frames of a row, frequency by frequency. */
static void store_frames(const FourierRun *run, int64_t first, int begin, int end, const Work *work)
{
    const int64_t row = first / run->frames, frame = first % run->frames;
    const double scale = run->how->scale;
    for (int64_t w = 0; w < run->frequencies; w++) {
        double values[PART_LIMIT * LANES];
        for (int i = 0; i < LANES; i++) {
            values[PART_LIMIT * i] = work->a[w].real[i] * scale;
            values[PART_LIMIT * i + 1] = work->a[w].imaginary[i] * scale;
        }
        us_linear_store_double(run->out, ((row * run->frequencies + w) * run->frames + frame) * PART_LIMIT,
                               (end - begin) * PART_LIMIT, values + begin * PART_LIMIT);
    }
}

static void store(const FourierRun *run, int64_t first, int lanes, const Work *work)
{
    for (int begin = 0, end; begin < lanes; begin = end) {
        const int64_t at = first + begin;
        end = (int)smaller(lanes, begin + run->frames - at % run->frames);
        if (run->frames == 1) {
            store_row(run, at, begin, work);
        } else {
            store_frames(run, at, begin, end, work);
        }
    }
}

static void fourier_piece(void *context, int64_t piece)
{
    FourierRun *run = context;
    const int64_t first = piece * LANES;
    const int lanes = (int)smaller(LANES, run->transforms - first);
    /* An unfolded transform has one number more than half of them. */
    const size_t numbers = us_scratch_bytes(run->how->points + 1, sizeof(Lanes));
    const size_t parts[] = {numbers, numbers, numbers, numbers, numbers};
    char *block = us_scratch_take(us_scratch_sum(parts, 5)), *cursor = block;
    if (block == NULL) {
        us_keep_status(&run->status, KERNEL_NO_MEMORY);
        return;
    }
    Work work = {.a = us_scratch_part(&cursor, numbers), .b = us_scratch_part(&cursor, numbers),
                 .held = us_scratch_part(&cursor, numbers), .lines = us_scratch_part(&cursor, numbers),
                 .values = us_scratch_part(&cursor, numbers)};
    fill(run, first, lanes, &work);
    transform(run, &work);
    if (run->halved) {
        unfold(run, &work);
    }
    store(run, first, lanes, &work);
    us_scratch_give_back(block);
}

/* ---- tables ---- */

static void make_turns(void *context, int64_t piece)
{
    const FourierRun *run = context;
    const int64_t n = run->how->points, end = smaller(n, (piece + 1) * TABLE_PIECE);
    for (int64_t k = piece * TABLE_PIECE; k < end; k++) {
        const double half_turns = 2 * (double)k / (double)n;
        run->turns[k] = (Turn){cos_pi_double(half_turns), -sin_pi_double(half_turns)};
    }
}

/* The window among the points of a transform. */
static void make_weights(const FourierRun *run)
{
    const Fourier *how = run->how;
    const bool given = !us_view_is_absent(run->window);
    const int64_t parts = given ? run->window->shape[1] : 1;
    for (int64_t k = 0; k < how->points; k++) {
        const int64_t at = k - how->before;
        double values[PART_LIMIT] = {at >= 0 && at < how->width, 0};
        if (given && values[0] != 0) {
            us_linear_load_double(run->window, at * parts, parts, values);
        }
        run->weights[k] = (Turn){values[0], values[1]};
    }
}

KernelStatus us_fourier(const View *views, const void *attributes)
{
    const View *signal = &views[0], *window = &views[1], *out = &views[2];
    const int32_t last = out->rank - 1;
    FourierRun run = {.how = attributes, .signal = signal, .window = window, .out = out,
                      .length = signal->shape[signal->rank - 2], .parts = (int32_t)signal->shape[signal->rank - 1],
                      .frequencies = out->shape[last - 2], .frames = out->shape[last - 1]};
    run.transforms = us_shape_elements(last - 2, out->shape) * run.frames;
    const int64_t points = run.how->points;
    run.halved = points % 2 == 0 && run.parts == 1 && (us_view_is_absent(window) || window->shape[1] == 1);
    const size_t table = us_scratch_bytes(points, sizeof(Turn));
    char *block = us_scratch_take(us_scratch_sum((const size_t[]){table, table}, 2)), *cursor = block;
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    run.turns = us_scratch_part(&cursor, table);
    run.weights = us_scratch_part(&cursor, table);
    run_pieces(ceiling(points, TABLE_PIECE), points, make_turns, &run);
    make_weights(&run);
    run_pieces(ceiling(run.transforms, LANES), us_scratch_count(run.transforms, points), fourier_piece, &run);
    us_scratch_give_back(block);
    return run.status;
}
