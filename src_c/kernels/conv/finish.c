#include "kernels/conv/gather.h"
#include "tensor/clones.h"
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

static int64_t offset_of(const View *view, int64_t channel, int64_t position)
{
    int64_t offset = channel * view->strides[1];
    for (int axis = 4; axis >= 2; axis--) {
        offset += position % view->shape[axis] * view->strides[axis];
        position /= view->shape[axis];
    }
    return offset + position * view->strides[0];
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

void us_finish_positions(const Finish *finish, DType compute, int64_t channel, int64_t begin, int64_t count, void *sums)
{
    const bool adds = finish->addend_scale != 0;
    int64_t run = run_of(&finish->out);
    const int64_t addend_run = adds ? run_of(&finish->addend) : run;
    run = addend_run < run ? addend_run : run;
    for (int64_t done = 0, part; done < count; done += part) {
        const int64_t position = begin + done;
        part = run - position % run;
        part = part < count - done ? part : count - done;
        const Line line = {.offset = {offset_of(&finish->out, channel, position),
                                      adds ? offset_of(&finish->addend, channel, position) : 0},
                           .step = {finish->out.strides[4], finish->addend.strides[4]},
                           .bias = channel};
        store(finish, compute, &line, part, (char *)sums + done * (int64_t)us_dtype_size(compute));
    }
}

void us_finish_channels(const Finish *finish, DType compute, int64_t position, int64_t first, int64_t count, void *sums)
{
    const bool adds = finish->addend_scale != 0;
    const Line line = {.offset = {offset_of(&finish->out, first, position),
                                  adds ? offset_of(&finish->addend, first, position) : 0},
                       .step = {finish->out.strides[1], finish->addend.strides[1]},
                       .bias = first,
                       .bias_step = 1};
    store(finish, compute, &line, count, sums);
}
