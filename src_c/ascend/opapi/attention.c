/* Attention: from layouts and sparse modes to the kernel's views and bands. */
#include "ascend/opapi/attention.h"

#include "kernels/attention/attention.h"

#include <string.h>

/* Tokens beyond any sequence; sizes of the masks that stand for a triangle, and for a triangle and a prefix. */
#define FAR ((int64_t)1 << 40)
enum { TRIANGLE = 2048, PREFIX_ROWS = 3072, COPIES = 8, HEAD_LIMIT = 256 };
enum { BLOCK_LIMIT = 512, BLOCK_OF_TOKENS = 16, BLOCK_OF_ROWS = 128, WIDTH_LIMIT = 65535, CHANNEL_UNIT = 32 };
enum { LATENT_DEPTH = 512, ROTARY_DEPTH = 64, PART_DEPTH = 128, JOINT_DEPTH = 192 };
enum { MODE_DEFAULT, MODE_ALL, MODE_LEFT_UP, MODE_RIGHT_DOWN, MODE_BAND, MODE_PREFIX, MODE_PREFIX_SMALL,
       MODE_OUTSIDE_RIGHT_DOWN, MODE_OUTSIDE_LEFT_UP };

static bool is_there(const Operand *operand)
{
    return operand != NULL && op_given(operand);
}

/* ---- layouts ---- */

/* Which dimension is which, and the axis whose elements are heads times depth (-1: none). */
enum { FOR_TRAINING = 1, FOR_PACKED = 2, FOR_INFERENCE = 4, FOR_NEWEST = 8, FOR_PROMPTS = 16, FOR_RESULTS = 0 };
typedef struct Layout {
    const char *name;
    int32_t rank, batch, head, row, depth;
    unsigned uses;
} Layout;

static const Layout layouts[] = {{"BSH", 3, 0, -1, 1, 2, FOR_TRAINING | FOR_INFERENCE},
                                 {"SBH", 3, 1, -1, 0, 2, FOR_TRAINING},
                                 {"BSND", 4, 0, 2, 1, 3, FOR_TRAINING | FOR_INFERENCE},
                                 {"BNSD", 4, 0, 1, 2, 3, FOR_TRAINING | FOR_INFERENCE},
                                 {"TND", 3, -1, 1, 0, 2, FOR_PACKED | FOR_NEWEST | FOR_PROMPTS},
                                 {"BNSD_BSND", 4, 0, 1, 2, 3, FOR_INFERENCE},
                                 {"TND_NTD", 3, -1, 1, 0, 2, FOR_NEWEST},
                                 {"NTD_TND", 3, -1, 0, 1, 2, FOR_NEWEST},
                                 {"BNSD_NBSD", 4, 0, 1, 2, 3, FOR_NEWEST},
                                 {"BSND_NBSD", 4, 0, 2, 1, 3, FOR_NEWEST},
                                 {"BSH_NBSD", 3, 0, -1, 1, 2, FOR_NEWEST},
                                 {"NTD", 3, -1, 0, 1, 2, FOR_RESULTS},
                                 {"NBSD", 4, 1, 0, 2, 3, FOR_RESULTS}};

static const Layout *layout_of(const AttentionCall *call)
{
    const unsigned more = (call->newest ? FOR_NEWEST : 0) | (call->prompts ? FOR_PROMPTS : 0);
    const unsigned use = call->infers ? FOR_INFERENCE | more : call->packed ? FOR_PACKED : FOR_TRAINING;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (strcmp(call->layout, layouts[i].name) == 0 && (layouts[i].uses & use) != 0) {
            return &layouts[i];
        }
    }
    return NULL;
}

/* Of the result: X_Y names both. */
static const Layout *result_layout(const AttentionCall *call)
{
    const Layout *layout = layout_of(call);
    const char *after = strchr(layout->name, '_');
    for (size_t i = 0; after != NULL && i < sizeof layouts / sizeof *layouts; i++) {
        if (strcmp(after + 1, layouts[i].name) == 0) {
            return &layouts[i];
        }
    }
    return layout;
}

/* Pages of keys have a layout of their own: [page, row, heads times depth] or [page, head, row, depth]. */
static const Layout *key_layout(const AttentionCall *call)
{
    return !is_there(call->pages) ? layout_of(call) : call->key->view.rank == 4 ? &layouts[3] : &layouts[0];
}

/* [batch, head, row, depth] of a tensor; `heads` divides what is heads times depth. */
static View by_heads(const Layout *layout, const View *view, int64_t heads)
{
    View result = {.data = view->data, .dtype = view->dtype, .rank = 4};
    const int32_t axes[] = {layout->batch, layout->head, layout->row, layout->depth};
    for (int32_t i = 0; i < 4; i++) {
        result.shape[i] = axes[i] < 0 ? 1 : view->shape[axes[i]];
        result.strides[i] = axes[i] < 0 ? 0 : view->strides[axes[i]];
    }
    if (layout->head < 0) {
        const int64_t depth = heads > 0 ? view->shape[layout->depth] / heads : 0;
        result.shape[1] = heads;
        result.strides[1] = depth * view->strides[layout->depth];
        result.shape[3] = depth;
    }
    return result;
}

/* The three operands. Keys have as many heads as their depth, which is the query's, leaves. */
typedef struct Operand4 {
    View query, key, value;
} Operand4;

static Operand4 split_heads(const AttentionCall *call)
{
    Operand4 of = {.query = by_heads(layout_of(call), &call->query->view, call->heads)};
    const Layout *layout = key_layout(call);
    const int64_t depth = of.query.shape[3];
    const int64_t width = call->key->view.shape[layout->depth];
    const int64_t key_heads = layout->head >= 0 ? call->key->view.shape[layout->head] : depth > 0 ? width / depth : 0;
    of.key = by_heads(layout, &call->key->view, key_heads);
    of.value = by_heads(layout, &call->value->view, key_heads);
    return of;
}

/* ---- sequences ---- */

static int64_t sequence_count(const AttentionCall *call, const Operand4 *of)
{
    return call->packed ? call->query_ends.count : of->query.shape[0];
}

static bool is_listed(const AttentionCall *call)
{
    return call->keys.count > 1;
}

/* How many keys a batch has room for. */
static int64_t key_room(const AttentionCall *call, const Operand4 *of, int64_t batch)
{
    if (is_there(call->pages)) {
        return call->pages->view.shape[1] * of->key.shape[2];
    }
    return is_listed(call) ? call->keys.items[batch]->view.shape[layout_of(call)->row] : of->key.shape[2];
}

/* Keys that every batch has before its own. */
static int64_t shared_keys(const AttentionCall *call)
{
    if (!is_there(call->shared_key)) {
        return 0;
    }
    return call->shared_length.count > 0 ? call->shared_length.values[0]
                                         : call->shared_key->view.shape[layout_of(call)->row];
}

static int64_t most_keys(const AttentionCall *call, const Operand4 *of)
{
    int64_t most = key_room(call, of, 0);
    for (int64_t s = 1; is_listed(call) && s < call->keys.count; s++) {
        const int64_t room = key_room(call, of, s);
        most = room > most ? room : most;
    }
    return most;
}

static int64_t begin_of(IntArguments ends, int64_t at)
{
    return at == 0 ? 0 : ends.values[at - 1];
}

static int64_t near(int64_t tokens)
{
    return tokens > FAR ? FAR : tokens < -FAR ? -FAR : tokens;
}

/* The only sequence that a cut outside leaves a band: the first, or the last, that has rows. */
static int64_t cut_sequence(const AttentionCall *call, int64_t sequences, const AttentionSequence *of)
{
    const bool last = call->mode == MODE_OUTSIDE_RIGHT_DOWN;
    int64_t found = -1;
    for (int64_t s = 0; s < sequences; s++) {
        if (of[s].query_count > 0 && (last || found < 0)) {
            found = s;
        }
    }
    return found;
}

static void set_band(const AttentionCall *call, AttentionSequence *sequence, int64_t mode, int64_t prefix)
{
    const int64_t corner = sequence->key_count - sequence->seen_rows;
    sequence->low = -FAR;
    sequence->high = FAR;
    if (!op_given(call->mask) || mode == MODE_ALL) {
        return;
    }
    if (mode == MODE_DEFAULT || mode == MODE_BAND) {
        const int64_t origin = mode == MODE_BAND ? corner : 0;
        sequence->low = origin - near(call->before);
        sequence->high = origin + near(call->after);
        return;
    }
    sequence->high = mode == MODE_LEFT_UP ? 0 : corner;
    sequence->prefix = mode == MODE_PREFIX || mode == MODE_PREFIX_SMALL ? prefix : 0;
}

static int64_t length_of(IntArguments lengths, int64_t sequence, int64_t whole)
{
    return lengths.count == 0 ? whole : lengths.values[lengths.count == 1 ? 0 : sequence];
}

static void describe_sequences(const AttentionCall *call, const Operand4 *of, Attention *attention)
{
    int64_t rows = 0, scores = 0;
    const int64_t sequences = attention->sizes.sequences;
    for (int64_t s = 0; s < sequences; s++) {
        AttentionSequence *sequence = &attention->of[s];
        *sequence = (AttentionSequence){.query_count = of->query.shape[2], .key_count = key_room(call, of, s),
                                        .rows_before = rows, .drop_begin = scores};
        if (call->packed) {
            sequence->query_begin = begin_of(call->query_ends, s);
            sequence->query_count = call->query_ends.values[s] - sequence->query_begin;
        }
        if (call->packed && !is_there(call->pages)) {
            sequence->key_begin = begin_of(call->key_ends, s);
            sequence->key_count = call->key_ends.values[s] - sequence->key_begin;
        }
        sequence->seen_rows = length_of(call->query_lengths, s, sequence->query_count);
        sequence->key_count = shared_keys(call) + length_of(call->key_lengths, s, sequence->key_count);
        rows += sequence->query_count;
        scores += call->heads * sequence->query_count * sequence->key_count;
    }
    const int64_t cut = call->mode > MODE_PREFIX_SMALL ? cut_sequence(call, sequences, attention->of) : -1;
    for (int64_t s = 0; s < sequences; s++) {
        const int64_t others = call->mode == MODE_OUTSIDE_LEFT_UP ? MODE_LEFT_UP : MODE_RIGHT_DOWN;
        const int64_t mode = call->mode <= MODE_PREFIX_SMALL ? call->mode : s == cut ? MODE_BAND : others;
        set_band(call, &attention->of[s], mode, s < call->prefix.count ? call->prefix.values[s] : 0);
    }
}

static bool mask_is_read(const AttentionCall *call)
{
    return op_given(call->mask) &&
           (call->mode == MODE_DEFAULT || call->mode == MODE_ALL || call->mode == MODE_PREFIX);
}

/* ---- checks ---- */

static bool is(const View *view, int32_t axis, int64_t size)
{
    return view->shape[axis] == size;
}

static void require_operands(OpCall *op, const AttentionCall *call)
{
    const Layout *layout = layout_of(call);
    op_require(op, layout != NULL, "inputLayout", "value", op->invalid, "inputLayout is %.16s, which is not one of %s%s",
               call->layout,
               call->infers ? "BSH BSND BNSD BNSD_BSND" : call->packed ? "TND" : "BSH SBH BSND BNSD",
               call->prompts ? " TND" : call->newest ? " TND TND_NTD NTD_TND BNSD_NBSD BSND_NBSD BSH_NBSD" : "");
    const Operand *operands[] = {call->query, call->key, call->value};
    for (int i = 0; i < 3 && !op_refused(op); i++) {
        const bool either = i > 0 && is_there(call->pages);
        op_require_rank(op, operands[i], either ? 3 : layout->rank, layout->rank);
    }
    op_require_range(op, call->infers ? "numHeads" : "headNum", call->heads, 1, HEAD_LIMIT);
    if (op_refused(op)) {
        return;
    }
    const int64_t width = call->query->view.shape[layout->head < 0 ? layout->depth : layout->head];
    op_require(op, layout->head < 0 ? width % call->heads == 0 : width == call->heads, call->query->name, "heads",
               op->invalid, "%s is %s in layout %s, its heads are %lld", call->query->name,
               op_shape_text(op, call->query), call->layout, (long long)call->heads);
}

static void require_keys(OpCall *op, const AttentionCall *call)
{
    if (op_refused(op)) {
        return;
    }
    const Operand4 of = split_heads(call);
    const Layout *layout = key_layout(call);
    const int64_t depth = of.query.shape[3], heads = of.key.shape[1], width = call->key->view.shape[layout->depth];
    const bool whole = layout->head >= 0 ? of.key.shape[3] == depth : depth > 0 && width % depth == 0;
    const bool batches = is_there(call->pages) || is(&of.key, 0, is_listed(call) ? 1 : of.query.shape[0]);
    op_require(op, batches && whole && heads > 0 && call->heads % heads == 0,
               call->key->name, "shape", op->invalid,
               "%s is %s, %s is %s in layout %s: batches and head sizes are equal, and the query's heads, %lld, are a "
               "multiple of the key's",
               call->key->name, op_shape_text(op, call->key), call->query->name, op_shape_text(op, call->query),
               call->layout, (long long)call->heads);
    const bool divides = layout->head >= 0 || (heads > 0 && call->value->view.shape[layout->depth] % heads == 0);
    op_require(op, divides && is(&of.value, 0, of.key.shape[0]) && is(&of.value, 1, heads) &&
                       is(&of.value, 2, of.key.shape[2]) && of.value.shape[3] <= depth,
               call->value->name, "shape", op->invalid,
               "%s is %s, %s is %s: they may differ in the head size only, and the value's is not larger",
               call->value->name, op_shape_text(op, call->value), call->key->name, op_shape_text(op, call->key));
}

/* Cumulative lengths that end with all tokens. */
static void require_ends(OpCall *op, IntArguments ends, int64_t tokens)
{
    bool rises = ends.count > 0;
    for (int64_t i = 0; i < ends.count && !op_refused(op); i++) {
        rises = rises && ends.values[i] >= begin_of(ends, i);
    }
    op_require(op, op_refused(op) || (rises && ends.values[ends.count - 1] == tokens), ends.name, "values", op->invalid,
               "%s has to rise to the number of tokens, %lld", ends.name, (long long)tokens);
}

static void require_sequences(OpCall *op, const AttentionCall *call)
{
    if (op_refused(op) || !call->packed) {
        return;
    }
    const Operand4 of = split_heads(call);
    require_ends(op, call->query_ends, of.query.shape[2]);
    if (is_there(call->pages)) {
        return;
    }
    require_ends(op, call->key_ends, of.key.shape[2]);
    op_require(op, call->key_ends.count == call->query_ends.count, call->key_ends.name, "length", op->invalid,
               "%s has %lld entries, %s has %lld", call->key_ends.name, (long long)call->key_ends.count,
               call->query_ends.name, (long long)call->query_ends.count);
}

static int64_t longest(const AttentionCall *call, IntArguments ends, int64_t whole)
{
    int64_t most = call->packed ? 0 : whole;
    for (int64_t i = 0; call->packed && i < ends.count; i++) {
        const int64_t length = ends.values[i] - begin_of(ends, i);
        most = length > most ? length : most;
    }
    return most;
}

/* A mask by its last two dimensions, or four: inference leaves out those of size 1. */
static View mask_view(const AttentionCall *call, int64_t rows)
{
    View view = call->mask->view;
    if (!call->infers || view.rank < 2 || view.rank > 3 || (view.rank == 2 && rows != 1)) {
        return view;
    }
    /* [batch, keys] of one row, or [batch, rows, keys] */
    const View own = view;
    const int32_t last = own.rank - 1;
    const int64_t shape[] = {own.shape[0], 1, last == 2 ? own.shape[1] : 1, own.shape[last]};
    const int64_t strides[] = {own.strides[0], 0, last == 2 ? own.strides[1] : 0, own.strides[last]};
    view.rank = 4;
    memcpy(view.shape, shape, sizeof shape);
    memcpy(view.strides, strides, sizeof strides);
    return view;
}

/* [batch or 1, head or 1, rows (or 1), keys], or the last two: at least as long as packed sequences. */
static bool covers(const AttentionCall *call, const View *view, bool one_row)
{
    const Operand4 of = split_heads(call);
    const int32_t row = view->rank - 2;
    const int64_t rows = longest(call, call->query_ends, of.query.shape[2]);
    const bool turns = call->packed && !is_there(call->pages);
    const int64_t keys = turns ? longest(call, call->key_ends, 0) : shared_keys(call) + most_keys(call, &of);
    const int64_t batches = sequence_count(call, &of);
    const bool longer = call->packed || call->infers;
    if ((view->rank != 2 && view->rank != 4) ||
        (view->rank == 4 && ((view->shape[0] != 1 && view->shape[0] != batches) ||
                             (view->shape[1] != 1 && view->shape[1] != call->heads)))) {
        return false;
    }
    const bool fits_rows = view->shape[row] == rows || (longer && view->shape[row] > rows);
    return (fits_rows || (one_row && view->shape[row] == 1)) &&
           (view->shape[row + 1] == keys || (longer && view->shape[row + 1] > keys));
}

static bool is_triangle(const AttentionCall *call, const View *view)
{
    const int32_t row = view->rank - 2;
    return (view->rank == 2 || (view->rank == 4 && is(view, 0, 1) && is(view, 1, 1))) &&
           is(view, row, call->mode == MODE_PREFIX_SMALL ? PREFIX_ROWS : TRIANGLE) && is(view, row + 1, TRIANGLE);
}

static void require_masks(OpCall *op, const AttentionCall *call)
{
    if (op_refused(op)) {
        return;
    }
    const Operand4 of = split_heads(call);
    const View mask = mask_view(call, of.query.shape[2]);
    const bool fits = mask_is_read(call) ? covers(call, &mask, false) : is_triangle(call, &mask);
    op_require(op, !op_given(call->mask) || fits, call->mask->name, "shape", op->invalid,
               "%s is %s with sparseMode %lld", call->mask->name, op_shape_text(op, call->mask), (long long)call->mode);
    op_require(op, !op_given(call->mask) || (call->mode != MODE_DEFAULT && call->mode != MODE_BAND) ||
                       near(call->before) + near(call->after) >= 0,
               "preTokens", "band", op->invalid, "preTokens is %lld, nextTokens %lld: they do not overlap",
               (long long)call->before, (long long)call->after);
    if (is_there(call->shift)) {
        op_require(op, call->shift->view.rank == 4 && covers(call, &call->shift->view, true), call->shift->name,
                   "shape", op->invalid, "%s is %s; %s is %s, %s is %s", call->shift->name,
                   op_shape_text(op, call->shift), call->query->name, op_shape_text(op, call->query),
                   call->key->name, op_shape_text(op, call->key));
    }
    const bool prefixes = op_given(call->mask) && (call->mode == MODE_PREFIX || call->mode == MODE_PREFIX_SMALL);
    op_require(op, !prefixes || call->prefix.count == sequence_count(call, &of), "prefixOptional", "length",
               op->invalid, "prefixOptional has %lld entries; sparseMode %lld needs one for each of %lld batches",
               (long long)call->prefix.count, (long long)call->mode, (long long)sequence_count(call, &of));
}

static int64_t score_count(const AttentionCall *call)
{
    const Operand4 of = split_heads(call);
    if (!call->packed) {
        return of.query.shape[0] * call->heads * of.query.shape[2] * of.key.shape[2];
    }
    int64_t count = 0;
    for (int64_t s = 0; s < call->query_ends.count; s++) {
        count += call->heads * (call->query_ends.values[s] - begin_of(call->query_ends, s)) *
                 (call->key_ends.values[s] - begin_of(call->key_ends, s));
    }
    return count;
}

static void require_dropout(OpCall *op, const AttentionCall *call)
{
    op_require(op, call->keep > 0 && call->keep <= 1, "keepProb", "range", op->invalid,
               "keepProb is %g; it has to be above 0 and at most 1", call->keep);
    if (op_refused(op) || !op_given(call->drop)) {
        return;
    }
    const int64_t bytes = us_view_elements(&call->drop->view);
    op_require(op, call->drop->view.rank == 1 && bytes >= (score_count(call) + 7) / 8, call->drop->name, "elements",
               op->invalid, "%s is %s; there are %lld scores, a bit each", call->drop->name,
               op_shape_text(op, call->drop), (long long)score_count(call));
}

/* [batch, head, row, 8]; packed [token, head, 8] or [head, token, 8]. */
static View statistic_view(const AttentionCall *call, const View *view)
{
    View result = *view;
    if (call->packed) {
        const bool by_token = call->infers || view->shape[0] == call->query->view.shape[0];
        const int64_t strides[] = {0, view->strides[by_token], view->strides[!by_token], view->strides[2]};
        const int64_t shape[] = {1, view->shape[by_token], view->shape[!by_token], view->shape[2]};
        memcpy(result.strides, strides, sizeof strides);
        memcpy(result.shape, shape, sizeof shape);
        result.rank = 4;
    }
    return result;
}

static int copies_of(const AttentionCall *call)
{
    return call->infers ? 1 : COPIES;
}

static void require_statistic(OpCall *op, const AttentionCall *call, const Operand *statistic)
{
    if (op_refused(op) || !is_there(statistic)) {
        return;
    }
    const Operand4 of = split_heads(call);
    const bool ranked = statistic->view.rank == (call->packed ? 3 : 4);
    const View view = ranked ? statistic_view(call, &statistic->view) : us_view_absent();
    op_require(op, ranked && is(&view, 0, of.query.shape[0]) && is(&view, 1, call->heads) &&
                       is(&view, 2, of.query.shape[2]) && is(&view, 3, copies_of(call)),
               statistic->name, "shape", op->invalid, "%s is %s; it has %d numbers for every row of every head",
               statistic->name, op_shape_text(op, statistic), copies_of(call));
}

/* The result and its gradient: as the query, with the value's head size. */
static void require_result(OpCall *op, const AttentionCall *call, const Operand *result)
{
    if (op_refused(op) || !is_there(result)) {
        return;
    }
    const Operand4 of = split_heads(call);
    const Layout *layout = result_layout(call);
    const bool ranked = result->view.rank == layout->rank;
    const int64_t width = ranked ? result->view.shape[layout->depth] : 0;
    const View view = ranked ? by_heads(layout, &result->view, call->heads) : us_view_absent();
    op_require(op, ranked && (layout->head >= 0 || width == call->heads * of.value.shape[3]) &&
                       is(&view, 0, of.query.shape[0]) && is(&view, 1, call->heads) &&
                       is(&view, 2, of.query.shape[2]) && is(&view, 3, of.value.shape[3]),
               result->name, "shape", op->invalid, "%s is %s; it has the rows of %s, %s, and the head size of %s, %s",
               result->name, op_shape_text(op, result), call->query->name, op_shape_text(op, call->query),
               call->value->name, op_shape_text(op, call->value));
}

void op_require_attention(OpCall *op, const AttentionCall *call)
{
    require_operands(op, call);
    require_keys(op, call);
    require_sequences(op, call);
    op_require_range(op, "sparseMode", call->mode, 0, call->packed ? MODE_OUTSIDE_LEFT_UP : MODE_PREFIX_SMALL);
    require_masks(op, call);
    require_dropout(op, call);
    require_statistic(op, call, call->maximum);
    require_statistic(op, call, call->sum);
    require_result(op, call, call->out);
    require_result(op, call, call->out_gradient);
}

const Operand *op_first(OpCall *op, Operands list)
{
    op_require(op, list.count > 0, list.name, "length", op->invalid, "%s has no tensors", list.name);
    return list.count > 0 ? list.items[0] : NULL;
}

bool op_is_token(OpCall *op, const Operand *query, const char *name)
{
    const Layout *layout = layout_of(&(AttentionCall){.layout = name, .infers = true});
    return !op_refused(op) && layout != NULL && query->view.rank == layout->rank && query->view.shape[layout->row] == 1;
}

/* Each of them is 0 to the size; one, or one for every batch and maybe more. */
static void require_lengths(OpCall *op, IntArguments lengths, int64_t batches, int64_t size)
{
    bool fits = lengths.count <= 1 || lengths.count >= batches;
    for (int64_t i = 0; fits && i < lengths.count; i++) {
        fits = lengths.values[i] >= 0 && lengths.values[i] <= size;
    }
    op_require(op, fits, lengths.name, "values", op->invalid,
               "%s has %lld entries: one or %lld of 0 to %lld each are needed", lengths.name, (long long)lengths.count,
               (long long)batches, (long long)size);
}

static bool are_alike_but(const View *a, const View *b, int32_t axis)
{
    bool alike = a->rank == b->rank && a->dtype == b->dtype;
    for (int32_t i = 0; alike && i < a->rank; i++) {
        alike = i == axis || a->shape[i] == b->shape[i];
    }
    return alike;
}

/* One tensor, or one for every batch that differs from the others in its rows only. */
static void require_lists(OpCall *op, const AttentionCall *call)
{
    const Operands keys = call->keys, values = call->values;
    if (op_refused(op) || keys.count == 0) {
        return;
    }
    const Layout *layout = layout_of(call);
    const int64_t batches = call->packed ? 1 : call->query->view.shape[layout->batch];
    op_require(op, keys.count == 1 || (keys.count == batches && !is_there(call->pages)), keys.name, "count",
               op->invalid, "%s has %d tensors; there are %lld batches%s", keys.name, (int)keys.count,
               (long long)batches, is_there(call->pages) ? ", and pages" : "");
    op_require(op, values.count == keys.count, values.name, "count", op->invalid, "%s has %d tensors, %s has %d",
               values.name, (int)values.count, keys.name, (int)keys.count);
    for (int32_t i = 1; i < keys.count && !op_refused(op); i++) {
        const View *key = &keys.items[i]->view, *value = &values.items[i]->view;
        op_require(op, are_alike_but(key, &call->key->view, layout->row), keys.name, "alike", op->invalid,
                   "%s[%d] is %s, %s[0] is %s: they may differ in their rows only", keys.name, (int)i,
                   op_shape_text(op, keys.items[i]), keys.name, op_shape_text(op, call->key));
        op_require(op, are_alike_but(value, &call->value->view, layout->row) &&
                           value->shape[layout->row] == key->shape[layout->row],
                   values.name, "alike", op->invalid, "%s[%d] is %s, %s[%d] is %s", values.name, (int)i,
                   op_shape_text(op, values.items[i]), keys.name, (int)i, op_shape_text(op, keys.items[i]));
    }
}

static void require_pages(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    if (op_refused(op) || !is_there(call->pages)) {
        return;
    }
    const int64_t size = of->key.shape[2], batches = sequence_count(call, of);
    const bool small = of->query.shape[2] == 1 || of->query.shape[3] == LATENT_DEPTH;
    const int64_t unit = small ? BLOCK_OF_TOKENS : BLOCK_OF_ROWS;
    op_require(op, call->key->view.rank == 3 || layout_of(call)->head == 1 || call->packed, call->key->name,
               "pages", op->invalid, "%s is %s: pages by heads are for a query of BNSD", call->key->name,
               op_shape_text(op, call->key));
    op_require(op, call->key->view.rank == 4 || call->key->view.shape[2] <= WIDTH_LIMIT, call->key->name, "width",
               op->invalid, "%s is %s: pages by rows are at most %d wide", call->key->name,
               op_shape_text(op, call->key), WIDTH_LIMIT);
    op_require(op, call->block_size == size && size > 0 && size <= BLOCK_LIMIT && size % unit == 0, "blockSize",
               "value", op->invalid, "blockSize is %lld, %s is %s: a page has a multiple of %lld keys, at most %d",
               (long long)call->block_size, call->key->name, op_shape_text(op, call->key), (long long)unit,
               BLOCK_LIMIT);
    op_require(op, call->pages->view.rank == 2 && is(&call->pages->view, 0, batches), call->pages->name,
               "shape", op->invalid, "%s is %s; there are %lld batches", call->pages->name,
               op_shape_text(op, call->pages), (long long)batches);
    op_require(op, call->key_lengths.count > 0, call->key_lengths.name, "pages", op->invalid,
               "%s is needed with pages", call->key_lengths.name);
}

/* Whether some row sees no key, which a zero point cannot stand for. */
static bool leaves_rows(const AttentionCall *call, const Operand4 *of)
{
    bool leaves = false;
    for (int64_t s = 0; s < of->query.shape[0]; s++) {
        const int64_t rows = length_of(call->query_lengths, s, of->query.shape[2]);
        const int64_t keys = shared_keys(call) + length_of(call->key_lengths, s, key_room(call, of, s));
        const int64_t before = near(call->before), after = near(call->after);
        leaves |= call->mode == MODE_DEFAULT && is_there(call->mask) && (rows - keys - before > 0 || after < 0);
        leaves |= call->mode == MODE_RIGHT_DOWN && keys < rows;
        leaves |= call->mode == MODE_BAND && (before < 0 || after + keys - rows < 0);
    }
    return leaves;
}

/* Of a result of ACL_INT8. */
static void require_result_scale(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    if (op_refused(op)) {
        return;
    }
    const Operand *scale = call->out_scale, *offset = call->out_offset;
    const bool quantizes = call->out->dtype == ACL_INT8;
    op_require(op, call->out->dtype == (quantizes ? ACL_INT8 : call->query->dtype) && quantizes == is_there(scale),
               call->out->name, "types", op->invalid, "%s is %s, %s is %s, and its scale is %s", call->out->name,
               acl_dtype_name(call->out->dtype), call->query->name, acl_dtype_name(call->query->dtype),
               is_there(scale) ? "given" : "not given");
    if (scale == NULL || !quantizes || op_refused(op)) {
        op_require(op, !is_there(offset) || quantizes, is_there(offset) ? offset->name : "", "alone", op->invalid,
                   "%s is given though %s is not quantized", is_there(offset) ? offset->name : "", call->out->name);
        return;
    }
    const int64_t channels = call->heads * of->value.shape[3], count = us_view_elements(&scale->view);
    op_require(op, scale->dtype == ACL_FLOAT || call->query->dtype == ACL_BF16, scale->name, "types", op->invalid,
               "%s is %s, %s is %s", scale->name, acl_dtype_name(scale->dtype), call->query->name,
               acl_dtype_name(call->query->dtype));
    op_require(op, count == 1 || count == channels, scale->name, "elements", op->invalid,
               "%s is %s: it has one element, or one for each of %lld channels", scale->name, op_shape_text(op, scale),
               (long long)channels);
    op_require(op, count == 1 || (of->value.shape[3] % CHANNEL_UNIT == 0 && !is_there(call->maximum)), scale->name,
               "channels", op->invalid,
               "%s is %s: channels need head sizes in multiples of %d, %lld is none, and no softmaxLse", scale->name,
               op_shape_text(op, scale), CHANNEL_UNIT, (long long)of->value.shape[3]);
    op_require_same_shape(op, offset, scale);
    op_require_same_dtype(op, offset, scale);
    op_require(op, call->mode != MODE_BAND || (call->before >= 0 && call->after >= 0), "preTokens", "quantized",
               op->invalid, "preTokens is %lld, nextTokens %lld: a quantized result has no band of negative ones",
               (long long)call->before, (long long)call->after);
    op_require(op, !is_there(offset) || !leaves_rows(call, of), is_there(offset) ? offset->name : "", "rows",
               op->invalid, "%s is given, and with sparseMode %lld some rows have no keys",
               is_there(offset) ? offset->name : "", (long long)call->mode);
}

AttentionCall op_inference_call(AttentionCall call)
{
    const IntArguments none = {.name = ""};
    call.packed = (call.newest || call.prompts) && strchr(call.layout, 'T') != NULL;
    if (call.packed) {
        const IntArguments keys = call.key_lengths;
        call.query_ends = call.query_lengths;
        call.query_lengths = none;
        call.key_ends = is_there(call.pages) ? none : keys;
        call.key_lengths = is_there(call.pages) ? keys : none;
    }
    return call;
}

/* The shape of `whole`, but for the depth. */
static bool is_rotary(const AttentionCall *call, const Layout *layout, const Operand *part, const Operand *whole,
                      int64_t heads)
{
    if (part->view.rank != layout->rank || whole->view.rank != layout->rank) {
        return false;
    }
    View a = by_heads(layout, &part->view, heads), b = by_heads(layout, &whole->view, heads);
    const bool fits = a.shape[3] == ROTARY_DEPTH && (layout->head >= 0 || part->view.shape[2] == heads * ROTARY_DEPTH);
    a.shape[3] = b.shape[3];
    return fits && us_view_same_shape(&a, &b) && part->dtype == call->query->dtype;
}

/* Parts with the rotary embedding (V3 on), for query heads of 512 with keys in pages, or of 128 packed. */
static void require_rotary(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    if (op_refused(op) || !call->newest) {
        return;
    }
    const Operand *query = call->rotary_query, *key = call->rotary_key;
    op_require(op, op_given(query) == op_given(key), query->name, "pair", op->invalid, "%s and %s are given together",
               query->name, key->name);
    const int64_t depth = of->query.shape[3], heads = of->key.shape[1];
    const bool given = op_given(query) && op_given(key), latent = depth == LATENT_DEPTH;
    const bool fits = latent ? is_there(call->pages) && heads == 1 && of->query.shape[2] > 0
                             : depth == PART_DEPTH && call->packed;
    op_require(op, !given || fits, call->query->name, "rotary", op->invalid,
               "%s is %s, %s is %s: with rotary parts heads have 512 numbers, of one key head and with pages, or 128 "
               "with packed tokens",
               call->query->name, op_shape_text(op, call->query), call->key->name, op_shape_text(op, call->key));
    const bool turned = strstr(call->layout, "_N") != NULL;
    op_require(op, !turned || (given && latent), "inputLayout", "rotary", op->invalid,
               "inputLayout is %.16s: it is for rotary parts and heads of 512", call->layout);
    if (given && !op_refused(op)) {
        op_require(op, is_rotary(call, layout_of(call), query, call->query, call->heads), query->name, "shape",
                   op->invalid, "%s is %s, %s is %s: it has 64 numbers for each head, and its type", query->name,
                   op_shape_text(op, query), call->query->name, op_shape_text(op, call->query));
        op_require(op, is_rotary(call, key_layout(call), key, call->key, heads), key->name, "shape", op->invalid,
                   "%s is %s, %s is %s: it has 64 numbers for each head, and its type", key->name,
                   op_shape_text(op, key), call->key->name, op_shape_text(op, call->key));
    }
}

static bool are_packed_depths(const AttentionCall *call, const Operand4 *of)
{
    const int64_t depth = of->query.shape[3], value = of->value.shape[3], heads = call->heads;
    if (call->prompts) {
        return depth == JOINT_DEPTH && (value == PART_DEPTH || value == JOINT_DEPTH) && of->key.shape[1] == heads &&
               heads >= 8 && heads <= 128 && (heads & (heads - 1)) == 0;
    }
    if (depth == LATENT_DEPTH) {
        return op_given(call->rotary_query) && value == depth && strcmp(call->layout, "NTD_TND") != 0;
    }
    const bool either = value == PART_DEPTH || (value == JOINT_DEPTH && strcmp(call->layout, "TND") == 0);
    return depth == PART_DEPTH ? value == PART_DEPTH : depth == JOINT_DEPTH && either;
}

/* What packed tokens, and heads of 512 with rotary parts, are made for. */
static void require_packed(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    const bool latent = call->newest && op_given(call->rotary_query) && of->query.shape[3] == LATENT_DEPTH;
    if (op_refused(op) || (!call->packed && !latent)) {
        return;
    }
    op_require(op, !call->packed || (are_packed_depths(call, of) &&
                                     (of->query.shape[3] == LATENT_DEPTH || call->query->dtype == ACL_BF16)),
               call->query->name, "packed", op->invalid,
               "%s is %s of %s, %s is %s: packed heads have %s", call->query->name, op_shape_text(op, call->query),
               acl_dtype_name(call->query->dtype), call->value->name, op_shape_text(op, call->value),
               call->prompts ? "192, values 128 or 192, of ACL_BF16, 8 to 128 of them, as many as the keys"
                             : "128, or 192 and values of 128 or 192, of ACL_BF16, or 512 with rotary parts");
    const bool band = call->mode == MODE_BAND && !latent && !call->prompts;
    op_require(op, is_there(call->mask) ? call->mode == MODE_RIGHT_DOWN || band
                                        : call->mode == MODE_DEFAULT || call->mode == MODE_ALL,
               "sparseMode", "packed", op->invalid, "sparseMode is %lld %s a mask: it is 0 without one, 3%s with one",
               (long long)call->mode, is_there(call->mask) ? "with" : "without",
               latent || call->prompts ? "" : " or 4");
    op_require(op, !is_there(call->shift) && !is_listed(call) && !is_there(call->out_scale) &&
                       call->key->dtype != ACL_INT8 &&
                       !(latent && is_there(call->maximum)),
               "inputLayout", "partners", op->invalid,
               "inputLayout is %.16s, heads have %lld: neither a shift, nor a list of keys, nor integers%s",
               call->layout, (long long)of->query.shape[3], latent ? ", nor softmaxLse" : "");
}

/* [1, head, 1, depth] of a number for all channels, or one for each. */
static View channel_view(const View *own, int64_t heads, int64_t depth)
{
    const int64_t count = us_view_elements(own), step = count == 1 ? 0 : own->strides[own->rank - 1];
    int64_t of_head = step * depth;
    for (int32_t axis = 0; axis < own->rank - 1; axis++) {
        of_head = own->shape[axis] > 1 ? own->strides[axis] : of_head;
    }
    return (View){.data = own->data, .dtype = own->dtype, .rank = 4, .shape = {1, heads, 1, depth},
                  .strides = {0, count == 1 ? 0 : of_head, 0, step}};
}

/* Rows of every batch: [1, …] with heads, head size and type of its own ones. */
static bool is_shared(const AttentionCall *call, const Operand *shared, const Operand *own)
{
    const Layout *layout = layout_of(call);
    if (shared->view.rank != layout->rank) {
        return false;
    }
    View view = own->view;
    view.shape[layout->batch] = 1;
    return are_alike_but(&shared->view, &view, layout->row);
}

static void require_shared(OpCall *op, const AttentionCall *call)
{
    const Operand *key = call->shared_key, *value = call->shared_value;
    if (op_refused(op) || key == NULL) {
        return;
    }
    op_require(op, op_given(key) == op_given(value), key->name, "pair", op->invalid, "%s and %s are given together",
               key->name, value->name);
    op_require(op, op_given(key) || call->shared_length.count == 0, call->shared_length.name, "alone", op->invalid,
               "%s is given without %s", call->shared_length.name, key->name);
    if (op_refused(op) || !op_given(key)) {
        return;
    }
    op_require(op, !is_there(call->pages) && !is_listed(call) && !call->packed && !is_there(call->rotary_query) &&
                       call->key->dtype != ACL_INT8,
               key->name, "partners", op->invalid,
               "%s is given: not with pages, lists, packed tokens, rotary parts or integer keys", key->name);
    const int32_t row = layout_of(call)->row;
    op_require(op, is_shared(call, key, call->key), key->name, "shape", op->invalid, "%s is %s of %s, %s is %s",
               key->name, op_shape_text(op, key), acl_dtype_name(key->dtype), call->key->name,
               op_shape_text(op, call->key));
    op_require(op, is_shared(call, value, call->value) && value->view.shape[row] == key->view.shape[row], value->name,
               "shape", op->invalid, "%s is %s of %s, %s is %s, %s is %s", value->name, op_shape_text(op, value),
               acl_dtype_name(value->dtype), call->value->name, op_shape_text(op, call->value), key->name,
               op_shape_text(op, key));
    const IntArguments length = call->shared_length;
    const bool fits = length.count == 0 || (length.count == 1 && length.values[0] >= 0 &&
                                            length.values[0] <= key->view.shape[row]);
    op_require(op, fits, length.name, "value", op->invalid, "%s has %lld entries: one of 0 to %lld is needed",
               length.name, (long long)length.count, (long long)key->view.shape[row]);
}

/* ---- integer keys and values ---- */

/* What numbers there are: one for a channel, or for all; for a token; for a head; for a token of a head; the last but
 * one and the second one also in pages. */
enum { OF_CHANNELS, OF_TOKENS, OF_HEADS, OF_HEAD_TOKENS, OF_PAGED_TOKENS, OF_PAGED_HEAD_TOKENS, TOKEN_LIMIT = 16 };

typedef struct Dequantization {
    const Operand *scale, *offset;
    int64_t mode;
    bool joint;
    int half; /* of a joint first dimension */
} Dequantization;

static Dequantization dequantization_of(const AttentionCall *call, bool value)
{
    if (is_there(call->key_scale) || is_there(call->value_scale)) {
        return (Dequantization){value ? call->value_scale : call->key_scale,
                                value ? call->value_offset : call->key_offset,
                                value ? call->value_mode : call->key_mode, false, 0};
    }
    /* With several rows the page ignores the mode: numbers of float32 are those of tokens. */
    const bool one = split_heads(call).query.shape[2] == 1;
    const bool tokens = is_there(call->joint_scale) && call->joint_scale->dtype == ACL_FLOAT;
    return (Dequantization){call->joint_scale, call->joint_offset, one ? call->joint_mode : tokens, true, value};
}

static View half_of(const Dequantization *of, const Operand *operand)
{
    View view = operand->view;
    if (of->joint && view.rank > 0) {
        view.data = (char *)view.data + of->half * view.strides[0] * (int64_t)us_dtype_size(view.dtype);
        view.rank--;
        memmove(view.shape, view.shape + 1, (size_t)view.rank * sizeof *view.shape);
        memmove(view.strides, view.strides + 1, (size_t)view.rank * sizeof *view.strides);
    }
    return view;
}

/* [batch or page, head, row, depth] by strides of 0, or absent where the shape does not fit the mode. */
static View numbers_view(const AttentionCall *call, const Dequantization *of, const Operand *operand)
{
    if (!is_there(operand) || (of->joint && (operand->view.rank == 0 || operand->view.shape[0] != 2))) {
        return us_view_absent();
    }
    const Operand4 split = split_heads(call);
    const bool of_value = of->half || operand == call->value_scale || operand == call->value_offset;
    const View own = half_of(of, operand), *matrix = of_value ? &split.value : &split.key;
    const int64_t heads = matrix->shape[1], depth = matrix->shape[3], count = us_view_elements(&own);
    const bool in_pages = of->mode >= OF_PAGED_TOKENS;
    const bool by_heads_too = of->mode == OF_HEAD_TOKENS || of->mode == OF_PAGED_HEAD_TOKENS;
    if (of->mode == OF_CHANNELS) {
        const int64_t last = own.rank == 0 ? 1 : own.shape[own.rank - 1];
        const bool fits = count == 1 || (count == heads * depth && (last == depth || last == count));
        return fits ? channel_view(&own, heads, depth) : us_view_absent();
    }
    const int32_t axes = by_heads_too ? 3 : of->mode == OF_HEADS ? 1 : 2, first = own.rank - axes;
    if (first < 0) {
        return us_view_absent();
    }
    const int64_t *shape = own.shape + first, *strides = own.strides + first;
    View view = {.data = own.data, .dtype = own.dtype, .rank = 4, .shape = {1, heads, 1, depth}};
    if (of->mode == OF_HEADS) {
        view.strides[1] = strides[0];
        return count == heads && shape[0] == heads ? view : us_view_absent();
    }
    const int64_t batches = in_pages ? split.key.shape[0] : sequence_count(call, &split);
    const int64_t rows = shape[axes - 1], room = in_pages ? split.key.shape[2] : most_keys(call, &split);
    view.shape[0] = batches;
    view.shape[2] = rows;
    view.strides[0] = strides[0];
    view.strides[1] = by_heads_too ? strides[1] : 0;
    view.strides[2] = strides[axes - 1];
    const bool fits = shape[0] == batches && (!by_heads_too || shape[1] == heads) && rows >= room &&
                      count == shape[0] * (by_heads_too ? heads : 1) * rows;
    return fits ? view : us_view_absent();
}

static void require_numbers(OpCall *op, const AttentionCall *call, const Dequantization *of)
{
    if (op_refused(op) || !is_there(of->scale)) {
        return;
    }
    const bool tokens = of->mode != OF_CHANNELS && of->mode != OF_HEADS;
    op_require(op, of->scale->dtype == (tokens ? ACL_FLOAT : call->query->dtype), of->scale->name, "types",
               op->invalid, "%s is %s, %s is %s: numbers of tokens are ACL_FLOAT, others have the query's type",
               of->scale->name, acl_dtype_name(of->scale->dtype), call->query->name,
               acl_dtype_name(call->query->dtype));
    const View view = numbers_view(call, of, of->scale);
    op_require(op, !us_view_is_absent(&view), of->scale->name, "shape", op->invalid,
               "%s is %s, %s is %s, and the mode is %lld", of->scale->name, op_shape_text(op, of->scale),
               call->key->name, op_shape_text(op, call->key), (long long)of->mode);
    op_require_same_shape(op, of->offset, of->scale);
    op_require_same_dtype(op, of->offset, of->scale);
}

static bool is_mode(const AttentionCall *call, const Dequantization *key, const Dequantization *value, bool one)
{
    const int64_t last = key->joint || !one ? OF_TOKENS : is_there(call->pages) ? OF_PAGED_HEAD_TOKENS : OF_HEAD_TOKENS;
    const bool mixed = !key->joint && key->mode == OF_CHANNELS && value->mode == OF_TOKENS;
    return key->mode >= 0 && key->mode <= last && (value->mode == key->mode || mixed);
}

static void require_dequantization(OpCall *op, const AttentionCall *call, const Operand4 *of)
{
    if (op_refused(op) || (call->joint_scale == NULL && call->key_scale == NULL)) {
        return;
    }
    const Dequantization key = dequantization_of(call, false), value = dequantization_of(call, true);
    const bool one = of->query.shape[2] == 1, integers = call->key->dtype == ACL_INT8;
    op_require(op, integers == is_there(key.scale), call->key->name, "quantized", op->invalid,
               "%s is %s and its scale is %s", call->key->name, acl_dtype_name(call->key->dtype),
               is_there(key.scale) ? "given" : "not given");
    if (!key.joint) {
        op_require(op, is_there(value.scale) && is_there(value.offset) == is_there(key.offset), value.scale->name,
                   "pair", op->invalid, "scales, and offsets, of keys and of values are given together: %s",
                   value.scale->name);
    }
    const Operand *lonely = !key.joint                     ? NULL
                            : is_there(call->key_offset)   ? call->key_offset
                            : is_there(call->value_offset) ? call->value_offset
                            : is_there(key.scale)          ? NULL
                                                           : key.offset;
    op_require(op, !is_there(lonely), lonely != NULL ? lonely->name : "", "alone", op->invalid,
               "%s is given without a scale", lonely != NULL ? lonely->name : "");
    op_require(op, !integers || is_mode(call, &key, &value, one), key.joint ? "antiquantMode" : "keyAntiquantMode",
               "value", op->invalid, "the modes of keys and values are %lld and %lld, for %s", (long long)key.mode,
               (long long)value.mode, one ? "one token" : "several");
    const bool separate = of->query.shape[2] <= TOKEN_LIMIT && call->query->dtype == ACL_BF16 && !is_listed(call) &&
                          !is_there(call->pages);
    op_require(op, !integers || one || (key.joint ? call->query->dtype == ACL_FLOAT16 : separate), call->query->name,
               "dequantized", op->invalid, "%s is %s of %s: several rows with integer keys are of %s",
               call->query->name, op_shape_text(op, call->query), acl_dtype_name(call->query->dtype),
               key.joint ? "ACL_FLOAT16" : "ACL_BF16, at most 16, of one tensor without pages");
    require_numbers(op, call, &key);
    require_numbers(op, call, &value);
}

void op_require_inference(OpCall *op, const AttentionCall *call)
{
    require_operands(op, call);
    require_lists(op, call);
    require_keys(op, call);
    require_sequences(op, call);
    if (op_refused(op)) {
        return;
    }
    const Operand4 of = split_heads(call);
    require_pages(op, call, &of);
    require_rotary(op, call, &of);
    require_shared(op, call);
    require_dequantization(op, call, &of);
    require_packed(op, call, &of);
    if (op_refused(op)) {
        return;
    }
    op_require(op, of.key.shape[1] == (call->key_heads == 0 ? call->heads : call->key_heads), "numKeyValueHeads",
               "heads", op->invalid, "numKeyValueHeads is %lld, %s is %s", (long long)call->key_heads, call->key->name,
               op_shape_text(op, call->key));
    require_lengths(op, call->query_lengths, of.query.shape[0], of.query.shape[2]);
    require_lengths(op, call->key_lengths, sequence_count(call, &of), most_keys(call, &of));
    op_require_range(op, "sparseMode", call->mode, MODE_DEFAULT, MODE_BAND);
    require_masks(op, call);
    require_statistic(op, call, call->maximum);
    require_result(op, call, call->out);
    require_result_scale(op, call, &of);
}

/* ---- ends ---- */

/* A mask or a shift by sequence and head: stride 0 where it has one for all. */
static View by_scores(const View *view)
{
    View result = {.data = view->data, .dtype = view->dtype, .rank = 4};
    for (int32_t i = 0; i < 4; i++) {
        const int32_t axis = view->rank - 4 + i;
        result.shape[i] = axis < 0 ? 1 : view->shape[axis];
        result.strides[i] = result.shape[i] == 1 ? 0 : view->strides[axis];
    }
    return result;
}

enum { ATTENTION_VIEWS = 13, FIRST_LISTED = 24 };

typedef struct AttentionPlan {
    Attention *attention;
    size_t size;
    View views[ATTENTION_VIEWS];
} AttentionPlan;

static AttentionPlan plan_of(OpCall *op, const AttentionCall *call)
{
    AttentionPlan plan = {0};
    const Operand4 of = split_heads(call);
    const int64_t sequences = sequence_count(call, &of);
    plan.size = sizeof *plan.attention + (size_t)sequences * sizeof *plan.attention->of;
    plan.attention = executor_take(op->executor, plan.size);
    op_require(op, plan.attention != NULL, "executor", "exhausted", ACLNN_ERR_INNER_CREATE_EXECUTOR,
               "no host memory for the executor");
    if (op_refused(op)) {
        return plan;
    }
    const double scale = call->scale;
    const AttentionSizes sizes = {call->heads, of.key.shape[1], of.query.shape[3], of.value.shape[3], sequences};
    *plan.attention = (Attention){.sizes = sizes, .scale = (float)scale,
                                  .shift_scale = call->adds_after_scale ? 1 : (float)scale,
                                  .keep = (float)call->keep, .joins = call->infers, .copies = copies_of(call),
                                  .block = is_there(call->pages) ? of.key.shape[2] : 0, .listed = is_listed(call),
                                  .quantizes = is_there(call->out_scale), .shared = shared_keys(call),
                                  .dequantizes = call->infers && call->key->dtype == ACL_INT8,
                                  .scales_in_pages = dequantization_of(call, false).mode >= OF_PAGED_TOKENS,
                                  .rotary_depth = is_there(call->rotary_query) ? ROTARY_DEPTH : 0};
    describe_sequences(call, &of, plan.attention);
    plan.views[0] = of.query;
    plan.views[1] = of.key;
    plan.views[2] = of.value;
    for (int i = 3; i < 9; i++) {
        plan.views[i] = us_view_absent();
    }
    if (is_there(call->shift)) {
        plan.views[3] = by_scores(&call->shift->view);
    }
    if (mask_is_read(call)) {
        const View mask = mask_view(call, of.query.shape[2]);
        plan.views[4] = by_scores(&mask);
    }
    if (is_there(call->drop)) {
        plan.views[5] = call->drop->view;
    }
    plan.views[6] = by_heads(result_layout(call), &call->out->view, call->heads);
    if (is_there(call->maximum)) {
        plan.views[7] = statistic_view(call, &call->maximum->view);
    }
    if (is_there(call->sum)) {
        plan.views[8] = statistic_view(call, &call->sum->view);
    }
    return plan;
}

static View result_channels(const Operand *operand, const AttentionSizes *sizes)
{
    return is_there(operand) ? channel_view(&operand->view, sizes->heads, sizes->value_depth) : us_view_absent();
}

aclnnStatus op_attention(OpCall *op, const AttentionCall *call)
{
    if (op_refused(op) || op_empty(call->query)) {
        return op_plan_nothing(op);
    }
    const AttentionPlan plan = plan_of(op, call);
    const int32_t listed = is_listed(call) ? 2 * call->keys.count : 0, count = FIRST_LISTED + listed;
    PlannedView *planned = executor_take(op->executor, (size_t)count * sizeof *planned);
    View *views = executor_take(op->executor, (size_t)(listed + 1) * sizeof *views);
    op_require(op, planned != NULL && views != NULL, "executor", "exhausted", ACLNN_ERR_INNER_CREATE_EXECUTOR,
               "no host memory for the executor");
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const Operand *operands[] = {call->query, call->key, call->value, call->shift, call->mask, call->drop,
                                 call->out, call->maximum, call->sum};
    for (int i = 0; i < ATTENTION_VIEWS; i++) {
        planned[i] = i < 9 ? (PlannedView){operands[i], i < 6 ? VIEW_READ : VIEW_WRITE, &plan.views[i]}
                           : (PlannedView){NULL, VIEW_READ, NULL};
    }
    const AttentionSizes *sizes = &plan.attention->sizes;
    const View scale = result_channels(call->out_scale, sizes), offset = result_channels(call->out_offset, sizes);
    planned[ATTENTION_VIEWS] = (PlannedView){call->out_scale, VIEW_READ, &scale};
    planned[ATTENTION_VIEWS + 1] = (PlannedView){call->out_offset, VIEW_READ, &offset};
    planned[ATTENTION_VIEWS + 2] = (PlannedView){call->pages, VIEW_READ, NULL};
    View rotary_query = us_view_absent(), rotary_key = us_view_absent();
    if (is_there(call->rotary_query)) {
        rotary_query = by_heads(layout_of(call), &call->rotary_query->view, sizes->heads);
        rotary_key = by_heads(key_layout(call), &call->rotary_key->view, sizes->key_heads);
    }
    planned[ATTENTION_VIEWS + 3] = (PlannedView){call->rotary_query, VIEW_READ, &rotary_query};
    planned[ATTENTION_VIEWS + 4] = (PlannedView){call->rotary_key, VIEW_READ, &rotary_key};
    View shared_key = us_view_absent(), shared_value = us_view_absent();
    if (is_there(call->shared_key)) {
        shared_key = by_heads(layout_of(call), &call->shared_key->view, sizes->key_heads);
        shared_value = by_heads(layout_of(call), &call->shared_value->view, sizes->key_heads);
    }
    planned[ATTENTION_VIEWS + 9] = (PlannedView){call->shared_key, VIEW_READ, &shared_key};
    planned[ATTENTION_VIEWS + 10] = (PlannedView){call->shared_value, VIEW_READ, &shared_value};
    View numbers[4];
    for (int i = 0; i < 4; i++) {
        const Dequantization of = dequantization_of(call, i > 1);
        const Operand *operand = plan.attention->dequantizes ? (i % 2 == 0 ? of.scale : of.offset) : NULL;
        numbers[i] = numbers_view(call, &of, operand);
        planned[ATTENTION_VIEWS + 5 + i] = (PlannedView){operand, VIEW_READ, &numbers[i]};
    }
    for (int32_t i = 0; i < listed; i++) {
        const Operand *item = (i % 2 == 0 ? call->keys : call->values).items[i / 2];
        views[i] = by_heads(layout_of(call), &item->view, sizes->key_heads);
        planned[FIRST_LISTED + i] = (PlannedView){item, VIEW_READ, &views[i]};
    }
    return op_plan_views(op, us_attention, plan.attention, plan.size, count, planned);
}

aclnnStatus op_attention_backward(OpCall *op, const AttentionCall *call)
{
    if (op_refused(op) || op_empty(call->query)) {
        return op_plan_nothing(op);
    }
    AttentionPlan plan = plan_of(op, call);
    const Operand *operands[] = {call->query, call->key, call->value, call->shift, call->mask, call->drop, call->out,
                                 call->maximum, call->sum, call->out_gradient, call->query_gradient,
                                 call->key_gradient, call->value_gradient};
    if (!op_refused(op)) {
        const Layout *layout = layout_of(call);
        const int64_t key_heads = plan.attention->sizes.key_heads;
        const int64_t heads[] = {call->heads, call->heads, key_heads, key_heads};
        for (int i = 9; i < ATTENTION_VIEWS; i++) {
            plan.views[i] = by_heads(layout, &operands[i]->view, heads[i - 9]);
        }
    }
    PlannedView planned[ATTENTION_VIEWS];
    for (int i = 0; i < ATTENTION_VIEWS; i++) {
        planned[i] = (PlannedView){operands[i], i < 10 ? VIEW_READ : VIEW_WRITE, &plan.views[i]};
    }
    return op_plan_views(op, us_attention_backward, plan.attention, plan.size, ATTENTION_VIEWS, planned);
}
