#include "kernels/loss/ctc_costs.h"

#include "kernels/loss/ctc.h"
#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"

#include <string.h>

enum { ALIGNMENT = 64 };

typedef struct Sequences {
    const int32_t *label_counts, *step_counts, *labels;
    int64_t labels_there;
} Sequences;

size_t us_ctc_costs_memory(int64_t steps, int64_t batch, int64_t classes)
{
    return us_scratch_bytes(us_scratch_count(steps * batch, classes), sizeof(double)) + ALIGNMENT;
}

static Sequences sequences_of(const CtcCosts *call, const View *views, int64_t batch)
{
    if (us_view_is_absent(&views[4])) {
        return (Sequences){call->numbers, call->numbers + batch, call->numbers + 2 * batch, INT64_MAX};
    }
    return (Sequences){views[5].data, views[6].data, views[4].data, us_view_elements(&views[4])};
}

static KernelStatus check_counts(const CtcCosts *call, const Sequences *sequences, int64_t steps, int64_t batch)
{
    int64_t labels = 0;
    for (int64_t i = 0; i < batch; i++) {
        if (sequences->label_counts[i] < 0 || sequences->label_counts[i] > call->longest) {
            return us_kernel_fault("labelLengths[%lld] is %d, allowed are 0 to %d", (long long)i,
                                   sequences->label_counts[i], call->longest);
        }
        if (sequences->step_counts[i] < 0 || sequences->step_counts[i] > steps) {
            return us_kernel_fault("inputLengths[%lld] is %d, there are %lld steps", (long long)i,
                                   sequences->step_counts[i], (long long)steps);
        }
        labels += sequences->label_counts[i];
    }
    return labels <= sequences->labels_there
               ? KERNEL_OK
               : us_kernel_fault("labelLengths has %lld labels in all, labels holds %lld", (long long)labels,
                                 (long long)sequences->labels_there);
}

typedef struct Logarithms {
    const View *values;
    double *to;
    int64_t classes;
    bool softmax;
} Logarithms;

/* A row's logarithms of probabilities. */
static void take_logarithms(void *context, int64_t row)
{
    const Logarithms *work = context;
    double *to = work->to + row * work->classes;
    const DType dtype = work->values->dtype;
    us_load_double(to, (const char *)work->values->data + (size_t)(row * work->classes) * us_dtype_size(dtype), dtype, 1,
                   work->classes);
    double top = -INFINITY, sum = 0;
    for (int64_t k = 0; k < work->classes; k++) {
        top = to[k] > top ? to[k] : top;
    }
    for (int64_t k = 0; k < work->classes && work->softmax; k++) {
        sum += exp_double(to[k] - top);
    }
    const double shift = work->softmax ? top + log_double(sum) : 0;
    for (int64_t k = 0; k < work->classes; k++) {
        to[k] = work->softmax ? to[k] - shift : log_double(to[k]);
    }
}

static Ctc *call_of(const Sequences *sequences, int64_t batch)
{
    Ctc *ctc = us_scratch_take(sizeof *ctc + us_scratch_bytes(batch, 2 * sizeof ctc->lengths[0]));
    if (ctc != NULL) {
        ctc->blank = 0;
        ctc->batch = batch;
        for (int64_t i = 0; i < batch; i++) {
            ctc->lengths[i] = sequences->step_counts[i];
            ctc->lengths[batch + i] = sequences->label_counts[i];
        }
    }
    return ctc;
}

KernelStatus us_ctc_costs(const View *views, const void *attributes)
{
    double one = 1;
    const CtcCosts *call = attributes;
    const View *values = &views[0];
    const int64_t batch = values->shape[1], classes = values->shape[2];
    const Sequences sequences = sequences_of(call, views, batch);
    KernelStatus status = check_counts(call, &sequences, values->shape[0], batch);
    Ctc *ctc = status == KERNEL_OK ? call_of(&sequences, batch) : NULL;
    if (ctc == NULL) {
        return status == KERNEL_OK ? KERNEL_NO_MEMORY : status;
    }
    char *memory = (char *)(((uintptr_t)views[3].data + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    Logarithms work = {values, (double *)(void *)memory, classes, call->softmax};
    run_pieces(values->shape[0] * batch, us_view_elements(values), take_logarithms, &work);
    const View logarithms = us_view_contiguous(work.to, DTYPE_FLOAT64, 3, values->shape);
    int64_t labels = 0;
    for (int64_t i = 0; i < batch; i++) {
        labels += sequences.label_counts[i];
    }
    const View targets = us_view_contiguous((void *)(uintptr_t)sequences.labels, DTYPE_INT32, 1, &labels);
    const View forward[] = {logarithms, targets, views[1], us_view_absent()};
    ctc->zero_infinity = false;
    status = us_ctc_loss(forward, ctc);
    if (status == KERNEL_OK && !us_view_is_absent(&views[2])) {
        View slope = us_view_contiguous(&one, DTYPE_FLOAT64, 1, &batch);
        slope.strides[0] = 0;
        const View backward[] = {slope, logarithms, targets, views[2]};
        ctc->zero_infinity = call->drops_nan;
        status = us_ctc_loss_backward(backward, ctc);
    }
    us_scratch_give_back(ctc);
    return status;
}
