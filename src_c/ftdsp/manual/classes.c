/* Losses by class and their gradients (ft-dsp-manual 4). */
#include "ftdsp/manual.h"
#include "ftdsp/number.h"
#include "kernels/softmax/row_losses.h"
#include "tensor/convert.h"

#include <string.h>

enum { LOSS_NONE, LOSS_SUM, LOSS_MEAN }; /* as nllloss */

static void check_labels(FtCall *call, const int *labels, int64_t count, int64_t classes)
{
    for (int64_t i = 0; ft_ok(call) && i < count; i++) {
        ft_require(call, labels[i] >= 0 && labels[i] < classes, "labels", "range", FT_BAD_ATTRIBUTE,
                   "label %lld is %d of %lld classes", (long long)i, labels[i], (long long)classes);
    }
}

void ft_op_nlllossgrad(FtCall *call, const FtNlllossgrad *a)
{
    const bool each = a->reduction_type == LOSS_NONE;
    const int *labels = a->labels;
    const int64_t count = (int64_t)a->batch * a->class_num, slopes = each || a->batch == 0 ? a->batch : 1;
    ft_operand(call, "loss_grad", a->loss_grad, slopes, call->dtype);
    ft_apart(call, "logits_grad", a->logits_grad, ft_bytes(count, call->dtype), "loss_grad", a->loss_grad,
             ft_bytes(slopes, call->dtype));
    check_labels(call, labels, a->batch, a->class_num);
    if (!ft_ok(call)) {
        return;
    }
    ft_clear(a->logits_grad, count, call->dtype);
    for (int64_t i = 0; i < a->batch; i++) {
        double slope = -ft_number(a->loss_grad, call->dtype, each ? i : 0) * ft_number(a->weight, call->dtype, labels[i]);
        slope /= a->reduction_type == LOSS_MEAN ? ft_number(a->total_weight, call->dtype, 0) : 1;
        ft_set_number(a->logits_grad, call->dtype, i * a->class_num + labels[i], slope);
    }
}

static void store_mean(void *to, DType dtype, double sum, int64_t count)
{
    const double mean = count == 0 ? 0 : sum / (double)count;
    us_store_double(to, dtype, 1, &mean, 1);
}

void ft_op_softmax_cross_entropy_with_logits(FtCall *call, const FtSoftmaxCrossEntropyWithLogits *a)
{
    const int64_t count = (int64_t)a->batch_size * a->num_of_classes;
    void *grads = a->need_grads ? a->grads : NULL;
    if (a->need_grads) {
        const int64_t bytes = ft_bytes(count, a->S);
        ft_operand(call, "grads", grads, count, a->S);
        ft_apart(call, "grads", grads, bytes, "logits", a->logits, ft_bytes(count, call->dtype));
        ft_apart(call, "grads", grads, bytes, "labels", a->labels, ft_bytes(count, call->dtype));
        ft_apart(call, "grads", grads, bytes, "probs", a->probs, bytes);
        ft_apart(call, "output", a->output, ft_bytes(1, a->S), "grads", grads, bytes);
        ft_apart(call, "sum_data", a->sum_data, ft_bytes(a->batch_size, a->S), "grads", grads, bytes);
    }
    if (ft_ok(call)) {
        RowLosses work = {.logits = a->logits, .labels = a->labels, .dtype = call->dtype, .label_dtype = call->dtype,
                          .result = a->S, .outer = a->batch_size, .classes = a->num_of_classes, .inner = 1,
                          .probabilities = a->probs, .gradients = grads};
        us_row_losses(&work);
        store_mean(a->output, a->S, work.sum, a->batch_size);
    }
}

void ft_op_sparse_softmax_cross_entropy_with_logits(FtCall *call, const FtSparseSoftmaxCrossEntropyWithLogits *a)
{
    const int64_t rows = us_shape_elements(2, (int64_t[]){(int64_t)a->outter_size, (int64_t)a->inner_size});
    const int64_t classes = (int64_t)a->axis_size, count = rows * classes;
    ft_require(call, rows == (int64_t)a->batch_size && a->axis_size == a->number_of_classes, "batch_size", "mismatch",
               FT_BAD_SIZE, "%llu samples of %llu classes, but %lld rows of %lld", (unsigned long long)a->batch_size,
               (unsigned long long)a->number_of_classes, (long long)rows, (long long)classes);
    if (!ft_ok(call)) {
        return;
    }
    void *output = a->is_grad ? a->output : NULL;
    if (a->is_grad) {
        const int64_t bytes = ft_bytes(count, call->dtype), row_bytes = ft_bytes(rows, call->dtype);
        ft_operand(call, "output", output, count, call->dtype);
        ft_apart(call, "output", output, bytes, "input", a->input, bytes);
        ft_apart(call, "output", output, bytes, "losses", a->losses, ft_bytes(1, call->dtype));
        ft_apart(call, "output", output, bytes, "sum_data", a->sum_data, row_bytes);
        ft_apart(call, "output", output, bytes, "labels", a->labels, ft_bytes(rows, DTYPE_INT32));
        ft_apart(call, "partial_losses", a->partial_losses, row_bytes, "output", output, bytes);
    }
    check_labels(call, a->labels, rows, classes);
    if (ft_ok(call)) {
        RowLosses work = {.logits = a->input, .class_labels = a->labels, .dtype = call->dtype, .result = call->dtype,
                          .outer = (int64_t)a->outter_size, .classes = classes, .inner = (int64_t)a->inner_size,
                          .gradients = output, .losses = a->partial_losses};
        us_row_losses(&work);
        store_mean(a->losses, call->dtype, work.sum, rows);
    }
}
