/* Attention: the pages for training. */
#include "ascend/opapi/attention_parts.h"

static void require_dropout(OpCall *op, const AttentionCall *call)
{
    op_require(op, call->keep > 0 && call->keep <= 1, "keepProb", "range", op->invalid,
               "keepProb is %g; it has to be above 0 and at most 1", call->keep);
    if (op_refused(op) || !op_given(call->drop)) {
        return;
    }
    const int64_t bytes = op_elements(call->drop), scores = score_count(call);
    op_require(op, call->drop->view.rank == 1 && bytes >= scores / 8 + (scores % 8 != 0), call->drop->name, "elements",
               op->invalid, "%s is %s; there are %lld scores, a bit each", call->drop->name,
               op_shape_text(op, call->drop), (long long)scores);
}

static void require_sinks(OpCall *op, const AttentionCall *call)
{
    if (!op_given(call->sink)) {
        return;
    }
    const Shape shape = op_shape_of(1, &call->heads);
    op_require_shape(op, call->sink, &shape);
    if (call->out_gradient != NULL) {
        op_require(op, op_given(call->sink_gradient), call->sink_gradient->name, "missing", op->missing,
                   "%s is NULL, %s is given", call->sink_gradient->name, call->sink->name);
        op_require_shape(op, call->sink_gradient, &shape);
    }
}

/* ---- what the sparse modes want of tokens, prefixes and lengths; without a mask there is no mode ---- */

typedef struct Lengths {
    int64_t rows, keys;
} Lengths;

static int64_t part_count(const AttentionCall *call)
{
    return call->packed ? call->query_ends.count : 1;
}

/* Of a packed sequence; batches all have the same. */
static Lengths lengths_of(const AttentionCall *call, const Operand4 *of, int64_t s)
{
    if (!call->packed) {
        return (Lengths){of->query.shape[2], of->key.shape[2]};
    }
    return (Lengths){call->query_ends.values[s] - begin_of(call->query_ends, s),
                     call->key_ends.values[s] - begin_of(call->key_ends, s)};
}

/* Keys that all rows see: as many as the last row sees more than the first one, and no more than there are. */
static void require_prefixes(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    const bool used = call->mode == MODE_PREFIX || call->mode == MODE_PREFIX_SMALL;
    for (int64_t s = 0; used && s < call->prefix.count && !op_refused(op); s++) {
        const Lengths own = lengths_of(call, of, s);
        const int64_t count = call->prefix.values[s], least = own.keys > own.rows ? own.keys - own.rows : 0;
        op_require(op, own.rows == 0 || (count >= least && count <= own.keys), "prefixOptional", "values", op->invalid,
                   "prefixOptional[%lld] is %lld: for %lld rows and %lld keys it is %lld to %lld", (long long)s,
                   (long long)count, (long long)own.rows, (long long)own.keys, (long long)least, (long long)own.keys);
    }
}

/* A band from the first row and key on: of packed sequences one at least is in reach. */
static void require_reach(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    if (call->mode != MODE_DEFAULT) {
        return;
    }
    Lengths most = {0, 0};
    for (int64_t s = 0; s < part_count(call); s++) {
        const Lengths own = lengths_of(call, of, s);
        most.rows = own.rows > most.rows ? own.rows : most.rows;
        most.keys = own.keys > most.keys ? own.keys : most.keys;
    }
    op_require(op, call->before >= 0 || call->before > -most.rows, "preTokens", "reach", op->invalid,
               "preTokens is %lld: below 0 it counts less than the rows, %lld", (long long)call->before, (long long)most.rows);
    op_require(op, call->after >= 0 || call->after > -most.keys, "nextTokens", "reach", op->invalid,
               "nextTokens is %lld: below 0 it counts less than the keys, %lld", (long long)call->after, (long long)most.keys);
}

/* The sequence that a cut outside leaves a band: the first, or the last, that has rows; -1: none. */
static int64_t cut_part(const AttentionCall *call, const Operand4 *of)
{
    const bool last = call->mode == MODE_OUTSIDE_RIGHT_DOWN;
    int64_t found = -1;
    for (int64_t s = 0; s < part_count(call); s++) {
        found = lengths_of(call, of, s).rows > 0 && (last || found < 0) ? s : found;
    }
    return found;
}

static void require_cut(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    const int64_t cut = call->mode > MODE_PREFIX_SMALL ? cut_part(call, of) : -1;
    if (cut < 0) {
        return;
    }
    const bool last = call->mode == MODE_OUTSIDE_RIGHT_DOWN;
    const Lengths own = lengths_of(call, of, cut);
    op_require(op, call->before >= own.keys, "preTokens", "cut", op->invalid,
               "preTokens is %lld: with sparseMode %lld it is not below the keys of sequence %lld, %lld",
               (long long)call->before, (long long)call->mode, (long long)cut, (long long)own.keys);
    op_require(op, call->after >= own.rows - own.keys && (!last || call->after <= 0), "nextTokens", "cut", op->invalid,
               "nextTokens is %lld: with sparseMode %lld it is %s %lld, the rows less the keys of sequence %lld",
               (long long)call->after, (long long)call->mode, last ? "at most 0 and at least" : "at least",
               (long long)(own.rows - own.keys), (long long)cut);
}

/* Where the last row sees the last key, packed sequences have no row without keys: the page of the function says so for
 * sparseMode 3, both pages for the sequences that sparseMode 7 leaves. */
static void require_seen_rows(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    const bool whole = call->mode == MODE_RIGHT_DOWN && call->out_gradient == NULL;
    const int64_t cut = call->mode == MODE_OUTSIDE_RIGHT_DOWN ? cut_part(call, of) : -1;
    for (int64_t s = 0; call->packed && (whole || cut >= 0) && s < part_count(call) && !op_refused(op); s++) {
        const Lengths own = lengths_of(call, of, s);
        op_require(op, s == cut || own.rows <= own.keys, "sparseMode", "rows", op->invalid,
                   "sparseMode is %lld: sequence %lld has %lld rows and %lld keys, fewer", (long long)call->mode, (long long)s,
                   (long long)own.rows, (long long)own.keys);
    }
}

static void require_mode(OpCall *op, const AttentionCall *call)
{
    if (op_refused(op)) {
        return;
    }
    const Operand4 of = split_heads(call);
    if (op_given(call->mask)) {
        require_prefixes(op, call, &of);
        require_reach(op, call, &of);
        require_cut(op, call, &of);
        require_seen_rows(op, call, &of);
    }
    for (int64_t s = 0; call->packed && op_given(call->shift) && s < part_count(call) && !op_refused(op); s++) {
        op_require(op, lengths_of(call, &of, s).rows > 0, call->shift->name, "empty", op->invalid,
                   "%s is given, and sequence %lld has no rows", call->shift->name, (long long)s);
    }
}

bool op_is_statistic_layout(const char *layout)
{
    return *layout == '\0' || strcmp(layout, "same_as_input") == 0;
}

bool op_are_alike_ends(IntArguments a, IntArguments b)
{
    bool alike = a.count == b.count;
    for (int64_t i = 0; alike && i < a.count; i++) {
        alike = a.values[i] == b.values[i];
    }
    return alike;
}

void op_require_attention(OpCall *op, const AttentionCall *call)
{
    require_operands(op, call);
    require_keys(op, call);
    require_sequences(op, call);
    op_require_range(op, "sparseMode", call->mode, 0, call->packed ? MODE_OUTSIDE_LEFT_UP : MODE_PREFIX_SMALL);
    require_masks(op, call);
    require_mode(op, call);
    require_dropout(op, call);
    require_statistic(op, call, call->maximum);
    require_statistic(op, call, call->sum);
    require_result(op, call, call->out);
    require_result(op, call, call->out_gradient);
    require_sinks(op, call);
}
