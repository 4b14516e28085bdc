#include "kernels/fourier/fourier.h"

#include "kernels/linear.h"
#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"

/* So many transforms run side by side: a vector of float64 of the highest level. */
enum { LANES = 8, PART_LIMIT = 2 };

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
    Turn *weights; /* the window's, or NULL: all are 1 */
    int64_t length, frequencies, frames, transforms;
    int32_t parts;
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

static void by_factor(const Stage *stage, int64_t p)
{
    const int64_t l = stage->l, apart = stage->r * l;
    for (int64_t j = 0; j < stage->r; j++) {
        for (int64_t k = 0; k < l * p; k++) {
            const Lanes *from = stage->from + j * l + k % l;
            Lanes sum = *from, turned;
            int64_t at = 0;
            for (int64_t q = 1; q < p; q++) {
                at = at + k >= l * p ? at + k - l * p : at + k;
                turn(&turned, &from[q * apart], &stage->turns[at * stage->step]);
                add(&sum, &sum, &turned);
            }
            stage->to[j * p * l + k] = sum;
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

/* The transforms of what is in a; the result is in a or b. */
static Lanes *transform(const FourierRun *run, Lanes *a, Lanes *b)
{
    const int64_t n = run->how->points;
    for (int64_t l = 1, rest = n; rest > 1;) {
        const int64_t p = next_factor(rest);
        rest /= p;
        const Stage stage = {a, b, run->turns, l, rest, rest};
        if (p == 4) {
            by_four(&stage);
        } else if (p == 2) {
            by_two(&stage);
        } else {
            by_factor(&stage, p);
        }
        l *= p;
        Lanes *const last = a;
        a = b;
        b = last;
    }
    return a;
}

/* ---- what goes in, and what comes out ---- */

static void fill_lane(const FourierRun *run, int64_t transform, int lane, Lanes *numbers, double *values)
{
    const int64_t points = run->how->points, row = transform / run->frames;
    const int64_t begin = transform % run->frames * run->how->hop, there = bounded(run->length - begin, 0, points);
    us_linear_load_double(run->signal, (row * run->length + begin) * run->parts, there * run->parts, values);
    for (int64_t k = 0; k < points; k++) {
        const double real = k < there ? values[k * run->parts] : 0;
        const double imaginary = k < there && run->parts == PART_LIMIT ? values[k * run->parts + 1] : 0;
        const Turn weight = run->weights != NULL ? run->weights[k] : (Turn){1, 0};
        const double negative = -weight.imaginary;
        numbers[k].real[lane] = real * weight.real + imaginary * negative;
        numbers[k].imaginary[lane] = real * weight.imaginary + imaginary * weight.real;
    }
}

static void put_number(double *to, const Lanes *numbers, int lane, double scale)
{
    to[0] = numbers->real[lane] * scale;
    to[1] = numbers->imaginary[lane] * scale;
}

/* Neighbours along frames, or the only frame of a row. */
static void store(const FourierRun *run, int64_t first, int lanes, const Lanes *numbers, double *values)
{
    const int64_t frames = run->frames, frequencies = run->frequencies;
    const double scale = run->how->scale;
    for (int lane = 0; lane < lanes && frames == 1; lane++) {
        for (int64_t w = 0; w < frequencies; w++) {
            put_number(values + w * PART_LIMIT, &numbers[w], lane, scale);
        }
        us_linear_store_double(run->out, (first + lane) * frequencies * PART_LIMIT, frequencies * PART_LIMIT, values);
    }
    for (int begin = 0; begin < lanes && frames > 1;) {
        const int64_t row = (first + begin) / frames, frame = (first + begin) % frames;
        const int end = (int)smaller(lanes, begin + frames - frame);
        for (int64_t w = 0; w < frequencies; w++) {
            for (int lane = begin; lane < end; lane++) {
                put_number(values + (lane - begin) * PART_LIMIT, &numbers[w], lane, scale);
            }
            us_linear_store_double(run->out, ((row * frequencies + w) * frames + frame) * PART_LIMIT,
                                   (end - begin) * PART_LIMIT, values);
        }
        begin = end;
    }
}

static void fourier_piece(void *context, int64_t piece)
{
    FourierRun *run = context;
    const int64_t points = run->how->points, first = piece * LANES;
    const int lanes = (int)smaller(LANES, run->transforms - first);
    const size_t numbers = us_scratch_bytes(points, sizeof(Lanes));
    const size_t values = us_scratch_bytes(points + LANES, PART_LIMIT * sizeof(double));
    char *block = us_scratch_take(us_scratch_sum((const size_t[]){numbers, numbers, values}, 3)), *cursor = block;
    if (block == NULL) {
        us_keep_status(&run->status, KERNEL_NO_MEMORY);
        return;
    }
    Lanes *const a = us_scratch_part(&cursor, numbers), *const b = us_scratch_part(&cursor, numbers);
    double *const line = us_scratch_part(&cursor, values);
    for (int lane = 0; lane < LANES; lane++) {
        fill_lane(run, first + (lane < lanes ? lane : 0), lane, a, line);
    }
    store(run, first, lanes, transform(run, a, b), line);
    us_scratch_give_back(block);
}

/* ---- tables ---- */

static void make_turns(void *context, int64_t piece)
{
    const FourierRun *run = context;
    const int64_t n = run->how->points, end = smaller(n, (piece + 1) * 1024);
    for (int64_t k = piece * 1024; k < end; k++) {
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
    const View *signal = &views[0], *out = &views[2];
    const int32_t last = out->rank - 1;
    FourierRun run = {.how = attributes, .signal = signal, .window = &views[1], .out = out,
                      .length = signal->shape[signal->rank - 2], .parts = (int32_t)signal->shape[signal->rank - 1],
                      .frequencies = out->shape[last - 2], .frames = out->shape[last - 1]};
    run.transforms = us_shape_elements(last - 2, out->shape) * run.frames;
    const int64_t points = run.how->points;
    const size_t table = us_scratch_bytes(points, sizeof(Turn));
    char *block = us_scratch_take(us_scratch_sum((const size_t[]){table, table}, 2)), *cursor = block;
    if (block == NULL) {
        return KERNEL_NO_MEMORY;
    }
    run.turns = us_scratch_part(&cursor, table);
    const bool all = us_view_is_absent(run.window) && run.how->width == points;
    run.weights = all ? NULL : us_scratch_part(&cursor, table);
    run_pieces(ceiling(points, 1024), points, make_turns, &run);
    if (run.weights != NULL) {
        make_weights(&run);
    }
    run_pieces(ceiling(run.transforms, LANES), us_scratch_count(run.transforms, points), fourier_piece, &run);
    us_scratch_give_back(block);
    return run.status;
}
