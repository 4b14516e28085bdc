/* Negative log likelihood loss (ft-dsp 3.3, 4). */
#include "ftdsp/number.h"
#include "ftdsp/operators.h"
#include "ftdsp/shape.h"

enum { REDUCTION_NONE, REDUCTION_SUM, REDUCTION_MEAN }; /* this operator's own numbering */

typedef struct Work {
    const void *log_probs, *weight;
    const int *labels;
    void *loss;
    DType dtype, loss_dtype;
    int64_t class_num;
} Work;

static double sample_loss(const Work *work, int64_t sample)
{
    const int64_t label = work->labels[sample];
    return -ft_number(work->weight, work->dtype, label) *
           ft_number(work->log_probs, work->dtype, sample * work->class_num + label);
}

static void run_each(void *context, int64_t begin, int64_t end)
{
    const Work *work = context;
    for (; begin < end; begin++) {
        ft_set_number(work->loss, work->loss_dtype, begin, sample_loss(work, begin));
    }
}

static void check_labels(FtCall *call, const int *labels, int batch_size, int class_num)
{
    for (int i = 0; ft_ok(call) && i < batch_size; i++) {
        ft_require(call, labels[i] >= 0 && labels[i] < class_num, "labels", "range", FT_BAD_SIZE,
                   "labels[%d] is %d; there are %d classes", i, labels[i], class_num);
    }
}

static void check_operands(FtCall *call, const Work *work, int64_t batch_size, int64_t loss_count, void *total_weight)
{
    const int64_t size = (int64_t)us_dtype_size(call->dtype), loss_size = (int64_t)us_dtype_size(work->loss_dtype);
    const struct {
        const char *name;
        const void *data;
        int64_t count, size;
        DType dtype;
    } operands[] = {
        {"log_probs", work->log_probs, batch_size * work->class_num, size, call->dtype},
        {"labels", work->labels, batch_size, sizeof(int), DTYPE_INT32},
        {"weight", work->weight, work->class_num, size, call->dtype},
        {"loss", work->loss, loss_count, loss_size, work->loss_dtype},
        {"total_weight", total_weight, 1, loss_size, work->loss_dtype},
    };
    for (int k = 0; k < 5; k++) {
        ft_operand(call, operands[k].name, operands[k].data, operands[k].count, operands[k].dtype);
    }
    for (int output = 3; output < 5; output++) {
        for (int other = 0; other < output; other++) {
            ft_apart(call, operands[output].name, operands[output].data, operands[output].count * operands[output].size,
                     operands[other].name, operands[other].data, operands[other].count * operands[other].size);
        }
    }
}

void ft_nllloss(FtCall *call, const void *log_probs, const int *labels, const void *weight, void *loss,
                void *total_weight, int batch_size, int class_num, int reduction_type)
{
    ft_length(call, "batch_size", batch_size);
    ft_require(call, class_num >= 1, "class_num", "range", FT_BAD_SIZE, "class_num is %d", class_num);
    ft_require(call, (int64_t)batch_size * class_num <= FT_ELEMENT_LIMIT, "class_num", "overflow", FT_BAD_SIZE,
               "%d samples of %d classes are more elements than any memory holds", batch_size, class_num);
    ft_require(call, reduction_type >= REDUCTION_NONE && reduction_type <= REDUCTION_MEAN, "reduction_type", "range",
               FT_BAD_ATTRIBUTE, "reduction_type is %d; 0 is none, 1 sum, 2 mean", reduction_type);
    if (!ft_ok(call) || batch_size == 0) {
        return;
    }
    const DType loss_dtype = call->dtype == DTYPE_INT8 ? DTYPE_INT32 : call->dtype;
    Work work = {log_probs, weight, labels, loss, call->dtype, loss_dtype, class_num};
    check_operands(call, &work, batch_size, reduction_type == REDUCTION_NONE ? batch_size : 1, total_weight);
    check_labels(call, labels, batch_size, class_num);
    if (!ft_ok(call)) {
        return;
    }
    double sum = 0, total = 0;
    for (int i = 0; i < batch_size; i++) { /* in order, on one core: the mask does not change the sums */
        total += ft_number(weight, work.dtype, labels[i]);
        sum += reduction_type == REDUCTION_NONE ? 0 : sample_loss(&work, i);
    }
    if (reduction_type == REDUCTION_NONE) {
        ft_split(call, batch_size, 1024, run_each, &work);
    } else {
        ft_set_number(loss, loss_dtype, 0, reduction_type == REDUCTION_MEAN ? sum / total : sum);
    }
    ft_set_number(total_weight, loss_dtype, 0, total);
}
