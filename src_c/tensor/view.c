#include "tensor/view.h"

#include <stdio.h>
#include <string.h>

extern inline size_t us_dtype_size(DType dtype);
extern inline bool us_view_is_absent(const View *view);
extern inline int64_t us_shape_elements(int32_t rank, const int64_t *shape);
extern inline int64_t us_view_elements(const View *view);
extern inline bool us_view_is_empty(const View *view);
extern inline bool us_view_is_contiguous(const View *view);

static const char *const names[DTYPE_COUNT] = {
    [DTYPE_NONE] = "none",
    [DTYPE_FLOAT32] = "float32",
    [DTYPE_FLOAT16] = "float16",
    [DTYPE_BFLOAT16] = "bfloat16",
    [DTYPE_FLOAT64] = "float64",
    [DTYPE_INT8] = "int8",
    [DTYPE_INT16] = "int16",
    [DTYPE_INT32] = "int32",
    [DTYPE_INT64] = "int64",
    [DTYPE_UINT8] = "uint8",
    [DTYPE_UINT16] = "uint16",
    [DTYPE_UINT32] = "uint32",
    [DTYPE_UINT64] = "uint64",
    [DTYPE_BOOL] = "bool",
    [DTYPE_COMPLEX64] = "complex64",
    [DTYPE_COMPLEX128] = "complex128",
};

const char *us_dtype_name(DType dtype)
{
    return (unsigned)dtype < DTYPE_COUNT ? names[dtype] : "none";
}

bool us_dtype_is_float(DType dtype)
{
    return dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16 || dtype == DTYPE_FLOAT64;
}

View us_view_absent(void)
{
    View view;
    memset(&view, 0, sizeof view);
    return view;
}

View us_view_contiguous(void *data, DType dtype, int32_t rank, const int64_t *shape)
{
    View view = us_view_absent();
    view.data = data;
    view.dtype = dtype;
    view.rank = rank;
    if (rank > 0) {
        memcpy(view.shape, shape, (size_t)rank * sizeof *shape);
    }
    us_strides_contiguous(rank, view.shape, view.strides);
    return view;
}

/* Unsigned arithmetic: the strides of a shape too large to exist may wrap, but are never undefined. */
void us_strides_contiguous(int32_t rank, const int64_t *shape, int64_t *strides)
{
    uint64_t stride = 1;
    for (int32_t axis = rank - 1; axis >= 0; axis--) {
        strides[axis] = (int64_t)stride;
        stride *= (uint64_t)(shape[axis] > 1 ? shape[axis] : 1);
    }
}

static bool same_numbers(int32_t count, const int64_t *a, const int64_t *b)
{
    bool same = true;
    for (int32_t i = 0; i < count && same; i++) {
        same = a[i] == b[i];
    }
    return same;
}

bool us_view_same_shape(const View *a, const View *b)
{
    return a->rank == b->rank && same_numbers(a->rank, a->shape, b->shape);
}

bool us_view_same_layout(const View *a, const View *b)
{
    return us_view_same_shape(a, b) && same_numbers(a->rank, a->strides, b->strides);
}

bool us_view_extent(const View *view, int64_t *lowest, int64_t *highest)
{
    *lowest = 0;
    *highest = 0;
    if (us_view_is_empty(view)) {
        *highest = -1;
        return true;
    }
    for (int32_t axis = 0; axis < view->rank; axis++) {
        int64_t reach;
        if (view->shape[axis] < 0 || __builtin_mul_overflow(view->strides[axis], view->shape[axis] - 1, &reach)) {
            return false;
        }
        int64_t *end = reach < 0 ? lowest : highest;
        if (__builtin_add_overflow(*end, reach, end)) {
            return false;
        }
    }
    return true;
}

/* Size of `view` at an axis of the broadcast shape, counted from the last (0 = last axis). */
static int64_t size_from_end(const View *view, int32_t from_end)
{
    return from_end < view->rank ? view->shape[view->rank - 1 - from_end] : 1;
}

bool us_broadcast_shape(const View *const *views, int count, int32_t *rank, int64_t *shape, int *culprit)
{
    *rank = 0;
    for (int i = 0; i < count; i++) {
        *rank = views[i]->rank > *rank ? views[i]->rank : *rank;
    }
    for (int32_t axis = 0; axis < *rank; axis++) {
        shape[axis] = 1;
    }
    for (int i = 0; i < count; i++) {
        for (int32_t from_end = 0; from_end < views[i]->rank; from_end++) {
            int64_t size = size_from_end(views[i], from_end);
            int64_t *joint = &shape[*rank - 1 - from_end];
            if (*joint == 1) {
                *joint = size;
            } else if (size != *joint && size != 1) {
                if (culprit) {
                    *culprit = i;
                }
                return false;
            }
        }
    }
    return true;
}

View us_view_broadcast(const View *view, int32_t rank, const int64_t *shape)
{
    View seen = us_view_absent();
    seen.data = view->data;
    seen.dtype = view->dtype;
    seen.rank = rank;
    for (int32_t axis = 0; axis < rank; axis++) {
        int32_t own = axis - (rank - view->rank);
        bool repeated = own < 0 || view->shape[own] == 1;
        seen.shape[axis] = shape[axis];
        seen.strides[axis] = repeated ? 0 : view->strides[own];
    }
    return seen;
}

const char *us_shape_text(int32_t rank, const int64_t *shape, char *buffer, size_t size)
{
    size_t used = 0;
    for (int32_t axis = 0; axis < rank && used < size; axis++) {
        int written = snprintf(buffer + used, size - used, axis ? ",%lld" : "[%lld", (long long)shape[axis]);
        used += written > 0 ? (size_t)written : 0;
    }
    if (used < size) {
        snprintf(buffer + used, size - used, rank > 0 ? "]" : "[]");
    }
    return buffer;
}

View us_view_remove_axis(View view, int32_t axis)
{
    for (int32_t i = axis; i + 1 < view.rank; i++) {
        view.shape[i] = view.shape[i + 1];
        view.strides[i] = view.strides[i + 1];
    }
    view.rank--;
    return view;
}

View us_view_insert_axis(View view, int32_t axis, int64_t size, int64_t stride)
{
    for (int32_t i = view.rank; i > axis; i--) {
        view.shape[i] = view.shape[i - 1];
        view.strides[i] = view.strides[i - 1];
    }
    view.shape[axis] = size;
    view.strides[axis] = stride;
    view.rank++;
    return view;
}

View us_view_rows(const View *view, int64_t begin, int64_t end)
{
    View rows = *view;
    rows.data = (char *)view->data + begin * view->strides[0] * (int64_t)us_dtype_size(view->dtype);
    rows.shape[0] = end - begin;
    return rows;
}

View us_view_half(View view, int32_t axis, bool second, bool pairs)
{
    view.shape[axis] /= 2;
    /* Unsigned: the stride of a half that has no elements, or one, may be any. */
    const uint64_t apart = (pairs ? 1 : (uint64_t)view.shape[axis]) * (uint64_t)view.strides[axis] * us_dtype_size(view.dtype);
    view.data = (void *)((uintptr_t)view.data + (second ? (uintptr_t)apart : 0));
    view.strides[axis] = (int64_t)((pairs ? 2 : 1) * (uint64_t)view.strides[axis]);
    return view;
}
