#include "kernels/map/item.h"
#include "kernels/move/past.h"

#include <stdlib.h>
#include <string.h>

static bool is_16_bit_float(DType dtype)
{
    return dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16;
}

static DType real_dtype(DType dtype)
{
    return dtype == DTYPE_COMPLEX64 ? DTYPE_FLOAT32 : dtype == DTYPE_COMPLEX128 ? DTYPE_FLOAT64 : dtype;
}

/* What reads and writes 16-bit floats itself pays where operands have that type. */
static bool converts_itself(const MapCall *call, const View *views)
{
    bool found = false;
    for (int k = 0; k < call->formula->inputs; k++) {
        found |= views[k].dtype == call->compute;
    }
    return found && (call->result == call->compute || call->result == DTYPE_BOOL);
}

/* Where all operands have one narrow integer type (or are the truth of a test), and no number may be wider. */
static bool stays_narrow(const MapCall *call, const View *views)
{
    const MapFormula *formula = call->formula;
    const DType result = formula->result == MAP_BOOL ? DTYPE_BOOL : call->compute;
    bool fits = call->result == result && (call->compute != DTYPE_BOOL || formula->numbers == 0);
    for (int k = 0; k < formula->inputs; k++) {
        fits &= views[k].dtype == call->compute;
    }
    for (int k = 0; k < formula->outputs; k++) {
        fits &= views[call->inputs + k].dtype == result;
    }
    return fits;
}

/* The body that the compute type has of its own; NULL: it has none, or that does not fit. */
static MapBody *own_body(const MapCall *call, const View *views)
{
    const int body = us_own_body(call->compute);
    if (body == 0 || call->blend.wanted) {
        return NULL;
    }
    const bool fits = is_16_bit_float(call->compute) ? converts_itself(call, views) : stays_narrow(call, views);
    return fits ? call->formula->bodies()[body] : NULL;
}

/* The axis that is innermost in the memory of an operand where the last one is not; -1: all have the same order. */
static int32_t crossing_axis(const MapItem *item)
{
    const Axes *axes = &item->axes;
    const int32_t last = axes->rank - 1;
    for (int k = 0; k < item->count; k++) {
        for (int32_t axis = 0; axis < last; axis++) {
            const int64_t stride = llabs(axes->strides[k][axis]);
            const bool is_inner = stride != 0 && stride < llabs(axes->strides[k][last]);
            if (is_inner && axes->shape[axis] % MAP_BLOCK == 0 && axes->shape[last] % MAP_BLOCK == 0) {
                return axis;
            }
        }
    }
    return -1;
}

/* Splits two axes so that the innermost ones are blocks of MAP_BLOCK x MAP_BLOCK, which fit in a tile: what is read
 * across the memory of an operand is used before it leaves the cache. */
static void walk_in_blocks(MapItem *item)
{
    Axes *axes = &item->axes;
    const int32_t crossing = crossing_axis(item), last = axes->rank - 1;
    item->in_blocks = crossing >= 0 && axes->rank + 2 <= VIEW_RANK_LIMIT;
    if (!item->in_blocks) {
        return;
    }
    axes->shape[last + 1] = axes->shape[last + 2] = MAP_BLOCK;
    axes->shape[crossing] /= MAP_BLOCK;
    axes->shape[last] /= MAP_BLOCK;
    for (int k = 0; k < item->count; k++) {
        axes->strides[k][last + 1] = axes->strides[k][crossing];
        axes->strides[k][last + 2] = axes->strides[k][last];
        axes->strides[k][crossing] *= MAP_BLOCK;
        axes->strides[k][last] *= MAP_BLOCK;
    }
    axes->rank += 2;
}

/* Whether every operand is row-major in the output's shape, or a scalar. */
static bool is_plain(const MapItem *item, const View *const *views)
{
    const View *out = views[item->inputs];
    for (int k = 0; k < item->count; k++) {
        const bool is_absent = us_view_is_absent(views[k]);
        if (!is_absent && !(us_view_same_shape(views[k], out) && us_view_is_contiguous(views[k]))) {
            return false;
        }
    }
    return true;
}

/* Axes in the order of the first output's memory, neighbours merged where every operand allows it. */
static void lay_out(MapItem *item, const View *const *views)
{
    const View *out = views[item->inputs];
    Axes *axes = &item->axes;
    if (is_plain(item, views)) {
        item->in_blocks = false;
        axes->rank = 1;
        axes->shape[0] = item->elements;
        for (int k = 0; k < item->count; k++) {
            axes->strides[k][0] = us_view_is_absent(views[k]) ? 0 : 1;
        }
        return;
    }
    int32_t order[VIEW_RANK_LIMIT];
    const int32_t rank = us_axes_order(out, UINT32_MAX, true, order);
    axes->rank = 0;
    for (int32_t i = 0; i < rank; i++) {
        int64_t strides[MAP_OPERANDS];
        for (int k = 0; k < item->count; k++) {
            const int32_t own = order[i] - (out->rank - views[k]->rank);
            strides[k] = own < 0 || views[k]->shape[own] == 1 ? 0 : views[k]->strides[own];
        }
        us_axes_append(axes, out->shape[order[i]], strides, item->count);
    }
    us_axes_complete(axes, item->count);
    walk_in_blocks(item);
}

static bool is_flat(const Axes *axes, int k)
{
    int64_t expected = 1;
    for (int32_t axis = axes->rank - 1; axis >= 0; axis--) {
        if (axes->strides[k][axis] != expected) {
            return false;
        }
        expected *= axes->shape[axis];
    }
    return true;
}

static bool is_scalar(const Axes *axes, int k)
{
    for (int32_t axis = 0; axis < axes->rank; axis++) {
        if (axes->strides[k][axis] != 0) {
            return false;
        }
    }
    return true;
}

/* As the compute type holds it, in every form that a lane may ask for. */
static Number read_number(const View *view, DType compute)
{
    _Alignas(16) char rounded[16];
    double parts[2];
    Number number = {0};
    us_convert(rounded, compute, view->data, view->dtype, 1);
    us_convert(parts, DTYPE_COMPLEX128, rounded, compute, 1);
    number.real = parts[0];
    number.imaginary = parts[1];
    us_convert(&number.integer, compute == DTYPE_UINT64 ? DTYPE_UINT64 : DTYPE_INT64, rounded, compute, 1);
    return number;
}

/* The formula's numbers, then those of the absent inputs. */
static void take_numbers(MapItem *item, const View *views, int64_t index)
{
    const MapCall *call = item->call;
    item->numbers = call->numbers;
    if (call->number_count == 0 && call->inputs == item->inputs) {
        return;
    }
    item->numbers = memcpy(item->own, call->numbers, sizeof call->numbers);
    if (call->number_count > 0) {
        const Number *each = ((const MapListCall *)(const void *)call)->each + index * call->number_count;
        memcpy(item->own, each, (size_t)call->number_count * sizeof *each);
    }
    for (int k = item->inputs; k < call->inputs; k++) {
        item->own[k - item->inputs] = read_number(&views[k], call->compute);
    }
}

/* By runs, if they are long enough for what that saves, or all elements one behind the other. */
static void choose_walk(MapItem *item)
{
    const int32_t last = item->axes.rank - 1;
    int apart = 0; /* operands whose elements are not all neighbours; outputs, which are written too, count twice */
    for (int k = 0; k < item->count; k++) {
        apart += item->operands[k].is_flat || item->operands[k].is_scalar ? 0 : k < item->inputs ? 1 : 2;
    }
    item->by_run = last > 0 && item->axes.shape[last] >= (apart == 1 ? MAP_LONG_RUN_OF_ONE : MAP_LONG_RUN);
    for (int k = 0; k < item->count; k++) {
        MapOperand *operand = &item->operands[k];
        const int64_t stride = item->axes.strides[k][last];
        operand->is_direct = operand->in_place && !operand->is_scalar && (operand->is_flat || (item->by_run && stride == 1));
        operand->is_constant = item->by_run && k < item->inputs && !operand->is_scalar && stride == 0;
    }
}

/* All outputs begin at the same place in a line, so that what leads to the first whole line leads all of them there. */
static bool goes_past(const MapItem *item)
{
    bool past = item->blend == NULL;
    for (int k = item->inputs; k < item->count; k++) {
        const MapOperand *output = &item->operands[k];
        past &= output->is_direct && output->is_flat && item->elements >= PAST_MAP_BYTES / output->size &&
                (uintptr_t)output->data % (uintptr_t)output->size == 0 && output->size == item->operands[item->inputs].size &&
                us_map_in_line(output, 0) == us_map_in_line(&item->operands[item->inputs], 0);
        for (int input = 0; input < item->inputs; input++) {
            past &= item->operands[input].data != output->data;
        }
    }
    return past;
}

void us_map_prepare(MapItem *item, const MapCall *call, const View *views, int64_t index)
{
    const MapFormula *formula = call->formula;
    const View *operands[MAP_OPERANDS];
    item->call = call;
    item->inputs = formula->inputs;
    item->count = formula->inputs + formula->outputs;
    item->lane = us_lane_of(call->compute);
    item->body = own_body(call, views);
    const DType array = item->body != NULL ? call->compute : us_lane_dtype(item->lane);
    item->body = item->body != NULL ? item->body : formula->bodies()[item->lane];
    item->blend = call->blend.wanted ? us_map_blend_body(call->compute) : NULL;
    const DType results[] = {[MAP_SAME] = call->blend.wanted ? call->compute : array, [MAP_BOOL] = DTYPE_BOOL,
                             [MAP_REAL] = real_dtype(array)};
    size_t widest = 1;
    for (int k = 0; k < item->count; k++) {
        const bool is_input = k < item->inputs;
        const View *view = &views[is_input ? k : call->inputs + k - item->inputs];
        MapOperand *operand = &item->operands[k];
        operands[k] = view;
        *operand = (MapOperand){.data = view->data, .dtype = view->dtype, .size = (int64_t)us_dtype_size(view->dtype)};
        operand->array = is_input ? array : results[formula->result];
        operand->in_place = view->dtype == operand->array &&
                            (is_input ? call->compute : call->result) == operand->array;
        widest = us_dtype_size(view->dtype) > widest ? us_dtype_size(view->dtype) : widest;
    }
    widest = us_dtype_size(us_lane_dtype(item->lane)) > widest ? us_dtype_size(us_lane_dtype(item->lane)) : widest;
    const int64_t fitting = MAP_TILE_BYTES / (int64_t)widest;
    item->tile = fitting < MAP_TILE_ELEMENTS ? fitting : MAP_TILE_ELEMENTS;
    item->elements = us_view_elements(operands[item->inputs]);
    lay_out(item, operands);
    take_numbers(item, views, index);
    for (int k = 0; k < item->count; k++) {
        MapOperand *operand = &item->operands[k];
        operand->is_flat = is_flat(&item->axes, k);
        operand->is_scalar = k < item->inputs && (us_view_is_absent(operands[k]) || is_scalar(&item->axes, k));
    }
    choose_walk(item);
    item->past = goes_past(item);
}
