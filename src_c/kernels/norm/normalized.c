#include "kernels/norm/normalized.h"

#include "kernels/map/formulas.h"
#include "kernels/quantize/quantize.h"
#include "kernels/scratch.h"

#include <math.h>

enum { X, ADDED, BIAS, SCALE, OFFSET, SUM, Y, MEAN, INVERSE, COPY };

KernelStatus us_normalize_and_copy(const View *views, const void *attributes)
{
    const KernelStatus status = us_normalize(views, attributes);
    return status == KERNEL_OK ? us_map_floats(&us_map_copy, 1, (const View[]){views[Y], views[COPY]}) : status;
}

/* A float32 for each element of x; without memory its data is NULL. */
static View scratch_of(const View *x)
{
    return us_view_contiguous(us_scratch_take((size_t)us_view_elements(x) * sizeof(float)), DTYPE_FLOAT32, x->rank, x->shape);
}

KernelStatus us_normalize_and_modulate(const View *views, const void *attributes)
{
    const View *x = &views[0], absent = us_view_absent(), v = scratch_of(x);
    if (v.data == NULL) {
        return KERNEL_NO_MEMORY;
    }
    KernelStatus status = us_normalize(
        (const View[]){*x, absent, absent, views[1], views[2], absent, v, views[6], views[7]}, attributes);
    if (status == KERNEL_OK) {
        status = us_map_floats(&us_map_modulate, 3, (const View[]){v, views[3], views[4], views[5]});
    }
    us_scratch_give_back(v.data);
    return status;
}

KernelStatus us_normalize_modulate_and_quantize(const View *views, const void *attributes)
{
    const View absent = us_view_absent(), v = scratch_of(&views[0]);
    if (v.data == NULL) {
        return KERNEL_NO_MEMORY;
    }
    KernelStatus status = us_normalize_and_modulate(
        (const View[]){views[0], views[1], views[2], views[3], views[4], v, absent, absent}, attributes);
    if (status == KERNEL_OK) {
        status = us_quantize_rows((const View[]){v, views[5], views[6], views[7], absent, absent}, &(QuantizeRows){.packed = false});
    }
    us_scratch_give_back(v.data);
    return status;
}

/* mean and 1/deviation of groups without elements. */
static KernelStatus fill_statistics(const View *mean, const View *inverse)
{
    const float zero = 0, nan = NAN;
    const View zeros = us_view_contiguous((void *)&zero, DTYPE_FLOAT32, 0, NULL), nans = us_view_contiguous((void *)&nan, DTYPE_FLOAT32, 0, NULL);
    const KernelStatus status = us_map_floats(&us_map_copy, 1, (const View[]){us_view_broadcast(&zeros, mean->rank, mean->shape), *mean});
    return status != KERNEL_OK
               ? status
               : us_map_floats(&us_map_copy, 1, (const View[]){us_view_broadcast(&nans, inverse->rank, inverse->shape), *inverse});
}

KernelStatus us_normalize_groups_and_quantize(const View *views, const void *attributes)
{
    const View *x = &views[0], absent = us_view_absent();
    if (us_view_is_empty(x)) {
        return fill_statistics(&views[3], &views[4]);
    }
    const View v = scratch_of(x);
    if (v.data == NULL) {
        return KERNEL_NO_MEMORY;
    }
    KernelStatus status = us_normalize(
        (const View[]){*x, absent, absent, views[1], views[2], absent, v, views[3], views[4]}, attributes);
    if (status == KERNEL_OK) {
        status = us_quantize((const View[]){v, views[5], absent, views[6]}, &(Quantize){.rounding = ROUND_EVEN, .divides = true});
    }
    us_scratch_give_back(v.data);
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
                                &(QuantizeRows){.packed = how->packed});
    }
    return us_quantize((const View[]){*v, output[BY_SCALE], output[BY_ZERO], output[TO]},
                       &(Quantize){.rounding = ROUND_EVEN, .divides = how->divides, .packed = how->packed});
}

KernelStatus us_normalize_and_quantize(const View *views, const void *attributes)
{
    const NormalizeAndQuantize *how = attributes;
    const View *x = &views[X], absent = us_view_absent();
    const bool apart = !us_view_is_absent(&views[PLAIN]) && !us_view_is_absent(&views[OFFSET]) && !how->whole;
    const View v = scratch_of(x);
    if (v.data == NULL) {
        return KERNEL_NO_MEMORY;
    }
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
    us_scratch_give_back(v.data);
    return status;
}
