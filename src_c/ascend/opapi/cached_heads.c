#include "ascend/opapi/cached_heads.h"

#include "kernels/attention/cached_heads.h"
#include "kernels/sizes.h"

enum { APART_KEYS = 192, APART_VALUES = 128, APART_TURNED = 64, APART_HEADS = 8, JOINT_DEPTH = 128 };

static int64_t block_of(const Operand *cache)
{
    return op_cache_block(&cache->view);
}

/* ---- what all operators have ---- */

/* A cache of the type of x, or of int8 with a scale and perhaps an offset, whose shapes are right. */
static void require_quantization(OpCall *op, const Operand *x, const Operand *cache, const Operand *scale, const Operand *offset,
                                 bool scale_fits, bool offset_fits)
{
    const bool integers = cache->dtype == ACL_INT8;
    op_require(op, integers || cache->dtype == x->dtype, cache->name, "type", op->invalid,
               "%s is neither of the type of %s nor of ACL_INT8", cache->name, x->name);
    op_require(op, integers == op_given(scale), scale->name, "given", op->invalid, "%s is %s, and %s is of %s", scale->name,
               op_given(scale) ? "given" : "NULL", cache->name, acl_dtype_name(cache->dtype));
    op_require(op, op_given(scale) || !op_given(offset), offset->name, "given", op->invalid, "%s is given, %s is not",
               offset->name, scale->name);
    op_require(op, !op_given(scale) || scale_fits, scale->name, "shape", op->invalid, "%s is %s, which is not for these heads",
               scale->name, op_shape_text(op, scale));
    op_require(op, !op_given(offset) || offset_fits, offset->name, "shape", op->invalid, "%s is %s, which is not for these heads",
               offset->name, op_shape_text(op, offset));
}

static void require_whole_blocks(OpCall *op, const Operand *a, const Operand *b, int64_t rows)
{
    op_require(op, rows % block_of(a) == 0 && rows % block_of(b) == 0, a->name, "block-size", op->invalid,
               "%s is %s: a page's rows are a multiple of 16, or 32 for a type of one byte", a->name, op_shape_text(op, a));
}

static bool has_room(int64_t pages, int64_t needed, int64_t sequences)
{
    int64_t all;
    return !__builtin_mul_overflow(needed, sequences, &all) && pages >= all;
}

typedef struct Planning {
    View own[HEAD_PARTS * HEAD_VIEWS];
    PlannedView views[1 + HEAD_PARTS * HEAD_VIEWS];
    int32_t count;
} Planning;

static void add_view(Planning *plan, const Operand *operand, ViewAccess access, View view)
{
    const bool given = op_given(operand);
    plan->own[plan->count - 1] = given ? view : us_view_absent();
    plan->views[plan->count] = (PlannedView){given ? operand : NULL, access, &plan->own[plan->count - 1]};
    plan->count++;
}

static View part_of(View view, int32_t axis, int64_t first, int64_t count)
{
    view.data = (char *)view.data + first * view.strides[axis] * (int64_t)us_dtype_size(view.dtype);
    view.shape[axis] = count;
    return view;
}

/* ---- aclnnKvRmsNormRopeCache ---- */

/* ---- modes ---- */

bool op_is_kv_cache_mode(const char *mode)
{
    static const char *const names[] = {"", "Norm", "PA", "PA_BNSD", "PA_NZ", "PA_BLK_BNSD", "PA_BLK_NZ"};
    bool known = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !known; i++) {
        known = strcmp(mode, names[i]) == 0;
    }
    return known;
}

static bool is_paged(const CachedKv *call)
{
    return strncmp(call->mode, "PA", 2) == 0;
}

static bool is_of_blocks(const CachedKv *call)
{
    return strncmp(call->mode, "PA_BLK", 6) == 0;
}

/* FRACTAL_NZ. */
static bool lies_in_blocks(const CachedKv *call)
{
    return strcmp(call->mode, "PA_NZ") == 0 || strcmp(call->mode, "PA_BLK_NZ") == 0;
}

static bool is_apart(const CachedKv *call)
{
    return op_given(call->v);
}

static bool is_quantized(const CachedKv *call)
{
    return op_given(call->k_scale) || op_given(call->ckv_scale);
}

/* Without pages only keys apart that are quantized have other results than their caches. */
static bool has_outputs(const CachedKv *call)
{
    return call->outputs && (is_paged(call) || (is_apart(call) && is_quantized(call)));
}

/* ---- sizes ---- */

static int64_t turned(const CachedKv *call)
{
    return op_size(call->cos, 3);
}

/* Numbers of a head in the cache of keys, and in the other one. */
static int64_t key_depth(const CachedKv *call)
{
    return is_apart(call) ? op_size(call->kv, 3) : turned(call);
}

static int64_t latent_depth(const CachedKv *call)
{
    int64_t rest;
    return is_apart(call)                                                     ? op_size(call->v, 3)
           : __builtin_sub_overflow(op_size(call->kv, 3), turned(call), &rest) ? -1
                                                                              : rest;
}

static int64_t rows_of(const CachedKv *call, const Operand *cache)
{
    return op_size(cache, is_paged(call) ? 1 : 2);
}

static void require_heads(OpCall *op, const CachedKv *call)
{
    const int64_t heads = op_size(call->kv, 1), depth = op_size(call->kv, 3);
    const bool several = heads == 1 || heads == 2 || heads == 4 || heads == APART_HEADS;
    op_require(op, is_apart(call) ? several : heads == 1, "kv", "heads", op->invalid, "kv is %s: it has one head%s",
               op_shape_text(op, call->kv), is_apart(call) ? ", 2, 4 or 8" : "");
    op_require(op, turned(call) % 2 == 0, "cos", "depth", op->invalid, "cos is %s: an odd number is not turned",
               op_shape_text(op, call->cos));
    if (is_apart(call)) {
        const bool fits = op_size(call->v, 0) == op_size(call->kv, 0) && op_size(call->v, 1) == heads &&
                          op_size(call->v, 2) == op_size(call->kv, 2);
        op_require(op, fits, call->v->name, "shape", op->invalid, "%s is %s, kv is %s: other heads", call->v->name,
                   op_shape_text(op, call->v), op_shape_text(op, call->kv));
        op_require(op, depth == APART_KEYS && op_size(call->v, 3) == APART_VALUES && turned(call) == APART_TURNED, "kv", "apart",
                   op->invalid, "kv is %s, %s is %s, cos is %s: their heads have 192, 128 and 64 numbers",
                   op_shape_text(op, call->kv), call->v->name, op_shape_text(op, call->v), op_shape_text(op, call->cos));
    }
    const int64_t normalized = op_size(call->gamma, 0);
    const bool whole = is_apart(call) ? normalized == depth : normalized <= depth && turned(call) == depth - normalized;
    op_require(op, whole, "kv", "depth", op->invalid,
               "kv is %s, gamma is %s, cos is %s: a head is what is normalized, and what is turned",
               op_shape_text(op, call->kv), op_shape_text(op, call->gamma), op_shape_text(op, call->cos));
}

/* Angles are for every token, or for all tokens of a sequence, which the second version has not always. */
static void require_angles(OpCall *op, const CachedKv *call)
{
    const Operand *cos = call->cos;
    const int64_t rows = op_size(cos, 2), tokens = op_size(call->kv, 2);
    const bool shares = !call->second || !is_paged(call) || (strcmp(call->mode, "PA") == 0 && !is_quantized(call));
    const bool fits = op_size(cos, 0) == op_size(call->kv, 0) && op_size(cos, 1) == op_size(call->kv, 1) &&
                      (rows == tokens || (rows == 1 && shares));
    op_require(op, fits, "cos", "shape", op->invalid, "cos is %s, kv is %s: it has angles for other tokens",
               op_shape_text(op, cos), op_shape_text(op, call->kv));
}

static void require_cache(OpCall *op, const CachedKv *call, const Operand *cache, int64_t depth)
{
    const int64_t heads = op_size(call->kv, 1), sequences = op_size(call->kv, 0);
    const bool fits = op_size(cache, is_paged(call) ? 2 : 1) == heads && op_size(cache, 3) == depth &&
                      (is_paged(call) || op_size(cache, 0) >= sequences);
    op_require(op, fits, cache->name, "shape", op->invalid, "%s is %s, kv is %s: it has no rows of %lld numbers", cache->name,
               op_shape_text(op, cache), op_shape_text(op, call->kv), (long long)depth);
    op_require(op, !fits || !lies_in_blocks(call) || op_lies_page_by_page(cache), cache->name, "contiguous", op->invalid,
               "%s does not lie page by page: numbers of a page follow each other", cache->name);
}

static void require_caches(OpCall *op, const CachedKv *call)
{
    const Operand *k = call->k_cache, *ckv = call->ckv_cache;
    require_cache(op, call, k, key_depth(call));
    require_cache(op, call, ckv, latent_depth(call));
    const int64_t rows = rows_of(call, k), tokens = op_size(call->kv, 2);
    op_require(op, op_size(k, 0) == op_size(ckv, 0) && rows == rows_of(call, ckv), ckv->name, "pages", op->invalid,
               "%s is %s, %s is %s: other pages", ckv->name, op_shape_text(op, ckv), k->name, op_shape_text(op, k));
    if (is_paged(call)) {
        require_whole_blocks(op, k, ckv, rows);
    }
    const bool aligned = key_depth(call) % block_of(k) == 0 && latent_depth(call) % block_of(ckv) == 0;
    op_require(op, !lies_in_blocks(call) || aligned, k->name, "blocks", op->invalid,
               "%s is %s, %s is %s: heads are not whole blocks of 32 bytes", k->name, op_shape_text(op, k), ckv->name,
               op_shape_text(op, ckv));
    const bool room = is_paged(call) ? rows > 0 && has_room(op_size(k, 0), tokens / rows, op_size(call->kv, 0)) : rows >= tokens;
    op_require(op, !call->second || room, k->name, "room", op->invalid, "%s is %s, kv is %s: no room for its tokens", k->name,
               op_shape_text(op, k), op_shape_text(op, call->kv));
}

static void require_index(OpCall *op, const CachedKv *call)
{
    const int64_t sequences = op_size(call->kv, 0), tokens = op_size(call->kv, 2);
    Shape shape = op_shape_of(2, (const int64_t[]){sequences, tokens});
    if (is_paged(call) && !op_refused(op)) {
        const int64_t each = is_of_blocks(call) ? ceiling(tokens, rows_of(call, call->k_cache)) : tokens;
        int64_t all;
        shape = op_shape_of(1, (const int64_t[]){__builtin_mul_overflow(sequences, each, &all) ? -1 : all});
    }
    op_require_shape(op, call->index, &shape);
}

/* ---- quantization ---- */

static bool fits_heads(const CachedKv *call, const Operand *numbers, int64_t depth)
{
    const View *view = &numbers->view;
    if (view->rank == 2) {
        return op_size(numbers, 0) == op_size(call->kv, 1) && op_size(numbers, 1) == depth;
    }
    return view->rank == 1 && !is_apart(call) && (op_size(numbers, 0) == depth || (op_size(numbers, 0) == 1 && !call->second));
}

static void require_scale(OpCall *op, const CachedKv *call, const Operand *cache, const Operand *scale, const Operand *offset,
                          int64_t depth)
{
    require_quantization(op, call->kv, cache, scale, offset, op_given(scale) && fits_heads(call, scale, depth),
                         op_given(offset) && fits_heads(call, offset, depth));
}

/* Those of the second version are all lines, or all tables. */
static void require_ranks(OpCall *op, const CachedKv *call)
{
    const Operand *const numbers[] = {call->k_scale, call->k_offset, call->ckv_scale, call->ckv_offset};
    bool one = false, two = false;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        one = one || (op_given(numbers[i]) && numbers[i]->view.rank == 1);
        two = two || (op_given(numbers[i]) && numbers[i]->view.rank == 2);
    }
    op_require(op, !call->second || !one || !two, call->k_scale->name, "ranks", op->invalid,
               "of the scales and offsets some have one dimension, and others two");
}

/* ---- outputs ---- */

static void require_output(OpCall *op, const CachedKv *call, const Operand *out, int64_t depth)
{
    op_require(op, op_given(out), out->name, "missing", op->missing, "%s is NULL, isOutputKv is true", out->name);
    op_require_same_dtype(op, out, call->kv);
    const Operand *kv = call->kv;
    const Shape shape = op_shape_of(4, (const int64_t[]){op_size(kv, 0), op_size(kv, 1), op_size(kv, 2), depth});
    op_require_shape(op, out, &shape);
}

void op_require_cached_kv(OpCall *op, const CachedKv *call)
{
    require_heads(op, call);
    require_angles(op, call);
    require_caches(op, call);
    require_index(op, call);
    require_scale(op, call, call->k_cache, call->k_scale, call->k_offset, key_depth(call));
    require_scale(op, call, call->ckv_cache, call->ckv_scale, call->ckv_offset, latent_depth(call));
    require_ranks(op, call);
    op_require(op, is_paged(call) || is_apart(call) || !is_quantized(call), "cacheModeOptional", "quantized", op->invalid,
               "cacheModeOptional is %s: a cache without pages is not quantized", call->mode);
    if (call->outputs) {
        require_output(op, call, call->k_out, key_depth(call));
        require_output(op, call, call->ckv_out, latent_depth(call));
    }
}

/* ---- plan ---- */

/* [sequence, head, token, depth] as the kernel has it. */
static View by_tokens(const View *view)
{
    return op_swap_axes(*view, 1, 2);
}

static View cache_view(const CachedKv *call, const Operand *cache)
{
    return lies_in_blocks(call) ? op_pages_in_blocks(cache) : is_paged(call) ? cache->view : by_tokens(&cache->view);
}

static void add_part(Planning *plan, const CachedKv *call, const Operand *from, View x, bool normalizes, bool turns, bool keys)
{
    const Operand *cache = keys ? call->k_cache : call->ckv_cache, *scale = keys ? call->k_scale : call->ckv_scale;
    const Operand *offset = is_apart(call) ? (keys ? call->k_offset : call->ckv_offset) : NULL;
    const Operand *out = has_outputs(call) ? (keys ? call->k_out : call->ckv_out) : NULL;
    add_view(plan, from, VIEW_READ, x);
    add_view(plan, normalizes ? call->gamma : NULL, VIEW_READ, call->gamma->view);
    add_view(plan, turns ? call->cos : NULL, VIEW_READ, by_tokens(&call->cos->view));
    add_view(plan, turns ? call->sin : NULL, VIEW_READ, by_tokens(&call->sin->view));
    add_view(plan, scale, VIEW_READ, op_given(scale) ? us_view_broadcast(&scale->view, 4, x.shape) : us_view_absent());
    add_view(plan, offset, VIEW_READ, op_given(offset) ? us_view_broadcast(&offset->view, 4, x.shape) : us_view_absent());
    add_view(plan, out, VIEW_WRITE, op_given(out) ? by_tokens(&out->view) : us_view_absent());
    add_view(plan, cache, VIEW_READ_WRITE, cache_view(call, cache));
}

aclnnStatus op_cached_kv(OpCall *op, const CachedKv *call)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const bool apart = is_apart(call);
    const HeadPart keys = {call->epsilon, apart, false, TURN_SORTED, turned(call)};
    const HeadPart latent = {call->epsilon, !apart, false, TURN_NOT, 0};
    const CachedHeads how = {.slots = !is_paged(call) ? SLOTS_OF_PAGES : is_of_blocks(call) ? SLOTS_OF_BLOCKS : SLOTS_OF_TOKENS,
                             .count = 2, .parts = {keys, latent}};
    const View kv = by_tokens(&call->kv->view);
    const int64_t latent_size = latent_depth(call);
    Planning plan = {.views = {{call->index, VIEW_READ, NULL}}, .count = 1};
    add_part(&plan, call, call->kv, apart ? kv : part_of(kv, 3, latent_size, turned(call)), apart, true, true);
    add_part(&plan, call, apart ? call->v : call->kv, apart ? by_tokens(&call->v->view) : part_of(kv, 3, 0, latent_size), !apart,
             false, false);
    return op_plan_views(op, us_cached_heads, &how, sizeof how, plan.count, plan.views);
}

/* ---- aclnnQkvRmsNormRopeCache ---- */

enum { BATCHES, TOKENS, HEADS, DEPTH, SIZES }; /* of sizes */
enum { QUERIES, KEYS, VALUES, KINDS };         /* of heads */

static bool all_positive(IntArguments numbers)
{
    bool positive = true;
    for (int64_t i = 0; i < numbers.count && positive; i++) {
        positive = numbers.values[i] > 0;
    }
    return positive;
}

/* The sizes make sense, and what does not overflow: all tokens, numbers of all heads. */
static bool require_sizes(OpCall *op, const CachedQkv *call)
{
    const IntArguments sizes = call->sizes, heads = call->heads;
    op_require(op, sizes.count == SIZES && all_positive(sizes), sizes.name, "value", op->invalid,
               "%s is not four numbers above 0", sizes.name);
    op_require(op, heads.count == KINDS && all_positive(heads), heads.name, "value", op->invalid,
               "%s is not three numbers above 0", heads.name);
    if (op_refused(op)) {
        return false;
    }
    int64_t sum;
    const bool counted = !__builtin_add_overflow(heads.values[QUERIES], heads.values[KEYS], &sum) &&
                         !__builtin_add_overflow(sum, heads.values[VALUES], &sum) && sum == sizes.values[HEADS];
    op_require(op, counted && heads.values[KEYS] == heads.values[VALUES], heads.name, "sum", op->invalid,
               "%s is [%lld,%lld,%lld]: there are %lld heads, of keys and values alike", heads.name,
               (long long)heads.values[QUERIES], (long long)heads.values[KEYS], (long long)heads.values[VALUES],
               (long long)sizes.values[HEADS]);
    op_require(op, sizes.values[DEPTH] == JOINT_DEPTH, sizes.name, "depth", op->invalid, "%s has heads of %lld numbers, not 128",
               sizes.name, (long long)sizes.values[DEPTH]);
    const bool fits = op_is_product(op_size(call->qkv, 0), sizes.values[BATCHES], sizes.values[TOKENS]) &&
                      op_is_product(op_size(call->qkv, 1), sizes.values[HEADS], sizes.values[DEPTH]);
    op_require(op, fits, call->qkv->name, "shape", op->invalid, "%s is %s: it has not the sizes of %s", call->qkv->name,
               op_shape_text(op, call->qkv), sizes.name);
    return !op_refused(op);
}

static void require_line(OpCall *op, const Operand *operand, int32_t rank, int64_t rows, int64_t width)
{
    const Shape shape = op_shape_of(rank, rank == 1 ? &width : (const int64_t[]){rows, width});
    op_require_shape(op, operand, &shape);
}

static bool is_table(const Operand *numbers, int64_t rows, int64_t width)
{
    return op_given(numbers) && numbers->view.rank == 2 && op_size(numbers, 0) == rows && op_size(numbers, 1) == width;
}

static void require_qkv_cache(OpCall *op, const CachedQkv *call, const Operand *cache)
{
    op_require(op, op_is_cache_for(cache, call->heads.values[KEYS], JOINT_DEPTH, CACHE_BLOCKS), cache->name, "shape", op->invalid,
               "%s is %s: it is not of blocks for %lld heads", cache->name, op_shape_text(op, cache),
               (long long)call->heads.values[KEYS]);
}

void op_require_cached_qkv(OpCall *op, const CachedQkv *call)
{
    if (!require_sizes(op, call)) {
        return;
    }
    const int64_t *heads = call->heads.values, tokens = op_size(call->qkv, 0), sequences = call->sizes.values[BATCHES];
    require_line(op, call->q_gamma, 1, 0, JOINT_DEPTH);
    require_line(op, call->k_gamma, 1, 0, JOINT_DEPTH);
    require_line(op, call->cos, 2, tokens, JOINT_DEPTH);
    require_line(op, call->sin, 2, tokens, JOINT_DEPTH);
    require_line(op, call->index, 1, 0, tokens);
    require_line(op, call->q_out, 2, tokens, heads[QUERIES] * JOINT_DEPTH);
    require_qkv_cache(op, call, call->k_cache);
    require_qkv_cache(op, call, call->v_cache);
    const int64_t rows = op_rows_of_page(call->k_cache, CACHE_BLOCKS);
    op_require(op, op_have_same_pages(call->k_cache, call->v_cache, CACHE_BLOCKS), call->v_cache->name, "pages", op->invalid,
               "%s is %s, %s is %s: other pages", call->v_cache->name, op_shape_text(op, call->v_cache), call->k_cache->name,
               op_shape_text(op, call->k_cache));
    require_whole_blocks(op, call->k_cache, call->v_cache, rows);
    const int64_t each = call->sizes.values[TOKENS], pages = ceiling(each, larger(rows, 1));
    op_require(op, rows > 0 && has_room(op_size(call->k_cache, 0), pages, sequences), call->k_cache->name, "room", op->invalid,
               "%s is %s: no pages for %lld sequences of %lld tokens", call->k_cache->name, op_shape_text(op, call->k_cache),
               (long long)sequences, (long long)each);
    require_quantization(op, call->qkv, call->k_cache, call->k_scale, call->k_offset,
                         is_table(call->k_scale, heads[KEYS], JOINT_DEPTH), is_table(call->k_offset, heads[KEYS], JOINT_DEPTH));
    require_quantization(op, call->qkv, call->v_cache, call->v_scale, call->v_offset,
                         is_table(call->v_scale, heads[VALUES], JOINT_DEPTH),
                         is_table(call->v_offset, heads[VALUES], JOINT_DEPTH));
}

/* [token, heads * depth] as [1, token, head, depth]. */
static View in_heads(const View *view)
{
    const int64_t step = view->strides[1];
    const View heads = {.data = view->data, .dtype = view->dtype, .rank = 4,
                        .shape = {1, view->shape[0], view->shape[1] / JOINT_DEPTH, JOINT_DEPTH},
                        .strides = {0, view->strides[0], JOINT_DEPTH * step, step}};
    return heads;
}

static void add_joint_part(Planning *plan, const CachedQkv *call, int kind, const Operand *gamma, const Operand *scale,
                           const Operand *offset, const Operand *out, const Operand *cache)
{
    const int64_t *heads = call->heads.values;
    const int64_t first = kind == QUERIES ? 0 : kind == KEYS ? heads[QUERIES] : heads[QUERIES] + heads[KEYS];
    const View x = part_of(in_heads(&call->qkv->view), 2, first, heads[kind]);
    const bool turns = kind != VALUES;
    add_view(plan, call->qkv, VIEW_READ, x);
    add_view(plan, gamma, VIEW_READ, op_given(gamma) ? gamma->view : us_view_absent());
    add_view(plan, turns ? call->cos : NULL, VIEW_READ, in_heads(&call->cos->view));
    add_view(plan, turns ? call->sin : NULL, VIEW_READ, in_heads(&call->sin->view));
    add_view(plan, scale, VIEW_READ, op_given(scale) ? us_view_broadcast(&scale->view, 4, x.shape) : us_view_absent());
    add_view(plan, offset, VIEW_READ, op_given(offset) ? us_view_broadcast(&offset->view, 4, x.shape) : us_view_absent());
    add_view(plan, out, VIEW_WRITE, op_given(out) ? in_heads(&out->view) : us_view_absent());
    add_view(plan, cache, VIEW_READ_WRITE, op_given(cache) ? op_cache_view(cache, CACHE_BLOCKS, heads[KEYS]) : us_view_absent());
}

aclnnStatus op_cached_qkv(OpCall *op, const CachedQkv *call)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const HeadPart turned = {call->epsilon, true, true, TURN_HALVES, JOINT_DEPTH}, plain = {0, false, true, TURN_NOT, 0};
    const CachedHeads how = {.slots = SLOTS_OF_TOKENS, .count = 3, .parts = {turned, turned, plain}};
    Planning plan = {.views = {{call->index, VIEW_READ, NULL}}, .count = 1};
    add_joint_part(&plan, call, QUERIES, call->q_gamma, NULL, NULL, call->q_out, NULL);
    add_joint_part(&plan, call, KEYS, call->k_gamma, call->k_scale, call->k_offset, NULL, call->k_cache);
    add_joint_part(&plan, call, VALUES, NULL, call->v_scale, call->v_offset, NULL, call->v_cache);
    return op_plan_views(op, us_cached_heads, &how, sizeof how, plan.count, plan.views);
}
