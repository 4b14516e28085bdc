/* Element types and strided views. Knows no vendor, no device. What every call asks of each of its tensors is inline: lists
 * have hundreds of them. */
#ifndef UNDERSTUDY_VIEW_H
#define UNDERSTUDY_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum DType {
    DTYPE_NONE, /* a type no kernel handles */
    DTYPE_FLOAT32,
    DTYPE_FLOAT16,
    DTYPE_BFLOAT16,
    DTYPE_FLOAT64,
    DTYPE_INT8,
    DTYPE_INT16,
    DTYPE_INT32,
    DTYPE_INT64,
    DTYPE_UINT8,
    DTYPE_UINT16,
    DTYPE_UINT32,
    DTYPE_UINT64,
    DTYPE_BOOL,
    DTYPE_COMPLEX64,
    DTYPE_COMPLEX128,
    DTYPE_COUNT
} DType;

/* Bytes; 0 for DTYPE_NONE, and for what is no type. */
inline size_t us_dtype_size(DType dtype)
{
    static const unsigned char BYTES[DTYPE_COUNT] = {
        [DTYPE_INT8] = 1,    [DTYPE_UINT8] = 1,   [DTYPE_BOOL] = 1,    [DTYPE_FLOAT16] = 2,   [DTYPE_BFLOAT16] = 2,
        [DTYPE_INT16] = 2,   [DTYPE_UINT16] = 2,  [DTYPE_FLOAT32] = 4, [DTYPE_INT32] = 4,     [DTYPE_UINT32] = 4,
        [DTYPE_FLOAT64] = 8, [DTYPE_INT64] = 8,   [DTYPE_UINT64] = 8,  [DTYPE_COMPLEX64] = 8, [DTYPE_COMPLEX128] = 16,
    };
    return (unsigned)dtype < DTYPE_COUNT ? BYTES[dtype] : 0;
}

const char *us_dtype_name(DType dtype); /* "float32", "bfloat16", … */
bool us_dtype_is_float(DType dtype); /* float16, bfloat16, float32, float64 */

enum { VIEW_RANK_LIMIT = 25 }; /* the largest rank aclCreateTensor stores; operators allow 8 */

/* Element (i0 … ik) is at data + (sum i_d * strides[d]) * element size. Strides count elements, may be 0 or negative.
 * `data` already includes any offset. Views are small values: copy them. */
typedef struct View {
    void *data;
    DType dtype;
    int32_t rank; /* 0: one element */
    int64_t shape[VIEW_RANK_LIMIT];
    int64_t strides[VIEW_RANK_LIMIT];
} View;

/* An operand that was not given (an optional tensor). Its dtype is DTYPE_NONE. */
View us_view_absent(void);
inline bool us_view_is_absent(const View *view)
{
    return view->dtype == DTYPE_NONE;
}

/* Row-major view. shape may be NULL when rank is 0. */
View us_view_contiguous(void *data, DType dtype, int32_t rank, const int64_t *shape);
void us_strides_contiguous(int32_t rank, const int64_t *shape, int64_t *strides);

/* Number of elements; -1 when a size is negative or the product exceeds int64. */
inline int64_t us_shape_elements(int32_t rank, const int64_t *shape)
{
    bool empty = false;
    for (int32_t axis = 0; axis < rank; axis++) {
        if (shape[axis] < 0) {
            return -1;
        }
        empty |= shape[axis] == 0;
    }
    if (empty) {
        return 0;
    }
    int64_t elements = 1;
    for (int32_t axis = 0; axis < rank; axis++) {
        if (__builtin_mul_overflow(elements, shape[axis], &elements)) {
            return -1;
        }
    }
    return elements;
}

inline int64_t us_view_elements(const View *view)
{
    return us_shape_elements(view->rank, view->shape);
}

/* Some size is 0. */
inline bool us_view_is_empty(const View *view)
{
    for (int32_t axis = 0; axis < view->rank; axis++) {
        if (view->shape[axis] == 0) {
            return true;
        }
    }
    return false;
}

/* Row-major when sizes of 1 are ignored; 0 or 1 element counts as such. */
inline bool us_view_is_contiguous(const View *view)
{
    if (us_view_is_empty(view)) {
        return true;
    }
    int64_t expected = 1;
    for (int32_t axis = view->rank - 1; axis >= 0; axis--) {
        if (view->shape[axis] == 1) {
            continue;
        }
        if (view->strides[axis] != expected || __builtin_mul_overflow(expected, view->shape[axis], &expected)) {
            return false;
        }
    }
    return true;
}

bool us_view_same_shape(const View *a, const View *b); /* same rank, same sizes */
bool us_view_same_layout(const View *a, const View *b); /* same shape and strides */

/* The elements the view reaches, relative to `data`: *lowest <= 0 <= *highest. False when the arithmetic overflows.
 * Empty views give 0, -1. */
bool us_view_extent(const View *view, int64_t *lowest, int64_t *highest);

/* NumPy broadcasting of `count` shapes (sizes and ranks are taken from the views). False: they do not broadcast; then
 * *culprit (may be NULL) is the index of the first view that does not fit its predecessors. 0 with 1 gives 0. */
bool us_broadcast_shape(const View *const *views, int count, int32_t *rank, int64_t *shape, int *culprit);

/* The view seen with the broadcast shape: missing and size-1 axes get stride 0. */
View us_view_broadcast(const View *view, int32_t rank, const int64_t *shape);

/* With an axis more before `axis`, or without that axis (and at its first index). */
View us_view_insert_axis(View view, int32_t axis, int64_t size, int64_t stride);
View us_view_remove_axis(View view, int32_t axis);

/* Indices begin … end - 1 of the first axis. */
View us_view_rows(const View *view, int64_t begin, int64_t end);

/* Half of an axis: the first or the second one; of `pairs`, what comes first or second in each: the even or the odd places. */
View us_view_half(View view, int32_t axis, bool second, bool pairs);

/* "[2,3]" into a buffer that is returned: for messages. */
enum { SHAPE_TEXT_SIZE = 24 * VIEW_RANK_LIMIT };
const char *us_shape_text(int32_t rank, const int64_t *shape, char *buffer, size_t size);

#endif
