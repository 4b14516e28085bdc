#include "kernels/matmul/grouped.h"

#include "kernels/matmul/activated.h"

#include <string.h>

typedef struct Group {
    int64_t number, item, begin, size;
} Group;

/* ---- the list ---- */

static int64_t list_element(const View *list, int64_t row, int64_t column)
{
    const int64_t across = list->rank == 2 ? column * list->strides[1] : 0;
    return ((const int64_t *)list->data)[row * list->strides[0] + across];
}

/* -1 for one that falls, by however much. */
static int64_t size_until(int64_t end, int64_t begin)
{
    return end < begin ? -1 : end - begin;
}

static KernelStatus list_fault(const Group *group, const GroupedProduct *call)
{
    return us_kernel_fault("group %lld is item %lld and has %lld of an axis of %lld, from %lld on",
                           (long long)group->number, (long long)group->item, (long long)group->size,
                           (long long)call->length, (long long)group->begin);
}

/* The group that follows this one; the first one follows {.number = -1}. */
static KernelStatus next_group(const GroupedProduct *call, const View *list, Group *group)
{
    group->begin += group->size;
    const int64_t number = group->item = ++group->number;
    switch (call->list) {
    case GROUPS_FIXED: group->size = call->sizes[number]; break;
    case GROUPS_ENDS: group->size = size_until(list_element(list, number, 0), group->begin); break;
    case GROUPS_SIZES: group->size = list_element(list, number, 0); break;
    case GROUPS_PAIRS:
        group->item = list_element(list, number, 0);
        group->size = list_element(list, number, 1);
        break;
    }
    const bool is_item = group->item >= 0 && group->item < call->groups;
    const bool fits = is_item && group->size >= 0 && group->size <= call->length - group->begin &&
                      (!call->sizes_known || group->size == call->sizes[group->item]);
    return fits ? KERNEL_OK : list_fault(group, call);
}

static KernelStatus check_list(const GroupedProduct *call, const View *list)
{
    Group group = {.number = -1};
    KernelStatus status = KERNEL_OK;
    for (int32_t i = 0; i < call->groups && status == KERNEL_OK; i++) {
        status = next_group(call, list, &group);
    }
    return status;
}

int64_t us_grouped_rows(const GroupedProduct *call, const View *list)
{
    Group group = {.number = -1};
    for (int32_t i = 0; i < call->groups; i++) {
        next_group(call, list, &group);
    }
    return group.begin + group.size;
}

/* ---- a group's product ---- */

static void move_to(View *view, int64_t elements)
{
    view->data = (char *)view->data + elements * (int64_t)us_dtype_size(view->dtype);
}

static View part_of(const View *whole, GroupCut cut, const Group *group)
{
    View part = *whole;
    if (us_view_is_absent(whole) || cut == GROUP_WHOLE) {
        return part;
    }
    if (cut == GROUP_ITEM) {
        move_to(&part, group->item * part.strides[0]);
        return us_view_remove_axis(part, 0);
    }
    const int32_t axis = cut == GROUP_ROWS ? 0 : 1;
    move_to(&part, group->begin * part.strides[axis]);
    part.shape[axis] = group->size;
    return part;
}

static KernelStatus multiply(const GroupedProduct *call, View *operands)
{
    View *out = &operands[GROUPED_OUT];
    if (call->activation == NULL) {
        return call->kernel(operands, &call->how);
    }
    return us_activate_result(call->kernel, &call->how, operands, out, call->activation);
}

/* Matrices of the axes in front, one after the other. */
static KernelStatus multiply_batch(const GroupedProduct *call, const View *operands)
{
    View own[GROUPED_OPERANDS];
    memcpy(own, operands, (size_t)call->operand_count * sizeof *own);
    if (own[GROUPED_OUT].rank == 2) {
        return multiply(call, own);
    }
    KernelStatus status = KERNEL_OK;
    for (int64_t item = 0; item < operands[0].shape[0] && status == KERNEL_OK; item++) {
        const Group group = {.item = item};
        own[0] = part_of(&operands[0], GROUP_ITEM, &group);
        own[GROUPED_OUT] = part_of(&operands[GROUPED_OUT], GROUP_ITEM, &group);
        status = multiply_batch(call, own);
    }
    return status;
}

/* Its part of every operand. */
static KernelStatus multiply_group(const GroupedProduct *call, const View *views, const Group *group)
{
    View operands[GROUPED_OPERANDS];
    const View *next = views + 1;
    for (int32_t k = 0; k < call->operand_count; k++) {
        const GroupedOperand *operand = &call->operands[k];
        operands[k] = part_of(&next[operand->each ? group->item : 0], operand->cut, group);
        next += operand->each ? call->groups : 1;
    }
    return us_view_is_empty(&operands[GROUPED_OUT]) ? KERNEL_OK : multiply_batch(call, operands);
}

static bool has_part(const GroupedProduct *call, const View *list, int64_t item)
{
    bool found = false;
    for (int32_t i = 0; i < call->groups && !found; i++) {
        found = list_element(list, i, 0) == item && list_element(list, i, 1) > 0;
    }
    return found;
}

/* Items that no pair gives a part have products of nothing. A pair of size 0 does not name one: those that fill up the list
 * behind the pairs that count are [0, 0], and item 0 may have a part. */
static KernelStatus multiply_rest(const GroupedProduct *call, const View *views)
{
    KernelStatus status = KERNEL_OK;
    for (int32_t item = 0; item < call->groups && status == KERNEL_OK; item++) {
        if (!has_part(call, views, item)) {
            status = multiply_group(call, views, &(Group){.item = item});
        }
    }
    return status;
}

KernelStatus us_grouped_product(const View *views, const void *attributes)
{
    const GroupedProduct *call = attributes;
    const bool rest = call->list == GROUPS_PAIRS && call->operands[GROUPED_OUT].cut == GROUP_ITEM && !call->sizes_known;
    KernelStatus status = check_list(call, views);
    Group group = {.number = -1};
    for (int32_t i = 0; i < call->groups && status == KERNEL_OK; i++) {
        next_group(call, views, &group);
        status = rest && group.size == 0 ? KERNEL_OK : multiply_group(call, views, &group);
    }
    return rest && status == KERNEL_OK ? multiply_rest(call, views) : status;
}
