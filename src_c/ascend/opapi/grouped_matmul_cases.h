/* How the lists of a product of groups go together: inside the files of this family. */
#ifndef ASCEND_OPAPI_GROUPED_MATMUL_CASES_H
#define ASCEND_OPAPI_GROUPED_MATMUL_CASES_H

#include "ascend/opapi/grouped_matmul.h"
#include "ascend/opapi/packed_integers.h"
#include "kernels/matmul/grouped.h"

/* Floating types; integers in x and weight; ACL_INT8 less 8 with 4 bits; in the weight only. */
typedef enum Scheme { NO_SCHEME, PLAIN, INTEGERS, SHIFTED, WEIGHT } Scheme;
Scheme grouped_scheme(const GroupedCall *call);
bool grouped_takes_activation(const GroupedCall *call);
/* Shifted products without an offset read sizes whatever groupListType says, gated ones ends. */
int64_t grouped_list_type(const GroupedCall *call);

typedef struct GroupedCase {
    bool fits;
    GroupCut x, weight, out; /* GROUP_WHOLE: a tensor for each group */
    int32_t groups;
} GroupedCase;

GroupType grouped_type(const GroupedCall *call);
GroupedCase grouped_case(const GroupedCall *call);

/* The tensor of a group; of a list of one, that. */
const Operand *grouped_tensor(Operands list, int32_t group);

typedef struct GroupSizes {
    Integers x, weight;
    int64_t k, depth, n; /* of x; of weight */
} GroupSizes;

GroupSizes grouped_sizes(const GroupedCall *call, int32_t group);
/* Of all tensors in x; 2^63 - 1 where they have more. */
int64_t grouped_rows(Operands x);
/* The size of group i that other tensors than one x have; -1: they do not say. */
int64_t grouped_known_size(const GroupedCall *call, const GroupedCase *as, int32_t group);
/* How many parts of the depth have scales of their own; 0: the list does not say. */
int64_t grouped_depth_parts(const GroupedCase *as, Operands scales);

#endif
