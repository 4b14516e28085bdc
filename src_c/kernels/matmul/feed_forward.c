#include "kernels/matmul/feed_forward.h"

#include "kernels/map/formulas.h"
#include "kernels/move/copy_view.h"
#include "kernels/quantize/quantize.h"
#include "kernels/scratch.h"

#include <string.h>

enum { LIST, X, FIRST, SECOND = FIRST + 4, Y = SECOND + 4, BETWEEN_SCALE, BETWEEN_OFFSET };
enum { WEIGHT_OF, SCALE_OF, OFFSET_OF, BIAS_OF }; /* of a layer */

/* ---- a layer ---- */

static GroupedProduct *layer_product(const FeedForward *call, int layer, int64_t rows)
{
    static Kernel *const kernels[] = {us_product, us_quantized_product, us_quantized_weight_product};
    const size_t sizes = (size_t)call->groups * sizeof(int64_t);
    GroupedProduct *product = us_scratch_take(sizeof *product + sizes);
    if (product != NULL) {
        memset(product, 0, sizeof *product);
        product->kernel = kernels[call->kind];
        product->how = call->how[layer];
        product->list = call->list;
        product->length = rows;
        product->groups = call->groups;
        product->sizes_known = call->sizes_known;
        memcpy(product->sizes, call->sizes, sizes);
    }
    return product;
}

static KernelStatus run_layer(const FeedForward *call, int layer, const View *views, const View *from, const View *to)
{
    GroupedProduct *product = layer_product(call, layer, from->shape[0]);
    if (product == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const View *own = views + (layer == 0 ? FIRST : SECOND), absent = us_view_absent();
    const View *bias = &own[BIAS_OF], *scale = &own[SCALE_OF], *offset = &own[OFFSET_OF];
    const View *const orders[][GROUPED_OPERANDS] = {
        {from, &own[WEIGHT_OF], bias, to, &absent, &absent, &absent, &absent, &absent},
        {from, &own[WEIGHT_OF], scale, to, bias, &absent, &absent, &absent, &absent},
        {from, &own[WEIGHT_OF], scale, to, offset, bias, &absent, &absent, &absent},
    };
    View given[1 + GROUPED_OPERANDS] = {views[LIST]};
    product->operand_count = GROUPED_OPERANDS;
    for (int i = 0; i < GROUPED_OPERANDS; i++) {
        given[1 + i] = *orders[call->kind][i];
        const bool rows = i == 0 || i == GROUPED_OUT;
        product->operands[i].cut = rows ? GROUP_ROWS : call->items ? GROUP_ITEM : GROUP_WHOLE;
    }
    const KernelStatus status = us_grouped_product(given, product);
    us_scratch_give_back(product);
    return status;
}

/* ---- between the layers ---- */

static View half_of(const View *view, int half)
{
    View part = *view;
    part.shape[1] /= 2;
    part.data = (char *)part.data + half * part.shape[1] * (int64_t)sizeof(float);
    return part;
}

/* In place; a gated one into its first half. */
static KernelStatus activate(const FeedForward *call, View *hidden)
{
    MapCall map = {.formula = call->activation, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .inputs = 1,
                   .outputs = 1, .items = 1};
    if (!call->gated) {
        return us_map((const View[]){*hidden, *hidden}, &map);
    }
    const View gate = half_of(hidden, 0), other = half_of(hidden, 1);
    const KernelStatus status = us_map((const View[]){gate, gate}, &map);
    map.formula = &us_map_mul;
    map.inputs = 2;
    *hidden = gate;
    return status != KERNEL_OK ? status : us_map((const View[]){gate, other, gate}, &map);
}

/* The rows of the group that follows `end`. */
static int64_t next_rows(const FeedForward *call, const View *list, int32_t group, int64_t end)
{
    const int64_t *number = call->list == GROUPS_FIXED ? &call->sizes[group]
                                                       : (const int64_t *)list->data + group * list->strides[0];
    return call->list == GROUPS_ENDS ? *number - end : *number;
}

/* Numbers of a group as rows of this shape. */
static View spread(const View *numbers, int32_t group, const View *rows)
{
    View view = *numbers;
    if (!us_view_is_absent(numbers)) {
        view.data = (char *)view.data + group * view.strides[0] * (int64_t)us_dtype_size(view.dtype);
        view.strides[0] = 0;
        view.strides[1] = view.shape[1] == 1 ? 0 : view.strides[1];
        memcpy(view.shape, rows->shape, 2 * sizeof *view.shape);
    }
    return view;
}

static View rows_from(const View *matrix, int64_t begin, int64_t count)
{
    View rows = *matrix;
    rows.data = (char *)rows.data + begin * rows.strides[0] * (int64_t)us_dtype_size(rows.dtype);
    rows.shape[0] = count;
    return rows;
}

static KernelStatus quantize_hidden(const FeedForward *call, const View *views, const View *hidden, const View *numbers)
{
    int64_t begin = 0;
    KernelStatus status = KERNEL_OK;
    for (int32_t group = 0; group < call->groups && status == KERNEL_OK; group++) {
        const int64_t count = next_rows(call, &views[LIST], group, begin);
        const View from = rows_from(hidden, begin, count), to = rows_from(numbers, begin, count);
        status = us_quantize((const View[]){from, spread(&views[BETWEEN_SCALE], group, &from),
                                            spread(&views[BETWEEN_OFFSET], group, &from), to},
                             &(Quantize){.rounding = ROUND_EVEN});
        begin += count;
    }
    return status;
}

static KernelStatus run_second(const FeedForward *call, const View *views, View hidden, const View *y)
{
    KernelStatus status = activate(call, &hidden);
    if (status != KERNEL_OK || call->kind != FEED_INTEGERS) {
        return status != KERNEL_OK ? status : run_layer(call, 1, views, &hidden, y);
    }
    void *space = us_scratch_take(us_scratch_bytes(us_view_elements(&hidden), 1) + 64);
    if (space == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const View numbers = us_view_contiguous(space, DTYPE_INT8, 2, hidden.shape);
    status = quantize_hidden(call, views, &hidden, &numbers);
    status = status != KERNEL_OK ? status : run_layer(call, 1, views, &numbers, y);
    us_scratch_give_back(space);
    return status;
}

/* ---- both ---- */

/* The rows of a view one after the other, in its own memory or in `space`. */
static View rows_view(const View *view, void *space)
{
    const int64_t width = view->shape[view->rank - 1], elements = us_view_elements(view);
    const int64_t shape[] = {width == 0 ? 0 : elements / width, width};
    return view->rank == 2 ? *view : us_view_contiguous(space != NULL ? space : view->data, view->dtype, 2, shape);
}

static size_t space_of(const View *view)
{
    const bool copied = view->rank != 2 && !us_view_is_contiguous(view);
    return copied ? us_scratch_bytes(us_view_elements(view), us_dtype_size(view->dtype)) : 0;
}

/* Every row belongs to a group. */
static KernelStatus check_rows(const FeedForward *call, const View *list, int64_t rows)
{
    int64_t end = 0;
    for (int32_t group = 0; group < call->groups; group++) {
        const int64_t count = next_rows(call, list, group, end);
        if (count < 0 || count > rows - end) {
            return us_kernel_fault("expert %d has %lld tokens from %lld on; there are %lld", (int)group,
                                   (long long)count, (long long)end, (long long)rows);
        }
        end += count;
    }
    return end == rows ? KERNEL_OK
                       : us_kernel_fault("the experts have %lld of %lld tokens", (long long)end, (long long)rows);
}

KernelStatus us_feed_forward(const View *views, const void *attributes)
{
    const FeedForward *call = attributes;
    const View *x = &views[X], *y = &views[Y], *weight = &views[FIRST + WEIGHT_OF];
    const size_t of_x = space_of(x), of_y = space_of(y);
    const bool packed_columns = call->kind == FEED_WEIGHTS && call->how[0].weight.packed == 1;
    const int64_t columns = weight->shape[weight->rank - 1] * (packed_columns ? 2 : 1);
    const int64_t hidden_shape[] = {us_view_elements(x) / x->shape[x->rank - 1], columns};
    const size_t of_hidden = us_scratch_bytes(us_scratch_count(hidden_shape[0], columns), sizeof(float));
    char *memory = us_scratch_take(of_x + of_y + of_hidden + 64), *cursor = memory;
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const View from = rows_view(x, of_x > 0 ? us_scratch_part(&cursor, of_x) : NULL);
    const View to = rows_view(y, of_y > 0 ? us_scratch_part(&cursor, of_y) : NULL);
    const View hidden = us_view_contiguous(cursor, DTYPE_FLOAT32, 2, hidden_shape);
    if (of_x > 0) {
        const View packed = us_view_contiguous(from.data, x->dtype, x->rank, x->shape);
        us_copy_view(&packed, x);
    }
    KernelStatus status = check_rows(call, &views[LIST], hidden_shape[0]);
    status = status != KERNEL_OK ? status : run_layer(call, 0, views, &from, &hidden);
    status = status != KERNEL_OK ? status : run_second(call, views, hidden, &to);
    if (of_y > 0 && status == KERNEL_OK) {
        const View packed = us_view_contiguous(to.data, y->dtype, y->rank, y->shape);
        us_copy_view(y, &packed);
    }
    us_scratch_give_back(memory);
    return status;
}
