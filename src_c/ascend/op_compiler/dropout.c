/* Dropout by name: masks of bytes or bits, 1 where an element stays. What stays is divided by the probability to
 * stay. */
#include "aclnnop/aclnn_bernoulli.h"
#include "aclnnop/aclnn_div.h"
#include "aclnnop/aclnn_dropout_do_mask.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_zero.h"
#include "ascend/op_compiler/calls.h"

static double probability(Named *named, int32_t index)
{
    const double value = call_number(named, index);
    us_require(&named->call, value >= 0 && value <= 1, "inputs", "range", ACL_ERROR_OP_INPUT_NOT_MATCH,
               "input %d of %s is %g, not a probability", (int)index, named->type, value);
    return value;
}

/* A shape and the probability to stay; a byte for each element, in any shape. */
void named_dropout_gen_mask(Named *named)
{
    int64_t shape[VIEW_RANK_LIMIT];
    named_require_counts(named, 2, 2, 1);
    AclnnCall call = {.named = named};
    const int32_t rank = call_integers(named, 0, shape, VIEW_RANK_LIMIT);
    const int64_t seed = named_integer(named, "seed", 0);
    named_require_attribute(named, "seed2", named_integer(named, "seed2", 0) == 0, "0");
    (void)probability(named, 1);
    const int64_t wanted = us_shape_elements(rank, shape), made = us_view_elements(&named->outputs[0]);
    us_require(&named->call, named->call.status != 0 || made == wanted, "outputDesc", "shape",
               ACL_ERROR_OP_OUTPUT_NOT_MATCH, "output 0 of %s has %lld elements; input 0 tells %lld", named->type,
               (long long)made, (long long)wanted);
    named_require_shape(named, false, 0, DTYPE_UINT8, named->outputs[0].rank, named->outputs[0].shape);
    aclScalar *stays = call_refused(&call) ? NULL : call_scalar(&call, 1);
    aclTensor *mask = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnInplaceBernoulli, mask, stays, seed, 0);
}

/* x, bits, the probability to stay. */
void named_dropout_do_mask(Named *named)
{
    named_require_counts(named, 3, 3, 1);
    AclnnCall call = {.named = named};
    const double stays = probability(named, 2);
    aclTensor *x = call_input(&call, 0), *mask = call_input(&call, 1), *y = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnDropoutDoMask, x, mask, 1 - stays, y);
}

/* x, a byte for each element, the probability to stay; where nothing stays, 0. */
void named_dropout_do_mask_v3(Named *named)
{
    named_require_counts(named, 3, 3, 1);
    AclnnCall product = {.named = named}, quotient = {.named = named};
    const double stays = probability(named, 2);
    named_require_input(named, 0, -1);
    named_require_input(named, 1, -1);
    const View *x = &named->inputs[0];
    if (named->call.status == 0) {
        const int64_t bytes = us_view_elements(&named->inputs[1]), elements = us_view_elements(x);
        us_require(&named->call, bytes == elements, "inputDesc", "shape", ACL_ERROR_OP_INPUT_NOT_MATCH,
                   "input 1 of %s has %lld elements; input 0 has %lld", named->type, (long long)bytes,
                   (long long)elements);
        named_require_shape(named, true, 1, DTYPE_UINT8, named->inputs[1].rank, named->inputs[1].shape);
        named_require_shape(named, false, 0, x->dtype, x->rank, x->shape);
    }
    aclTensor *y = call_output(&product, 0);
    if (stays == 0) {
        CALL_ACLNN(&product, aclnnInplaceZero, y);
        return;
    }
    const View as_x = us_view_contiguous(NULL, DTYPE_UINT8, x->rank, x->shape);
    aclTensor *from = call_input(&product, 0), *mask = call_view(&product, true, 1, &as_x, 0);
    CALL_ACLNN(&product, aclnnMul, from, mask, y);
    aclTensor *kept = call_output(&quotient, 0);
    aclScalar *divisor = call_float(&quotient, (float)stays);
    CALL_ACLNN(&quotient, aclnnInplaceDivs, kept, divisor);
}
