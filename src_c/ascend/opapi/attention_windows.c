/* Compressed windows of packed sequences: src_c/kernels/attention/windows.c. */
#include "ascend/common/op_memory.h"
#include "ascend/opapi/attention_parts.h"
#include "kernels/attention/windows.h"

static int64_t windows_of(IntArguments ends, int64_t sequence, int64_t length, int64_t stride)
{
    const int64_t rest = ends.values[sequence] - begin_of(ends, sequence) - length;
    return rest < 0 ? 0 : rest / stride + 1;
}

Shape op_shape_of_windows(OpCall *op, const Operand *x, IntArguments ends, int64_t length, int64_t stride)
{
    if (op_refused(op)) {
        return (Shape){0};
    }
    int64_t windows = 0;
    for (int64_t s = 0; s < ends.count; s++) {
        windows += windows_of(ends, s, length, stride);
    }
    return op_shape_of(3, (const int64_t[]){windows, op_size(x, 1), op_size(x, 2)});
}

/* The kernel's attributes: the first row of each window. */
static aclnnStatus plan(OpCall *op, Kernel *kernel, const Operand *compressed, int64_t length, IntArguments ends, int64_t stride,
                        Operands inputs, Operands outputs)
{
    const size_t size = op_refused(op) ? 0 : (size_t)op_size(compressed, 0) * sizeof(int64_t);
    int64_t *first = op_take(op, size);
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    int64_t *next = first;
    for (int64_t s = 0; s < ends.count; s++) {
        const int64_t windows = windows_of(ends, s, length, stride);
        for (int64_t i = 0; i < windows; i++) {
            *next++ = begin_of(ends, s) + i * stride;
        }
    }
    return op_plan_operands(op, kernel, first, size, inputs, outputs);
}

aclnnStatus op_windows(OpCall *op, const Operand *x, const Operand *weight, IntArguments ends, int64_t stride, const Operand *y)
{
    return plan(op, us_windows, y, op_size(weight, 0), ends, stride, OPERANDS(x, weight), OPERANDS(y));
}

aclnnStatus op_windows_backward(OpCall *op, const Operand *slopes, const Operand *x, const Operand *weight, IntArguments ends,
                                int64_t stride, const Operand *slopes_of_x, const Operand *slopes_of_weight)
{
    return plan(op, us_windows_backward, slopes, op_size(weight, 0), ends, stride, OPERANDS(slopes, x, weight),
                OPERANDS(slopes_of_x, slopes_of_weight));
}

bool op_is_cache_layout(const char *layout, bool paged)
{
    static const char *const names[] = {"TND", "", "BSH", "SBH", "BSND", "BNSD"};
    const size_t count = paged ? sizeof names / sizeof names[0] : 1;
    bool known = false;
    for (size_t i = 0; i < count && !known; i++) {
        known = strcmp(layout, names[i]) == 0;
    }
    return known;
}

bool op_holds_sequences(const Operand *x, const Operand *pages, IntArguments lengths)
{
    const bool paged = op_given(pages);
    int64_t room = paged ? op_size(pages, 1) * op_size(x, 1) : op_size(x, 0);
    bool fits = true;
    for (int64_t s = 0; s < lengths.count && fits; s++) {
        fits = lengths.values[s] >= 0 && lengths.values[s] <= room;
        room -= paged ? 0 : lengths.values[s];
    }
    return fits;
}

aclnnStatus op_cached_windows(OpCall *op, const Operand *x, const Operand *weight, const Operand *slots, const Operand *pages,
                              IntArguments lengths, int64_t stride, const Operand *y)
{
    const size_t size = (size_t)lengths.count * sizeof(int64_t);
    int64_t *first = op_take(op, size);
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const bool paged = op_given(pages);
    int64_t begin = 0;
    for (int64_t s = 0; s < lengths.count; s++) {
        const int64_t before = lengths.values[s] - op_size(weight, 0);
        first[s] = before >= 0 && before % stride == 0 ? begin + before : -1;
        begin += paged ? 0 : lengths.values[s];
    }
    const PlannedView views[] = {{x, VIEW_READ, NULL}, {weight, VIEW_READ, NULL}, {slots, VIEW_READ, NULL},
                                 {paged ? pages : NULL, VIEW_READ, NULL}, {y, VIEW_WRITE, NULL}};
    return op_plan_views(op, us_cached_windows, first, size, 5, views);
}
