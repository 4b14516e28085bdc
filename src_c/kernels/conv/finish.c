#include "kernels/conv/gather.h"
#include "tensor/convert.h"

#include <math.h>

enum { LINE = 512 };

bool us_finish_is_plain(const Finish *finish)
{
    return finish->alpha == 1 && finish->beta == 0 && finish->addend_scale == 0 && !finish->relu &&
           us_view_is_absent(&finish->bias);
}

/* Where a line of results begins and how it goes on: positions of one channel, or channels of one position. */
typedef struct Line {
    int64_t offset[2], step[2]; /* of out, addend: elements */
    int64_t bias, bias_step;    /* the channel of the first element */
} Line;

#define ELEMENT float
#define NAME(name) name##_float
#define ROUND rintf
#include "kernels/conv/finish.inc"

#define ELEMENT double
#define NAME(name) name##_double
#define ROUND rint
#include "kernels/conv/finish.inc"

/* Indices of the view's image and last three axes. */
typedef struct Place {
    int64_t index[5];
} Place;

/* Goes on by some positions. */
static void advance(Place *place, const View *view, int64_t count)
{
    place->index[4] += count;
    for (int axis = 4; axis >= 2 && place->index[axis] >= view->shape[axis]; axis--) {
        const int64_t size = view->shape[axis], carry = place->index[axis] < 2 * size ? 1 : place->index[axis] / size;
        place->index[axis] -= carry * size;
        place->index[axis == 2 ? 0 : axis - 1] += carry;
    }
}

static int64_t offset_of(const View *view, int64_t channel, const Place *place)
{
    int64_t offset = channel * view->strides[1] + place->index[0] * view->strides[0];
    for (int axis = 2; axis < 5; axis++) {
        offset += place->index[axis] * view->strides[axis];
    }
    return offset;
}

static void store(const Finish *finish, DType compute, const Line *line, int64_t count, void *sums)
{
    if (compute == DTYPE_FLOAT64 && finish->out.dtype == DTYPE_FLOAT64) {
        store_line_double(finish, line, count, sums);
        return;
    }
    if (compute != DTYPE_FLOAT64) {
        store_line_float(finish, line, count, sums);
        return;
    }
    for (int64_t done = 0; done < count; done += LINE) {
        float rounded[LINE];
        const int64_t part = count - done < LINE ? count - done : LINE;
        Line rest = *line;
        for (int64_t i = 0; i < part; i++) {
            rounded[i] = (float)((const double *)sums)[done + i];
        }
        for (int k = 0; k < 2; k++) {
            rest.offset[k] += done * line->step[k];
        }
        rest.bias += done * line->bias_step;
        store_line_float(finish, &rest, part, rounded);
    }
}

/* Elements along the last axes that follow each other at one step in a view. */
static int64_t run_of(const View *view)
{
    int64_t run = view->shape[4];
    for (int axis = 3; axis >= 2 && (view->shape[axis] == 1 || view->strides[axis] == view->strides[4] * run); axis--) {
        run *= view->shape[axis];
    }
    return run;
}

/* Sums that are only rounded, to 16 bits, are so before they are divided into runs of few positions. */
static void store_rounded(const Finish *finish, int64_t channel, int64_t begin, int64_t count, const float *sums)
{
    const View *out = &finish->out;
    const int64_t run = run_of(out), step = out->strides[4];
    Place place = {{0}};
    advance(&place, out, begin);
    for (int64_t done = 0; done < count; done += LINE) {
        uint16_t rounded[LINE];
        const int64_t most = count - done < LINE ? count - done : LINE;
        us_store_float(rounded, out->dtype, 1, sums + done, most);
        for (int64_t i = 0, part; i < most; i += part) {
            const int64_t left = run - (begin + done + i) % run;
            part = left < most - i ? left : most - i;
            uint16_t *to = (uint16_t *)out->data + offset_of(out, channel, &place);
            for (int64_t k = 0; k < part; k++) {
                to[k * step] = rounded[i + k];
            }
            advance(&place, out, part);
        }
    }
}

void us_finish_positions(const Finish *finish, DType compute, int64_t channel, int64_t begin, int64_t count, void *sums)
{
    const bool adds = finish->addend_scale != 0;
    int64_t run = run_of(&finish->out);
    const int64_t addend_run = adds ? run_of(&finish->addend) : run;
    run = addend_run < run ? addend_run : run;
    const bool is_half = finish->out.dtype == DTYPE_FLOAT16 || finish->out.dtype == DTYPE_BFLOAT16;
    if (is_half && compute == DTYPE_FLOAT32 && us_finish_is_plain(finish) && run < LINE) {
        store_rounded(finish, channel, begin, count, sums);
        return;
    }
    Place place = {{0}};
    advance(&place, &finish->out, begin);
    for (int64_t done = 0, part = run - begin % run; done < count; done += part, part = run) {
        part = part < count - done ? part : count - done;
        const Line line = {.offset = {offset_of(&finish->out, channel, &place),
                                      adds ? offset_of(&finish->addend, channel, &place) : 0},
                           .step = {finish->out.strides[4], finish->addend.strides[4]},
                           .bias = channel};
        store(finish, compute, &line, part, (char *)sums + done * (int64_t)us_dtype_size(compute));
        advance(&place, &finish->out, part);
    }
}

void *us_finish_in_place(const Finish *finish, DType compute, int64_t image, int64_t channel)
{
    const View *out = &finish->out;
    const int64_t offset = image * out->strides[0] + channel * out->strides[1];
    const bool as_they_are = us_finish_is_plain(finish) && out->dtype == compute;
    return as_they_are ? (char *)out->data + offset * (int64_t)us_dtype_size(compute) : NULL;
}

void *us_finish_plane(const Finish *finish, DType compute, int64_t image, int64_t channel)
{
    const View *out = &finish->out;
    const bool one_row = out->strides[4] == 1 && run_of(out) == out->shape[2] * out->shape[3] * out->shape[4];
    return one_row ? us_finish_in_place(finish, compute, image, channel) : NULL;
}

void us_finish_channels(const Finish *finish, DType compute, int64_t position, int64_t first, int64_t count, void *sums)
{
    const bool adds = finish->addend_scale != 0;
    Place place = {{0}};
    advance(&place, &finish->out, position);
    const Line line = {.offset = {offset_of(&finish->out, first, &place),
                                  adds ? offset_of(&finish->addend, first, &place) : 0},
                       .step = {finish->out.strides[1], finish->addend.strides[1]},
                       .bias = first,
                       .bias_step = 1};
    store(finish, compute, &line, count, sums);
}
