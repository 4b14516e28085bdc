#include "kernels/pool/side_by_side.h"

#include "kernels/move/transpose.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"
#include "tensor/levels.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Elements of x in a piece of work; pieces of more than that are taken if there are ENOUGH_PIECES of them. */
enum { PIECE_ELEMENTS = 16 * 1024, ENOUGH_PIECES = 16 };

/* One call. */
typedef struct Call {
    const Beside *beside;
    const PlaneWindow *windows[2];
    int64_t planes, in[2], out[2];
    int64_t of_x, of_y; /* elements of a plane */
    int64_t piece;      /* planes */
    bool is_global;     /* a plane has one window, of all its elements */
    atomic_bool out_of_memory;
} Call;

/* Working memory: elements as they are computed, number p of plane k at p * LANES + k; `spare` for elements as they are
 * stored. */
typedef struct Turned {
    void *x, *y, *line, *spare;
    int32_t *found;
} Turned;

static double divisor_of(const Beside *beside, const PlaneWindow *rows, const PlaneWindow *columns)
{
    const double counted = rows->counted * columns->counted;
    return beside->divide_by != 0 ? beside->divide_by : counted > 1 ? counted : 1;
}

static char *plane_of(const View *view, int64_t plane, int64_t size)
{
    return (char *)view->data + plane * size * (int64_t)us_dtype_size(view->dtype);
}

static void store_places(const Call *call, int64_t first, int64_t count, const Turned *turned)
{
    const View *places = call->beside->places;
    const int64_t size = call->of_y, row = LANES * (int64_t)sizeof(int32_t);
    if (places == NULL || us_view_is_absent(places)) {
        return;
    }
    const bool is_wide = places->dtype == DTYPE_INT64;
    int32_t *narrow = is_wide ? turned->spare : (int32_t *)(void *)plane_of(places, first, size);
    us_transpose((char *)narrow, size * (int64_t)sizeof *narrow, (const char *)turned->found, row, size, count,
                 sizeof *narrow);
    int64_t *wide = (int64_t *)(void *)plane_of(places, first, size);
    for (int64_t i = 0; is_wide && i < count * size; i++) {
        wide[i] = narrow[i];
    }
}

#define LOOPS "kernels/pool/side_by_side.inc"
#include "tensor/instantiate.inc"

static ParallelBody *const bodies[DTYPE_FLOAT64 + 1] = {
    [DTYPE_FLOAT32] = beside_piece_float, [DTYPE_FLOAT16] = beside_piece_half, [DTYPE_BFLOAT16] = beside_piece_bfloat,
    [DTYPE_FLOAT64] = beside_piece_double,
};

static bool are_enough_planes(const View *x)
{
    const bool large = x->shape[3] * x->shape[4] * LANES > PIECE_ELEMENTS;
    return x->shape[0] * x->shape[1] >= (large ? ENOUGH_PIECES * LANES : LANES / 2);
}

bool us_lies_side_by_side(const View *x, const View *y, const View *places, int64_t limit)
{
    const bool given = places != NULL && !us_view_is_absent(places);
    const bool placed = !given || ((places->dtype == DTYPE_INT32 || places->dtype == DTYPE_INT64) &&
                                   us_view_is_contiguous(places));
    const bool flat = x->rank == 5 && x->shape[2] == 1 && y->shape[2] == 1;
    const bool small = x->shape[3] <= limit && x->shape[4] <= limit && x->shape[3] * x->shape[4] <= limit &&
                       y->shape[3] <= limit && y->shape[4] <= limit && y->shape[3] * y->shape[4] <= limit;
    return flat && small && placed && us_view_is_contiguous(x) && us_view_is_contiguous(y) &&
           us_view_elements(y) > 0 && are_enough_planes(x);
}

static KernelStatus run(Call *call, PlaneWindow *windows)
{
    const Beside *beside = call->beside;
    for (int axis = 0; axis < 2; axis++) {
        call->windows[axis] = windows;
        for (int64_t o = 0; o < call->out[axis]; o++) {
            *windows++ = beside->window(beside->context, 1 + axis, o);
        }
    }
    const PlaneWindow *rows = call->windows[0], *columns = call->windows[1];
    call->is_global = call->of_y == 1 && rows->begin == 0 && rows->end == call->in[0] && columns->begin == 0 &&
                      columns->end == call->in[1];
    atomic_init(&call->out_of_memory, false);
    call->piece = ceiling(PIECE_ELEMENTS, larger(call->of_x, 1) * LANES) * LANES;
    const View *x = beside->x;
    run_pieces(ceiling(call->planes, call->piece), us_view_elements(x), bodies[x->dtype], call);
    return atomic_load(&call->out_of_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_pool_side_by_side(const Beside *beside)
{
    const View *x = beside->x, *y = beside->y;
    Call call = {.beside = beside, .planes = x->shape[0] * x->shape[1], .of_x = 1, .of_y = 1};
    for (int axis = 0; axis < 2; axis++) {
        call.in[axis] = x->shape[3 + axis];
        call.out[axis] = y->shape[3 + axis];
        call.of_x *= call.in[axis];
        call.of_y *= call.out[axis];
    }
    PlaneWindow *windows = us_scratch_array(call.out[0] + call.out[1], sizeof *windows);
    const KernelStatus status = windows == NULL ? KERNEL_NO_MEMORY : run(&call, windows);
    us_scratch_give_back(windows);
    return status;
}
