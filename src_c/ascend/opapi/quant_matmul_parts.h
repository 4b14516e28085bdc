/* What the files of products of quantized matrices share. */
#ifndef ASCEND_OPAPI_QUANT_MATMUL_PARTS_H
#define ASCEND_OPAPI_QUANT_MATMUL_PARTS_H

#include "ascend/opapi/matmul.h"
#include "ascend/opapi/packed_integers.h"
#include "ascend/opapi/quant_matmul.h"
#include "kernels/sizes.h"

enum { BLOCK = 128, DEPTH_GROUP = 256 };
#define T_BITS (T_U64 | T_I64)

static inline View turned(View view)
{
    return op_swap_axes(view, view.rank - 2, view.rank - 1);
}

static inline bool has_shape(const Operand *operand, int32_t rank, int64_t first, int64_t second)
{
    const View *view = &operand->view;
    return view->rank == rank && view->shape[0] == first && (rank == 1 || view->shape[1] == second);
}

/* A vector, of n or of one element, or a matrix of `rows` lines. */
static inline View as_lines(View view, int64_t rows, int64_t n)
{
    if (us_view_is_absent(&view)) {
        return view;
    }
    const bool vector = view.rank == 1;
    const int64_t across = vector ? view.strides[0] : view.strides[1], down = vector ? 0 : view.strides[0];
    const int64_t count = us_view_elements(&view);
    view.rank = 2;
    view.shape[0] = rows;
    view.shape[1] = n;
    view.strides[0] = rows == 1 ? 0 : down;
    view.strides[1] = count == 1 ? 0 : across;
    return view;
}

static inline View lines_of(const Operand *operand, int64_t rows, int64_t n)
{
    return as_lines(op_scale_view(operand), rows, n);
}

static inline const char *type_name(const Operand *operand)
{
    return op_given(operand) ? acl_dtype_name(operand->dtype) : "NULL";
}

/* One number for all columns, or for each. */
static inline bool is_line(const Operand *operand, int64_t n)
{
    return has_shape(operand, 1, 1, 0) || has_shape(operand, 1, n, 0);
}

/* ---- quant_matmul.c ---- */

/* No groups; groups of the depth; blocks of the depth and of the columns. */
typedef enum Mode { PLAIN, DEPTH_GROUPS, BLOCKS } Mode;

Mode quant_mode_of(const QuantMatmulCall *call);

typedef struct Sizes {
    Integers a, b;
    int64_t m, n, k, depth_of_b;
    int64_t groups;
} Sizes;

Sizes quant_sizes_of(const QuantMatmulCall *call);
bool quant_joint_batch(const Sizes *of, Shape *batch);

/* ---- quant_matmul_checks.c ---- */

void require_quant_size(OpCall *op, const Operand *operand, bool fits, const Sizes *of);

#endif
