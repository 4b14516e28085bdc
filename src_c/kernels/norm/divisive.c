#include "kernels/detach.h"
#include "kernels/norm/lrn.h"
#include "kernels/norm/power.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"

#include <stdatomic.h>
#include <string.h>

/* One call; a plane is one channel of one image. Windows are separable: a sum over n^d neighbours is d sums over n
 * of them. They are formed over padded planes, where zeros lie between lines and between slices: there every axis is
 * one sum of shifted arrays, from end to end. */
typedef struct Divisive {
    const LocalNorm *norm;
    View x, means, dy, out, dmeans;
    int64_t sizes[3], elements;
    int64_t back[3], ahead[3], steps[3];      /* of the windows along each axis; steps in the padded plane */
    int64_t margin, length, padded;           /* zeros before the padded plane, its length, and all with zeros behind */
    bool has_means, wants_dmeans;
    double scale; /* lrnAlpha / n^d: also where the window is clipped */
    const double *counts; /* of neighbours; padded, where there are means */
    atomic_int out_of_memory;
} Divisive;

static char *row_at(const View *view, int64_t plane, int64_t row, const int64_t *sizes)
{
    const int32_t rank = view->rank;
    int64_t offset = plane / view->shape[1] * view->strides[0] + plane % view->shape[1] * view->strides[1];
    offset += row % sizes[1] * view->strides[rank - 2];
    offset += rank == 5 ? row / sizes[1] * view->strides[2] : 0;
    return (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
}

static bool is_packed(const View *view, const int64_t *sizes)
{
    const int64_t *strides = view->strides + view->rank - 2;
    return strides[1] == 1 && strides[0] == sizes[2] &&
           (view->rank == 4 || view->strides[2] == sizes[1] * sizes[2]);
}

/* Begin of a line in a padded plane. */
static int64_t padded_line(const Divisive *call, int64_t line)
{
    return line / call->sizes[1] * call->steps[0] + line % call->sizes[1] * call->steps[1];
}

#define VALUE float
#define SUM float
#define LOAD_VALUES us_load_float
#define STORE_VALUES us_store_float
#define NEGATIVE_POWERS negative_powers_float
#define NAME(name) name##_float
#include "kernels/norm/divisive_body.inc"

/* With means: S is a difference of large sums. */
#define VALUE float
#define SUM double
#define LOAD_VALUES us_load_float
#define STORE_VALUES us_store_float
#define NEGATIVE_POWERS negative_powers_float
#define NAME(name) name##_mixed
#include "kernels/norm/divisive_body.inc"

#define VALUE double
#define SUM double
#define LOAD_VALUES us_load_double
#define STORE_VALUES us_store_double
#define NEGATIVE_POWERS negative_powers_double
#define NAME(name) name##_double
#include "kernels/norm/divisive_body.inc"

/* How many elements every window has: `memory` has room for two padded planes. */
static const double *count_neighbours(const Divisive *call, double *memory)
{
    memset(memory, 0, 2 * (size_t)call->padded * sizeof *memory);
    double *ones = memory + call->margin;
    for (int64_t line = 0; line < call->sizes[0] * call->sizes[1]; line++) {
        for (int64_t i = 0; i < call->sizes[2]; i++) {
            ones[padded_line(call, line) + i] = 1;
        }
    }
    return sum_windows_double(call, false, ones, ones + call->padded);
}

/* Windows never reach further than the tensor, so zeros are needed for `size - 1` neighbours at most. */
static void lay_out(Divisive *call)
{
    const int64_t back = (call->norm->window - 1) / 2, ahead = call->norm->window - 1 - back;
    int64_t step = 1;
    call->margin = 0;
    call->length = 1;
    for (int axis = 2; axis >= 0; axis--) {
        const int64_t size = call->sizes[axis];
        call->back[axis] = smaller(back, size - 1);
        call->ahead[axis] = smaller(ahead, size - 1);
        const int64_t zeros = smaller(ahead, size - 1); /* never less than back */
        call->steps[axis] = step;
        call->margin += zeros * step;
        call->length += (size - 1) * step;
        step *= size + (axis > 0 ? zeros : 0);
    }
    call->padded = call->length + 2 * call->margin;
}

static KernelStatus run(Divisive *call, const LocalNorm *norm, ParallelBody *const bodies[3])
{
    const View *x = &call->x;
    call->norm = norm;
    call->sizes[0] = x->rank == 5 ? x->shape[2] : 1;
    call->sizes[1] = x->shape[x->rank - 2];
    call->sizes[2] = x->shape[x->rank - 1];
    call->elements = call->sizes[0] * call->sizes[1] * call->sizes[2];
    call->has_means = !us_view_is_absent(&call->means);
    call->wants_dmeans = !us_view_is_absent(&call->dmeans);
    const double n = norm->window;
    call->scale = norm->norm_alpha / (x->rank == 5 ? n * n * n : n * n);
    atomic_init(&call->out_of_memory, 0);
    lay_out(call);
    double *counts = NULL;
    if (call->has_means) {
        counts = us_scratch_array(call->padded, 2 * sizeof *counts);
        if (counts == NULL) {
            return KERNEL_NO_MEMORY;
        }
        call->counts = count_neighbours(call, counts);
    }
    const int form = x->dtype == DTYPE_FLOAT64 ? 2 : call->has_means ? 1 : 0;
    run_pieces(x->shape[0] * x->shape[1], us_view_elements(x), bodies[form], call);
    us_scratch_give_back(counts);
    return atomic_load(&call->out_of_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_divisive_forward(const View *views, const void *attributes)
{
    static ParallelBody *const bodies[] = {forward_plane_float, forward_plane_mixed, forward_plane_double};
    Detached detached;
    KernelStatus status = us_detach(&detached, 2, views, 1, &views[2]);
    if (status == KERNEL_OK) {
        Divisive call = {.x = detached.inputs[0], .means = detached.inputs[1], .out = views[2],
                         .dmeans = us_view_absent()};
        status = run(&call, attributes, bodies);
    }
    us_detach_end(&detached);
    return status;
}

KernelStatus us_divisive_backward(const View *views, const void *attributes)
{
    static ParallelBody *const bodies[] = {backward_plane_float, backward_plane_mixed, backward_plane_double};
    Detached detached;
    KernelStatus status = us_detach(&detached, 3, views, 2, &views[3]);
    if (status == KERNEL_OK) {
        Divisive call = {.x = detached.inputs[0], .means = detached.inputs[1], .dy = detached.inputs[2],
                         .out = views[3], .dmeans = views[4]};
        status = run(&call, attributes, bodies);
    }
    us_detach_end(&detached);
    return status;
}
