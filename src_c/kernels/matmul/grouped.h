/* Products of groups: parts of the operands that a list of sizes cuts, one product after the other. */
#ifndef UNDERSTUDY_GROUPED_MATMUL_H
#define UNDERSTUDY_GROUPED_MATMUL_H

#include "kernels/map/map.h"
#include "kernels/matmul/matmul.h"
#include "kernels/quantize/product.h"

/* What a group's product gets of an operand. */
typedef enum GroupCut {
    GROUP_WHOLE,
    GROUP_ITEM,    /* the group's item of axis 0, without that axis */
    GROUP_ROWS,    /* the group's part of axis 0 */
    GROUP_COLUMNS, /* and of axis 1 */
} GroupCut;

typedef struct GroupedOperand {
    GroupCut cut;
    bool each; /* a view for each group, else one for all */
} GroupedOperand;

/* Where the sizes of the groups' parts are. */
typedef enum GroupList {
    GROUPS_FIXED, /* in the attributes */
    GROUPS_ENDS,  /* in a view: where each part ends */
    GROUPS_SIZES,
    GROUPS_PAIRS, /* [groups, 2]: the item, and the size; parts follow each other in this order */
} GroupList;

/* Operands of any of these products; the first one and number GROUPED_OUT may have more axes than two in front, whose
 * matrices are multiplied in turn. */
enum { GROUPED_OPERANDS = 9, GROUPED_OUT = 3 };
typedef union GroupedKind {
    ViewProduct plain;
    QuantizedProduct integers;
    WeightProduct weight;
} GroupedKind;

/* What us_grouped_combined puts beneath: `factor` times a view's rows, from row `begin` on. */
typedef struct GroupedShared {
    int64_t begin;
    double factor;
} GroupedShared;

/* views: the list of int64, or absent; then those of each operand of `kernel` in turn. A list that does not fit `length`,
 * or sizes that are fixed as well, is a fault. What no group names is not written, but for items of the result that pairs give
 * no part: they are 0. With an activation a product is computed in float32 first. */
typedef struct GroupedProduct {
    Kernel *kernel; /* us_product, us_quantized_product, us_quantized_weight_product */
    GroupedKind how;
    int32_t operand_count;
    GroupedOperand operands[GROUPED_OPERANDS];
    const MapFormula *activation; /* NULL: none */
    GroupedShared shared;
    GroupList list;
    int64_t length;  /* of the axis that is cut */
    int32_t groups;
    bool sizes_known;
    int64_t sizes[]; /* of the groups, where they are known */
} GroupedProduct;
Kernel us_grouped_product;
/* The same by a list of ends, computed in float32, then out = quantized (swish(a) * b) row by row, a and b the halves of the
 * columns, with a scale for each row, as us_quantize_gated has it. Rows behind the last end are not written.
 * views: one more, the scales [rows]; none of an operand for each group. */
Kernel us_grouped_gated;
/* The same by any list of one operand each, computed in float32, then out[place[row]] += weight[row] * row, in the order of the
 * rows, in float64 and rounded once, out being 0 but for `shared`. A place that out does not have is a fault; rows behind
 * the last group count nowhere.
 * views: three more, weights [rows] or absent, places [rows] (int32 or int64), and of `shared` [count, columns], or absent. */
Kernel us_grouped_combined;

/* For the kernels of this family: rows of all groups together, in a list that has been checked. */
int64_t us_grouped_rows(const GroupedProduct *call, const View *list);

#endif
