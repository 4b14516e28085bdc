#include "ascend/opapi/experts.h"

#include "ascend/common/op_memory.h"
#include "ranks/experts.h"

#include <stdio.h>

enum { TILING = ACLNN_ERR_INNER_TILING_ERROR, EXPERT_LIMIT = 1024, SHARED_LIMIT = 4, TOKEN_LIMIT = 512, CHOICE_LIMIT = 16 };

/* ---- checks ---- */

static void require_number(OpCall *op, bool fits, const char *name, int64_t value, const char *expected)
{
    op_require(op, fits, name, "value", TILING, "%s is %lld: it must be %s", name, (long long)value, expected);
}

static bool is_algorithm(const char *name)
{
    return name == NULL || strcmp(name, "") == 0 || strcmp(name, "fullmesh") == 0 || strcmp(name, "hierarchy") == 0;
}

void op_require_expert_ranks(OpCall *op, const ExpertRanks *of)
{
    if (op_refused(op)) {
        return;
    }
    const int64_t ranks = op_rank_count(of->room);
    require_number(op, of->ranks == ranks, "epWorldSize", of->ranks, "the number of the communicator's ranks");
    require_number(op, of->rank == of->room->rank, "epRankId", of->rank, "this rank's number in the communicator");
    require_number(op, of->tensor_ranks == 0 || of->tensor_ranks == 1, "tpWorldSize", of->tensor_ranks, "0 or 1");
    require_number(op, of->tensor_rank == 0, "tpRankId", of->tensor_rank, "0");
    require_number(op, of->shard == 0, "expertShardType", of->shard, "0");
    require_number(op, of->shared >= 0 && of->shared <= SHARED_LIMIT, "sharedExpertNum", of->shared, "0 to 4");
    const bool divides = of->shared_ranks == 0 ? of->shared <= 1 : of->shared > 0 && of->shared_ranks % of->shared == 0;
    require_number(op, of->shared_ranks >= 0 && of->shared_ranks < ranks && divides, "sharedExpertRankNum", of->shared_ranks,
                   "below epWorldSize and a multiple of sharedExpertNum, which is at most 1 where it is 0");
    require_number(op, op_refused(op) || (of->experts > 0 && of->experts <= EXPERT_LIMIT &&
                                          of->experts % (ranks - of->shared_ranks) == 0),
                   "moeExpertNum", of->experts, "1 to 1024 and a multiple of epWorldSize - sharedExpertRankNum");
    require_number(op, of->nothing >= 0 && of->nothing <= INT32_MAX / 4, "zeroExpertNum", of->nothing, "0 to 536870911");
    require_number(op, of->copies >= 0 && of->copies <= INT32_MAX / 4, "copyExpertNum", of->copies, "0 to 536870911");
    require_number(op, of->constants >= 0 && of->constants <= INT32_MAX / 4, "constExpertNum", of->constants, "0 to 536870911");
    op_require(op, is_algorithm(of->algorithm), "commAlg", "value", TILING, "commAlg is \"%s\"", of->algorithm);
}

int64_t op_own_experts(const ExpertRanks *of)
{
    const ExpertLayout layout = {.experts = of->experts, .shared_ranks = of->shared_ranks};
    return us_experts_of(&layout, (int32_t)of->ranks, (int32_t)of->rank);
}

/* Tokens of all ranks for one expert: at most. */
static int64_t most_tokens(const ExpertRanks *of, int64_t tokens, int64_t k)
{
    const int64_t batch = of->batch > 0 ? of->batch : tokens * of->ranks, own = op_own_experts(of);
    return of->rank < of->shared_ranks ? tokens * of->ranks * of->shared / of->shared_ranks : batch * (own < k ? own : k);
}

void op_require_expert_tokens(OpCall *op, const ExpertRanks *of, int64_t columns, const Operand *tokens, const Operand *ids,
                              const Operand *room)
{
    if (op_refused(op)) {
        return;
    }
    const int64_t count = op_size(ids, 0), k = op_size(ids, 1);
    const int64_t experts = of->experts + of->nothing + of->copies + of->constants;
    const bool later = op->product->product == PRODUCT_A3;
    op_require(op, count > 0 && count <= TOKEN_LIMIT, ids->name, "tokens", TILING, "%s is %s: it has 1 to 512 tokens",
               ids->name, op_shape_text(op, ids));
    op_require(op, k > 0 && k <= CHOICE_LIMIT && k <= experts, ids->name, "experts", TILING,
               "%s is %s: a token has 1 to 16 of %lld experts", ids->name, op_shape_text(op, ids), (long long)experts);
    const bool fits = later ? columns >= 1024 && columns <= 8192 : columns > 0 && columns <= 10240 && columns % 32 == 0;
    op_require(op, fits, tokens->name, "columns", TILING, "%s is %s: H is %s", tokens->name, op_shape_text(op, tokens),
               later ? "1024 to 8192" : "a multiple of 32 up to 10240");
    op_require(op, op_elements(tokens) == op_times(count, columns), tokens->name, "shape", TILING, "%s is %s, %s is %s",
               tokens->name, op_shape_text(op, tokens), ids->name, op_shape_text(op, ids));
    op_require(op, of->batch == 0 || (of->batch % of->ranks == 0 && of->batch / of->ranks >= count && of->batch <= INT32_MAX),
               of->batch_name, "value", TILING, "%s is %lld: it is 0, or the most tokens of a rank times epWorldSize",
               of->batch_name, (long long)of->batch);
    op_require(op, op_refused(op) || (op_size(room, 0) >= most_tokens(of, count, k) && op_size(room, 1) == columns), room->name,
               "shape", TILING, "%s is %s: %lld tokens of %lld may arrive", room->name, op_shape_text(op, room),
               op_refused(op) ? 0LL : (long long)most_tokens(of, count, k), (long long)columns);
}

void op_require_active(OpCall *op, const Operand *active, const Operand *ids)
{
    const bool fits = !op_given(active) || (op_size(active, 0) == op_size(ids, 0) &&
                                            (active->view.rank == 1 || op_size(active, 1) == op_size(ids, 1)));
    op_require(op, op_refused(op) || fits, op_given(active) ? active->name : "", "shape", TILING, "%s is %s, %s is %s",
               active->name, op_shape_text(op, active), ids->name, op_shape_text(op, ids));
}

void op_require_vector(OpCall *op, const Operand *vector, int64_t count, bool or_more)
{
    const int64_t elements = op_given(vector) ? op_elements(vector) : count;
    op_require(op, op_refused(op) || elements == count || (or_more && elements > count), op_given(vector) ? vector->name : "",
               "elements", TILING, "%s is %s: it has %lld elements%s", vector->name, op_shape_text(op, vector),
               (long long)count, or_more ? " or more" : "");
}

/* Given where it is needed, with the same columns. */
static void require_special(OpCall *op, const Operand *operand, bool needed, int64_t rows, int64_t columns)
{
    const char *name = operand->name;
    op_require(op, op_refused(op) || !needed || op_given(operand), name, "missing", TILING, "%s is NULL", name);
    op_require(op, op_refused(op) || !op_given(operand) || !needed ||
                       (op_size(operand, 0) == rows && op_size(operand, 1) == columns),
               name, "shape", TILING, "%s is %s: it is [%lld,%lld]", name, op_shape_text(op, operand), (long long)rows,
               (long long)columns);
}

void op_require_special_experts(OpCall *op, const CombineCall *call)
{
    if (!op_refused(op)) {
        const int64_t columns = op_size(call->x, 1), constants = call->ranks.constants;
        require_special(op, call->tokens, call->ranks.copies + constants > 0, op_size(call->ids, 0), columns);
        require_special(op, call->factor, constants > 0, constants, columns);
        require_special(op, call->weight, constants > 0, constants, columns);
        require_special(op, call->value, constants > 0, constants, columns);
    }
}

/* ---- plan ---- */

static ExpertLayout layout_of(const OpCall *op, const ExpertRanks *of)
{
    ExpertLayout layout = {.task = {.room = of->room, .kind = CHANNEL_COLLECTIVE}, .experts = of->experts,
                           .shared = of->shared, .shared_ranks = of->shared_ranks, .nothing = of->nothing,
                           .copies = of->copies, .constants = of->constants};
    snprintf(layout.task.caption, sizeof layout.task.caption, "%s(%lld)", op->call.function, (long long)of->experts);
    return layout;
}

aclnnStatus op_dispatch_to_experts(OpCall *op, const DispatchCall *call)
{
    op_begin_steps(op);
    if (!op_refused(op)) {
        const ExpertDispatch how = {.layout = layout_of(op, &call->ranks), .sums = call->sums};
        const PlannedView views[DISPATCH_VIEWS] = {
            [DISPATCH_X] = {call->x, VIEW_READ, NULL},
            [DISPATCH_IDS] = {call->ids, VIEW_READ, NULL},
            [DISPATCH_SMOOTH] = {call->smooth, VIEW_READ, NULL},
            [DISPATCH_ACTIVE] = {call->active, VIEW_READ, NULL},
            [DISPATCH_WEIGHTS] = {call->weights, VIEW_READ, NULL},
            [DISPATCH_OUT] = {call->out, VIEW_WRITE, NULL},
            [DISPATCH_STEPS] = {call->steps, VIEW_WRITE, NULL},
            [DISPATCH_ORDER] = {call->order, VIEW_WRITE, NULL},
            [DISPATCH_ORIGIN] = {call->origin, VIEW_WRITE, NULL},
            [DISPATCH_TOKENS] = {call->tokens, VIEW_WRITE, NULL},
            [DISPATCH_COUNTS] = {call->counts, VIEW_WRITE, NULL},
            [DISPATCH_ARRIVED_WEIGHTS] = {call->arrived_weights, VIEW_WRITE, NULL},
        };
        op_plan_meeting(op, us_dispatch_to_experts, &how, sizeof how, DISPATCH_VIEWS, views);
    }
    return op_end_steps(op);
}

/* [tokens, columns], also of a tensor with a dimension between. */
static const Operand *as_tokens(OpCall *op, const Operand *operand, int64_t tokens, int64_t columns)
{
    if (!op_given(operand) || operand->view.rank == 2) {
        return operand;
    }
    const Operand *packed = op_packed(op, operand);
    return op_shown_as(op, packed, us_view_contiguous(packed->view.data, packed->view.dtype, 2, (int64_t[]){tokens, columns}));
}

aclnnStatus op_combine_from_experts(OpCall *op, const CombineCall *call)
{
    op_begin_steps(op);
    if (!op_refused(op)) {
        const int64_t tokens = op_size(call->ids, 0), columns = op_size(call->x, 1);
        const ExpertLayout layout = layout_of(op, &call->ranks);
        const Operand *out = call->norm == NULL ? call->out : op_temporary(op, call->x->dtype, op_shape(call->norm->added));
        const Operand *shown = as_tokens(op, out, tokens, columns);
        const PlannedView views[COMBINE_VIEWS] = {
            [COMBINE_X] = {call->x, VIEW_READ, NULL},
            [COMBINE_IDS] = {call->ids, VIEW_READ, NULL},
            [COMBINE_COUNTS] = {call->counts, VIEW_READ, NULL},
            [COMBINE_WEIGHTS] = {call->weights, VIEW_READ, NULL},
            [COMBINE_ACTIVE] = {call->active, VIEW_READ, NULL},
            [COMBINE_ADDED] = {as_tokens(op, call->added, tokens, columns), VIEW_READ, NULL},
            [COMBINE_TOKENS] = {call->tokens, VIEW_READ, NULL},
            [COMBINE_FACTOR] = {call->factor, VIEW_READ, NULL},
            [COMBINE_WEIGHT] = {call->weight, VIEW_READ, NULL},
            [COMBINE_VALUE] = {call->value, VIEW_READ, NULL},
            [COMBINE_OUT] = {shown, VIEW_WRITE, NULL},
        };
        op_plan_meeting(op, us_combine_from_experts, &layout, sizeof layout, COMBINE_VIEWS, views);
        if (call->norm != NULL) {
            LayerNorm norm = *call->norm;
            norm.x = out;
            op_layer_norm(op, &norm);
        }
    }
    return op_end_steps(op);
}
