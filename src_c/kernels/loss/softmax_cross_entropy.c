#include "kernels/loss/softmax_cross_entropy.h"

#include "kernels/linear.h"
#include "kernels/scratch.h"
#include "kernels/softmax/row_losses.h"
#include "tensor/parallel.h"

#include <stdatomic.h>

typedef struct Work {
    const View *logits, *labels, *losses, *gradients;
    atomic_bool lacks_memory;
} Work;

static void run_row(void *context, int64_t row)
{
    Work *work = context;
    const int64_t classes = work->logits->shape[1];
    double *logits = us_scratch_array(classes, 3 * sizeof *logits), loss;
    if (logits == NULL) {
        atomic_store(&work->lacks_memory, true);
        return;
    }
    double *labels = logits + classes, *gradients = labels + classes;
    us_linear_load_double(work->logits, row * classes, classes, logits);
    us_linear_load_double(work->labels, row * classes, classes, labels);
    RowLosses losses = {.logits = logits, .labels = labels, .dtype = DTYPE_FLOAT64, .label_dtype = DTYPE_FLOAT64,
                        .result = DTYPE_FLOAT64, .outer = 1, .classes = classes, .inner = 1,
                        .gradients = gradients, .losses = &loss};
    us_row_losses(&losses);
    us_linear_store_double(work->losses, row, 1, &loss);
    us_linear_store_double(work->gradients, row * classes, classes, gradients);
    us_scratch_give_back(logits);
}

KernelStatus us_softmax_cross_entropy(const View *views, const void *attributes)
{
    (void)attributes;
    Work work = {.logits = &views[0], .labels = &views[1], .losses = &views[2], .gradients = &views[3]};
    us_parallel(views[0].shape[1] > 0 ? views[0].shape[0] : 0, run_row, &work);
    return atomic_load(&work.lacks_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
