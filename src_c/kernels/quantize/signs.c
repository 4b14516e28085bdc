#include "kernels/quantize/signs.h"

#include "kernels/pieces.h"
#include "tensor/axes.h"

enum { FROM, TO, BITS = 8, PIECE = 512 }; /* bytes of a piece of work */

typedef struct Run {
    const View *views;
    Axes from, to;
    int64_t from_count, to_count;
} Run;

static Axes axes_of(const View *view)
{
    Axes axes = {0};
    us_axes_add(&axes, (const View *const[]){view}, 1, 0, view->rank);
    us_axes_complete(&axes, 1);
    return axes;
}

static int64_t rest_of(int64_t count, int64_t begin, int64_t most)
{
    return count - begin < most ? count - begin : most;
}

static void pack_piece(void *context, int64_t piece)
{
    const Run *run = context;
    float signs[PIECE * BITS];
    int32_t bytes[PIECE];
    const int64_t begin = piece * PIECE, count = rest_of(run->to_count, begin, PIECE);
    const int64_t given = rest_of(run->from_count, begin * BITS, PIECE * BITS);
    us_axes_load(&run->from, 0, run->views[FROM].data, run->views[FROM].dtype, begin * BITS, given, LANE_FLOAT, signs);
    for (int64_t i = given; i < count * BITS; i++) {
        signs[i] = -1;
    }
    for (int64_t i = 0; i < count; i++) {
        bytes[i] = 0;
        for (int bit = 0; bit < BITS; bit++) {
            bytes[i] |= (signs[i * BITS + bit] >= 0) << bit;
        }
    }
    us_axes_store(&run->to, 0, run->views[TO].data, run->views[TO].dtype, begin, count, LANE_INT32, bytes);
}

static void unpack_piece(void *context, int64_t piece)
{
    const Run *run = context;
    float signs[PIECE * BITS];
    int32_t bytes[PIECE];
    const int64_t begin = piece * PIECE, count = rest_of(run->from_count, begin, PIECE);
    us_axes_load(&run->from, 0, run->views[FROM].data, run->views[FROM].dtype, begin, count, LANE_INT32, bytes);
    for (int64_t i = 0; i < count * BITS; i++) {
        signs[i] = (float)((bytes[i / BITS] >> i % BITS & 1) * 2 - 1);
    }
    us_axes_store(&run->to, 0, run->views[TO].data, run->views[TO].dtype, begin * BITS, count * BITS, LANE_FLOAT, signs);
}

static KernelStatus convert(const View *views, int64_t bytes, ParallelBody *body)
{
    Run run = {views, axes_of(&views[FROM]), axes_of(&views[TO]), us_view_elements(&views[FROM]), us_view_elements(&views[TO])};
    run_pieces((bytes + PIECE - 1) / PIECE, bytes * BITS, body, &run);
    return KERNEL_OK;
}

KernelStatus us_pack_signs(const View *views, const void *attributes)
{
    (void)attributes;
    return convert(views, us_view_elements(&views[TO]), pack_piece);
}

KernelStatus us_unpack_signs(const View *views, const void *attributes)
{
    (void)attributes;
    return convert(views, us_view_elements(&views[FROM]), unpack_piece);
}
