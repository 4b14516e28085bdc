#include "kernels/matmul/grouped.h"
#include "kernels/quantize/gated.h"
#include "kernels/scratch.h"

#include <string.h>

enum { LIST, OUT = 1 + GROUPED_OUT, VIEWS = 1 + GROUPED_OPERANDS };

static View first_rows(View view, int64_t rows)
{
    view.shape[0] = rows;
    return view;
}

static KernelStatus quantize(const View *product, const View *out, const View *scales, int64_t rows)
{
    const int64_t half = out->shape[1];
    View a = first_rows(*product, rows), b;
    a.shape[1] = half;
    b = a;
    b.data = (char *)a.data + half * (int64_t)sizeof(float);
    const View absent = us_view_absent();
    return us_quantize_gated((const View[]){a, b, absent, absent, absent, first_rows(*out, rows),
                                            first_rows(*scales, rows), absent,
                                            absent, absent, absent, absent},
                             &(QuantizeGated){.form = {.kind = GATE_SWISH}});
}

KernelStatus us_grouped_gated(const View *views, const void *attributes)
{
    const GroupedProduct *call = attributes;
    const View *out = &views[OUT];
    const int64_t shape[] = {out->shape[0], 2 * out->shape[1]};
    View own[VIEWS];
    float *sums = us_scratch_take(us_scratch_bytes(us_scratch_count(shape[0], shape[1]), sizeof *sums) + 64);
    if (sums == NULL) {
        return KERNEL_NO_MEMORY;
    }
    memcpy(own, views, (size_t)(1 + call->operand_count) * sizeof *own);
    own[OUT] = us_view_contiguous(sums, DTYPE_FLOAT32, 2, shape);
    KernelStatus status = us_grouped_product(own, call);
    const int64_t rows = status == KERNEL_OK ? us_grouped_rows(call, &views[LIST]) : 0;
    if (rows > 0) {
        status = quantize(&own[OUT], out, &views[1 + call->operand_count], rows);
    }
    us_scratch_give_back(sums);
    return status;
}
