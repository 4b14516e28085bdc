/* What normalization along lines and its gradient share: operands element by element, parameters, pieces of work, and lines that
 * are short enough to be turned into columns. */
#ifndef UNDERSTUDY_NORMALIZE_WORK_H
#define UNDERSTUDY_NORMALIZE_WORK_H

#include "kernels/norm/normal_loops.h"
#include "kernels/norm/normalize.h"
#include "kernels/pieces.h"
#include "kernels/sizes.h"
#include "tensor/axes.h"

/* Elements handled at a time; tensors of a call; how far ahead is fetched; lines of less bytes are turned into columns. */
enum { TILE = 1024, OPERANDS = 6, AHEAD_BYTES = 2048, SHORT_LINE = 512 };

/* ---- operands ---- */

/* Tensors of one shape, element by element in row-major order. Loops see elements of `dtype`: in place where a tensor is
 * `packed`, else by way of float32. */
typedef struct Tensors {
    Axes axes;
    View views[OPERANDS];
    DType dtype;
    bool contiguous[OPERANDS], packed[OPERANDS]; /* without gaps; and of `dtype` */
} Tensors;

void us_normal_tensors(Tensors *tensors, int count, const View *const *views, const View *model, unsigned plain);

static inline bool is_given(const Tensors *tensors, int k)
{
    return !us_view_is_absent(&tensors->views[k]);
}

static inline char *place_of(const Tensors *tensors, int k, int64_t index)
{
    return (char *)tensors->views[k].data + index * (int64_t)us_dtype_size(tensors->views[k].dtype);
}

/* Elements that loops have left in a tile, to tensor k past the caches. */
void us_normal_put_past(const Tensors *tensors, int k, int64_t begin, int64_t count, const float *tile);

/* Among elements as loops see them. */
static inline const void *element(const Tensors *tensors, const void *elements, int64_t index)
{
    return (const char *)elements + index * (int64_t)us_dtype_size(tensors->dtype);
}

/* What is fetched while elements from `begin` on are computed. */
static inline Ahead ahead_of(const Tensors *tensors, int k, int64_t begin)
{
    if (!tensors->contiguous[k]) {
        return (Ahead){tensors, 0};
    }
    const uintptr_t place = (uintptr_t)place_of(tensors, k, begin) + AHEAD_BYTES;
    return (Ahead){(const void *)place, (int64_t)us_dtype_size(tensors->views[k].dtype)};
}

void us_normal_load(const Tensors *tensors, int k, int64_t begin, int64_t count, float *to);
void us_normal_store(const Tensors *tensors, int k, int64_t begin, int64_t count, const float *from);

/* One number of a view of any shape, by its row-major place. */
typedef struct Series {
    Axes axes;
    View view;
} Series;

Series us_normal_series(const View *view);

/* A parameter as float32: `fallback` where it is absent. */
void us_normal_parameter(const View *view, int64_t count, float fallback, float *values);

/* ---- work ---- */

/* One call, forwards or backwards. */
typedef struct Work {
    Normalize norm;
    int64_t lines, range_lines, ranges; /* lines of a piece of work, and how many pieces */
    int64_t runs; /* short ones of a line, or 0 */
    Tensors tensors;
    const NormalLoops *loops;
    const float *scale, *offset;
    Series mean, inverse;
    double *partial;                   /* sums for the parameters' gradients: a range's for offset, then for scale */
    bool wants_input, stores_directly, out_of_memory;
    bool past; /* the result goes past the caches */
} Work;

Work us_normal_work(const Normalize *norm, int64_t elements);
/* Whether no cache can keep tensor k, a result, no operand brings its memory into one, and whole cache lines are written. */
bool us_normal_goes_past(const Work *work, int k);

static inline void run_ranges(Work *work, ParallelBody *body)
{
    run_pieces(work->ranges, work->lines * work->norm.line, body, work);
}

static inline int64_t end_of_range(const Work *work, int64_t range)
{
    const int64_t end = (range + 1) * work->range_lines;
    return end < work->lines ? end : work->lines;
}

/* Neighbouring elements that have neighbouring parameters, or one for all. */
typedef struct Segment {
    int64_t first, count;
    Parameters by; /* from the first on */
} Segment;

/* Where elements stand among the parameters: what is left of the run, or of all parameters where each element has its
 * own. A division for every segment would take as long as a short one. */
typedef struct Cursor {
    int64_t first, left;
} Cursor;

static inline Cursor cursor_at(const Normalize *norm, int64_t position)
{
    const int64_t run = norm->parameter_run, first = position / run % norm->parameter_count;
    return (Cursor){first, run == 1 ? norm->parameter_count - first : run - position % run};
}

static inline Segment next_segment(const Work *work, Cursor *cursor, int64_t limit)
{
    const Normalize *norm = &work->norm;
    const bool each = norm->parameter_run == 1;
    const int64_t first = cursor->first, count = smaller(cursor->left, smaller(limit, TILE));
    cursor->left -= count;
    cursor->first += each ? count : cursor->left == 0;
    if (cursor->left == 0) {
        cursor->left = each ? norm->parameter_count : norm->parameter_run;
        cursor->first = cursor->first == norm->parameter_count ? 0 : cursor->first;
    }
    return (Segment){first, count, {work->scale + first, work->offset + first, each}};
}

/* Short runs of a line that have a parameter each; 0: there are not several. */
int64_t us_normal_runs(const Normalize *norm);

/* Of a line, with which `lines` can be read. */
static inline Runs next_runs(const Work *work, Cursor *cursor, int64_t lines)
{
    const Normalize *norm = &work->norm;
    const int64_t first = cursor->first;
    cursor->first = first + work->runs == norm->parameter_count ? 0 : first + work->runs;
    return (Runs){work->runs, norm->parameter_run, lines * norm->line, work->scale + first, work->offset + first};
}

/* Without parameters one number stands for all elements. */
static inline void share_parameters(Normalize *norm, bool needed)
{
    if (!needed) {
        norm->parameter_run = INT64_MAX;
        norm->parameter_count = 1;
    }
}

enum { IN_X, IN_ADDED };
const void *us_normal_input(const Work *work, int k_bias, int64_t begin, float *space);

/* ---- short lines, side by side ---- */

/* Whether elements of tensors are all that the loops see: nothing is done to them before. */
bool us_normal_is_plain(const Work *work, int k_bias, int k_other);
/* Whether lines are short and plain, and have the same parameters: then ranges are of whole columns. */
bool us_normal_turn_lines(Work *work, int k_bias, int k_other);

static inline Parameters parameters_of_columns(const Work *work)
{
    return (Parameters){work->scale, work->offset, work->norm.parameter_run == 1};
}

/* `count` lines from a tensor side by side, and back. Lines that are not there are 0. */
void us_normal_turn(const Work *work, int k, int64_t line, int64_t count, void *columns);
void us_normal_turn_back(const Work *work, int k, int64_t line, int64_t count, const void *columns);

#endif
