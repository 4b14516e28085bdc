#include "kernels/norm/normalized.h"

#include "kernels/map/formulas.h"
#include "kernels/quantize/quantize.h"
#include "kernels/scratch.h"

enum { X, ADDED, BIAS, SCALE, OFFSET, SUM, Y, MEAN, INVERSE, COPY };

KernelStatus us_normalize_and_copy(const View *views, const void *attributes)
{
    const KernelStatus status = us_normalize(views, attributes);
    return status == KERNEL_OK ? us_map_floats(&us_map_copy, 1, (const View[]){views[Y], views[COPY]}) : status;
}

KernelStatus us_normalize_and_modulate(const View *views, const void *attributes)
{
    const View *x = &views[0], absent = us_view_absent();
    float *space = us_scratch_take((size_t)us_view_elements(x) * sizeof *space);
    if (space == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const View v = us_view_contiguous(space, DTYPE_FLOAT32, x->rank, x->shape);
    KernelStatus status = us_normalize(
        (const View[]){*x, absent, absent, views[1], views[2], absent, v, views[6], views[7]}, attributes);
    if (status == KERNEL_OK) {
        status = us_map_floats(&us_map_modulate, 3, (const View[]){v, views[3], views[4], views[5]});
    }
    us_scratch_give_back(space);
    return status;
}

enum { PLAIN = SUM + 1, OUTPUTS, BY_SCALE = 0, BY_ZERO, TO, STEP, OUTPUT_VIEWS };

static KernelStatus quantize(const NormalizeAndQuantize *how, const View *v, const View *output)
{
    const View absent = us_view_absent();
    if (us_view_is_absent(&output[TO]) || us_view_is_empty(&output[TO])) {
        return KERNEL_OK;
    }
    if (how->by_rows) {
        return us_quantize_rows((const View[]){*v, output[BY_SCALE], output[TO], output[STEP], absent, absent},
                                &(QuantizeRows){how->packed});
    }
    return us_quantize((const View[]){*v, output[BY_SCALE], output[BY_ZERO], output[TO]},
                       &(Quantize){.rounding = ROUND_EVEN, .divides = how->divides, .packed = how->packed});
}

KernelStatus us_normalize_and_quantize(const View *views, const void *attributes)
{
    const NormalizeAndQuantize *how = attributes;
    const View *x = &views[X], absent = us_view_absent();
    const bool apart = !us_view_is_absent(&views[PLAIN]) && !us_view_is_absent(&views[OFFSET]) && !how->whole;
    float *space = us_scratch_take((size_t)us_view_elements(x) * sizeof *space);
    if (space == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const View v = us_view_contiguous(space, DTYPE_FLOAT32, x->rank, x->shape);
    KernelStatus status = us_normalize((const View[]){*x, views[ADDED], views[BIAS], views[SCALE], apart ? absent : views[OFFSET],
                                                      views[SUM], v, absent, absent}, &how->norm);
    if (status == KERNEL_OK && !us_view_is_absent(&views[PLAIN])) {
        status = us_map_floats(&us_map_copy, 1, (const View[]){v, views[PLAIN]});
    }
    if (status == KERNEL_OK && apart) {
        status = us_map_floats(&us_map_add, 2, (const View[]){v, us_view_broadcast(&views[OFFSET], v.rank, v.shape), v});
    }
    for (int i = 0; i < 2 && status == KERNEL_OK; i++) {
        status = quantize(how, &v, &views[OUTPUTS + i * OUTPUT_VIEWS]);
    }
    us_scratch_give_back(space);
    return status;
}
