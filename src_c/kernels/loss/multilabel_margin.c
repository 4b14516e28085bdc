#include "kernels/loss/multilabel_margin.h"

#include "kernels/linear.h"
#include "kernels/scratch.h"
#include "tensor/lane.h"
#include "tensor/parallel.h"

#include <stdatomic.h>
#include <string.h>

typedef struct Work {
    View x, target, is_target;
    double *losses;
    atomic_bool lacks_memory;
} Work;

/* How often each class is a label of the sample. */
static void count_labels(const View *target, int64_t sample, double *counts)
{
    const int64_t classes = target->shape[1], size = (int64_t)us_dtype_size(target->dtype);
    memset(counts, 0, (size_t)classes * sizeof *counts);
    for (int64_t i = 0; i < classes; i++) {
        int64_t label;
        const int64_t place = sample * target->strides[0] + i * target->strides[1];
        us_convert(&label, DTYPE_INT64, (const char *)target->data + place * size, target->dtype, 1);
        if (label < 0) {
            return;
        }
        if (label < classes) {
            counts[label] += 1;
        }
    }
}

static void run_sample(void *context, int64_t sample)
{
    Work *work = context;
    const int64_t classes = work->x.shape[1];
    double *x = us_scratch_array(classes, 2 * sizeof *x), *counts = x + classes, loss = 0;
    if (x == NULL) {
        atomic_store(&work->lacks_memory, true);
        return;
    }
    us_linear_load_double(&work->x, sample * classes, classes, x);
    count_labels(&work->target, sample, counts);
    for (int64_t j = 0; j < classes; j++) {
        for (int64_t i = 0; i < classes && counts[j] != 0; i++) {
            const double hinge = 1 - x[j] + x[i];
            loss += counts[i] != 0 || hinge < 0 ? 0 : counts[j] * hinge;
        }
    }
    for (int64_t i = 0; i < classes; i++) {
        counts[i] = counts[i] != 0 ? 1 : 0;
    }
    us_linear_store_double(&work->is_target, sample * classes, classes, counts);
    work->losses[sample] = loss / (double)classes;
    us_scratch_give_back(x);
}

KernelStatus us_multilabel_margin(const View *views, const void *attributes)
{
    const LossReduction reduction = ((const MultilabelMargin *)attributes)->reduction;
    const int64_t samples = views[0].shape[0];
    Work work = {.x = views[0], .target = views[1], .is_target = views[3]};
    work.losses = us_scratch_array(samples, sizeof *work.losses);
    if (work.losses == NULL) {
        return KERNEL_NO_MEMORY;
    }
    us_parallel(samples, run_sample, &work);
    if (reduction == LOSS_NONE) {
        us_linear_store_double(&views[2], 0, samples, work.losses);
    } else {
        double sum = 0;
        for (int64_t i = 0; i < samples; i++) {
            sum += work.losses[i];
        }
        sum = reduction == LOSS_MEAN ? sum / (double)samples : sum;
        us_linear_store_double(&views[2], 0, 1, &sum);
    }
    us_scratch_give_back(work.losses);
    return atomic_load(&work.lacks_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
