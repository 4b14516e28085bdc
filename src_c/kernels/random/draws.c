#include "kernels/random/draws.h"

#include "kernels/linear.h"
#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "tensor/axes.h"

/* Words of a tile; elements are as many, or half as many where one takes two words. */
enum { WORDS = 1024, HALF = WORDS / 2, QUARTER = WORDS / 4, GROUPS = WORDS / PHILOX_GROUP, PIECE = 16 /* tiles */ };

enum { OUT, FIRST, SECOND, WALKED };

typedef struct Work {
    Draws draws;
    View views[WALKED]; /* out, a, b; broadcast */
    Axes axes;
    Lane lane;     /* the draws are made in */
    int64_t count, tile; /* elements */
    double limit;  /* of DRAW_UNIFORM: the largest number below b */
} Work;

RandomStream us_stream_of(RandomStream stream, const View *seed, const View *offset)
{
    int64_t value;
    if (!us_view_is_absent(seed)) {
        us_convert(&value, DTYPE_INT64, seed->data, seed->dtype, 1);
        stream.seed = (uint64_t)value;
    }
    if (!us_view_is_absent(offset)) {
        us_convert(&value, DTYPE_INT64, offset->data, offset->dtype, 1);
        stream.offset += (uint64_t)value;
    }
    return stream;
}

/* ---- draws of a tile ---- */

static void uniform_floats(const Work *work, const uint32_t *words, float *values)
{
    const double from = work->draws.a, size = work->draws.b - from, limit = work->limit;
    for (int i = 0; i < WORDS; i++) {
        const double value = from + (double)(int32_t)(words[i] >> 8) * 0x1p-24 * size;
        values[i] = (float)(value < limit ? value : limit);
    }
}

/* Two words make a number of 53 bits below 1. */
US_ALWAYS_INLINE double unit_double(uint32_t high, uint32_t low)
{
    return ((double)(int32_t)(high >> 5) * 0x1p26 + (double)(int32_t)(low >> 6)) * 0x1p-53;
}

static void uniform_doubles(const Work *work, const uint32_t *words, double *values)
{
    const double unit = isinf(work->draws.b - work->draws.a) ? 2 : 1; /* the distance is no number, that of halves is */
    const double from = work->draws.a / unit, size = work->draws.b / unit - from, limit = work->limit / unit;
    for (int i = 0; i < HALF; i++) {
        const double value = from + unit_double(words[i], words[HALF + i]) * size;
        values[i] = value < limit ? value : limit;
    }
    for (int i = 0; unit != 1 && i < HALF; i++) {
        values[i] *= unit;
    }
}

/* A point on the circle at word / 2^32 of a turn, of 24 bits; at most 2 ULP. The nearest quarter turn is subtracted in
 * integers, what is left is at most 1/4 of a half turn: the series end there. */
US_ALWAYS_INLINE void point_on_circle(uint32_t word, float *cosine, float *sine)
{
    const uint32_t turn = word >> 8, quarters = (turn + (1u << 21)) >> 22;
    const float r = (float)(int32_t)(turn - (quarters << 22)) * 0x1p-23f, z = r * r;
    const float of_sine[] = {0x1.921fb6p+1f, -0x1.4abbcep+2f, 0x1.466bc6p+1f, -0x1.32d2ccp-1f, 0x1.507834p-4f};
    const float of_cosine[] = {-0x1.3bd3ccp+2f, 0x1.03c1fp+2f, -0x1.55d3c8p+0f, 0x1.e1f506p-3f, -0x1.a6d1f2p-6f};
    const float rise = r * polynomial_float(z, 5, of_sine), run = fma_float(z, polynomial_float(z, 5, of_cosine), 1);
    const bool is_across = quarters & 1;
    *cosine = bits_float(float_bits(is_across ? rise : run) ^ ((quarters + 1) & 2) << 30);
    *sine = bits_float(float_bits(is_across ? run : rise) ^ (quarters & 2) << 30);
}

/* Box and Muller: two uniform numbers, of which the first is not 0, make two normal ones. In two loops: of one long one a
 * processor holds too few elements at a time to have work while each waits for its next step. */
static void normal_floats(const uint32_t *words, float *values)
{
    for (int i = 0; i < HALF; i++) {
        const float unit = (float)(int32_t)(words[i] >> 1) * 0x1p-31f + 0x1p-32f;
        values[i] = sqrt_float(-2 * log_of_normal_float(unit));
    }
    for (int i = 0; i < HALF; i++) {
        const float radius = values[i];
        float cosine, sine;
        point_on_circle(words[HALF + i], &cosine, &sine);
        values[i] = radius * cosine;
        values[HALF + i] = radius * sine;
    }
}

static void normal_doubles(const uint32_t *words, double *values)
{
    for (int i = 0; i < QUARTER; i++) {
        const double unit = unit_double(words[i], words[QUARTER + i]) + 0x1p-54;
        const double turns = 2 * unit_double(words[HALF + i], words[HALF + QUARTER + i]);
        const double radius = sqrt_double(-2 * log_of_normal_double(unit));
        values[i] = radius * cos_pi_double(turns);
        values[QUARTER + i] = radius * sin_pi_double(turns);
    }
}

/* The inverse of the distribution function at a uniform number between its values at -2 and 2. */
static void truncated_floats(const uint32_t *words, float *values)
{
    const float most = 0.95449973610364158f; /* erf(2 / sqrt(2)) */
    for (int i = 0; i < WORDS; i++) {
        const float unit = ((float)(int32_t)(words[i] >> 9) + 0.5f) * 0x1p-22f - 1;
        values[i] = 1.41421356237309505f * erfinv_float(unit * most);
    }
}

/* The word is below 2^32 times the probability. */
static void bernoulli_floats(double probability, const uint32_t *words, float *values)
{
    const double least = probability * 0x1p32;
    for (int i = 0; i < WORDS; i++) {
        values[i] = (double)(int32_t)(words[i] >> 1) * 2 + (words[i] & 1) < least ? 1 : 0;
    }
}

static void bernoulli_of_each(const double *probabilities, const uint32_t *words, float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] = (double)words[i] < probabilities[i] * 0x1p32 ? 1 : 0;
    }
}

static void integers(const Draws *draws, const uint32_t *words, int64_t *values)
{
    for (int i = 0; i < HALF; i++) {
        const uint64_t number = (uint64_t)words[HALF + i] << 32 | words[i];
        values[i] = (int64_t)((uint64_t)draws->from + us_random_below(number, draws->range));
    }
}

static void place_alike(int64_t count, float mean, float deviation, float *values)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] = mean + deviation * values[i];
    }
}

/* Normal draws with their mean and deviation, each of which may be a tensor. */
static void place_floats(const Work *work, int64_t begin, int64_t count, float *values)
{
    const Draws *draws = &work->draws;
    if (us_view_is_absent(&work->views[FIRST]) && us_view_is_absent(&work->views[SECOND])) {
        place_alike(count, (float)draws->a, (float)draws->b, values);
        return;
    }
    float means[WORDS], deviations[WORDS];
    for (int64_t i = 0; i < count; i++) {
        means[i] = (float)draws->a;
        deviations[i] = (float)draws->b;
    }
    for (int k = FIRST; k <= SECOND; k++) {
        if (!us_view_is_absent(&work->views[k])) {
            us_axes_load(&work->axes, k, work->views[k].data, work->views[k].dtype, begin, count, LANE_FLOAT,
                         k == FIRST ? means : deviations);
        }
    }
    for (int64_t i = 0; i < count; i++) {
        values[i] = means[i] + deviations[i] * values[i];
    }
}

static void place_doubles(const Work *work, int64_t begin, int64_t count, double *values)
{
    const Draws *draws = &work->draws;
    double means[HALF], deviations[HALF];
    for (int64_t i = 0; i < count; i++) {
        means[i] = draws->a;
        deviations[i] = draws->b;
    }
    for (int k = FIRST; k <= SECOND; k++) {
        if (!us_view_is_absent(&work->views[k])) {
            us_axes_load(&work->axes, k, work->views[k].data, work->views[k].dtype, begin, count, LANE_DOUBLE,
                         k == FIRST ? means : deviations);
        }
    }
    for (int64_t i = 0; i < count; i++) {
        values[i] = means[i] + deviations[i] * values[i];
    }
}

static void draw_normal(const Work *work, const uint32_t *words, int64_t begin, int64_t count, void *values)
{
    if (work->lane == LANE_FLOAT) {
        normal_floats(words, values);
        place_floats(work, begin, count, values);
    } else {
        normal_doubles(words, values);
        place_doubles(work, begin, count, values);
    }
}

/* -ln(u) / rate of u between 0 and 1, both excluded: odd multiples of 2^-24. */
static void exponential_floats(double rate, const uint32_t *words, float *values)
{
    for (int i = 0; i < WORDS; i++) {
        values[i] = (float)((double)-log_of_normal_float(((float)(int32_t)(words[i] >> 9) + 0.5f) * 0x1p-23f) / rate);
    }
}

static void draw_bernoulli(const Work *work, const uint32_t *words, int64_t begin, int64_t count, float *values)
{
    const View *each = &work->views[FIRST];
    if (us_view_is_absent(each)) {
        bernoulli_floats(work->draws.a, words, values);
        return;
    }
    double probabilities[WORDS];
    us_linear_load_double(each, begin, count, probabilities);
    bernoulli_of_each(probabilities, words, values, count);
}

static void draw_tile(const Work *work, int64_t tile)
{
    const int64_t begin = tile * work->tile;
    const int64_t count = work->count - begin < work->tile ? work->count - begin : work->tile;
    uint32_t words[WORDS];
    _Alignas(64) char values[WORDS * sizeof(float)];
    us_philox_words(work->draws.stream, (uint64_t)tile * GROUPS, GROUPS, words);
    switch (work->draws.distribution) {
    case DRAW_UNIFORM:
        if (work->lane == LANE_FLOAT) {
            uniform_floats(work, words, (void *)values);
        } else {
            uniform_doubles(work, words, (void *)values);
        }
        break;
    case DRAW_NORMAL:
        draw_normal(work, words, begin, count, values);
        break;
    case DRAW_TRUNCATED_NORMAL:
        truncated_floats(words, (void *)values);
        place_floats(work, begin, count, (void *)values);
        break;
    case DRAW_EXPONENTIAL:
        exponential_floats(work->draws.a, words, (void *)values);
        break;
    case DRAW_BERNOULLI:
        draw_bernoulli(work, words, begin, count, (void *)values);
        break;
    case DRAW_INTEGER:
        integers(&work->draws, words, (void *)values);
        break;
    }
    us_axes_store(&work->axes, OUT, work->views[OUT].data, work->views[OUT].dtype, begin, count, work->lane, values);
}

static void draw_piece(void *context, int64_t piece)
{
    const Work *work = context;
    const int64_t tiles = (work->count + work->tile - 1) / work->tile;
    for (int64_t tile = piece * PIECE; tile < tiles && tile < (piece + 1) * PIECE; tile++) {
        draw_tile(work, tile);
    }
}

/* ---- preparation ---- */

/* The largest number of a type, of float64 for integers, that is below a limit: the bits of a floating number count up
 * from 0 either way. */
static double below(double limit, DType given)
{
    const DType dtype = us_dtype_is_float(given) ? given : DTYPE_FLOAT64;
    const size_t size = us_dtype_size(dtype);
    uint64_t bits = 0;
    double rounded;
    us_convert(&bits, dtype, &limit, DTYPE_FLOAT64, 1);
    us_convert(&rounded, DTYPE_FLOAT64, &bits, dtype, 1);
    if (rounded < limit || rounded != rounded) {
        return rounded;
    }
    const uint64_t sign = UINT64_C(1) << (8 * size - 1);
    bits = rounded == 0 ? sign | 1 : (bits & sign) != 0 ? bits + 1 : bits - 1;
    us_convert(&rounded, DTYPE_FLOAT64, &bits, dtype, 1);
    return rounded;
}

static Lane lane_of(Distribution distribution, DType dtype)
{
    const bool is_wide = dtype == DTYPE_FLOAT64 || !us_dtype_is_float(dtype);
    const bool is_narrow = distribution == DRAW_BERNOULLI || distribution == DRAW_TRUNCATED_NORMAL ||
                           distribution == DRAW_EXPONENTIAL;
    return distribution == DRAW_INTEGER ? LANE_INT64 : is_wide && !is_narrow ? LANE_DOUBLE : LANE_FLOAT;
}

KernelStatus us_draws(const View *views, const void *attributes)
{
    const View *out = &views[0];
    Work work = {.draws = *(const Draws *)attributes, .views = {*out, views[3], views[4]}};
    work.draws.stream = us_stream_of(work.draws.stream, &views[1], &views[2]);
    work.lane = lane_of(work.draws.distribution, out->dtype);
    work.count = us_view_elements(out);
    work.tile = work.lane == LANE_FLOAT ? WORDS : HALF;
    const bool is_linear = work.draws.distribution == DRAW_BERNOULLI;
    const View *walked[WALKED] = {out, out, out};
    for (int k = FIRST; k <= SECOND; k++) {
        if (!us_view_is_absent(&work.views[k]) && !is_linear) {
            work.views[k] = us_view_broadcast(&work.views[k], out->rank, out->shape);
            walked[k] = &work.views[k];
        }
    }
    us_axes_add(&work.axes, walked, WALKED, 0, out->rank);
    if (is_linear && !us_view_is_absent(&work.views[FIRST])) {
        const int64_t given = us_view_elements(&work.views[FIRST]);
        work.count = given < work.count ? given : work.count;
    }
    if (work.draws.distribution == DRAW_UNIFORM) {
        work.limit = work.draws.a < work.draws.b ? below(work.draws.b, out->dtype) : work.draws.a;
    }
    const int64_t pieces = (work.count + PIECE * work.tile - 1) / (PIECE * work.tile);
    run_pieces(pieces, work.count, draw_piece, &work);
    return KERNEL_OK;
}

/* ---- tasks whose numbers lie in memory ---- */

static double number_of(const View *view, double given)
{
    if (!us_view_is_absent(view)) {
        us_convert(&given, DTYPE_FLOAT64, view->data, view->dtype, 1);
    }
    return given;
}

KernelStatus us_draws_with(const View *views, const void *attributes)
{
    DrawsWith task = *(const DrawsWith *)attributes;
    task.draws.a = number_of(&views[3], task.draws.a);
    task.draws.b = number_of(&views[4], task.draws.b);
    if (task.bits == 0) {
        const View all[] = {views[0], views[1], views[2], us_view_absent(), us_view_absent()};
        return us_draws(all, &task.draws);
    }
    const DropoutMask mask = {us_stream_of(task.draws.stream, &views[1], &views[2]), task.draws.a, task.bits};
    return us_dropout_mask(views, &mask);
}
