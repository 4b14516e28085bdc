#include "ascend/opapi/latent.h"

#include "ascend/opapi/caches.h"
#include "kernels/attention/latent.h"
#include "kernels/sizes.h"

enum { LATENT = 512, TURNED = 64, MOST_HEADS = 128, LEAST_ROWS = 16, MOST_ROWS = 1024, MOST_SEQUENCES = 65536 };
enum { MOST_TOKENS = 1048576 };

/* ---- modes ---- */

bool op_is_latent_mode(const char *mode, bool third)
{
    static const char *const names[] = {"", "PA_BSND", "PA_NZ", "PA_BLK_BSND", "PA_BLK_NZ", "BSND", "TND"};
    const size_t count = third ? sizeof names / sizeof *names : 3;
    bool known = false;
    for (size_t i = 0; i < count && !known; i++) {
        known = strcmp(mode, names[i]) == 0;
    }
    return known;
}

static bool is_paged(const Latent *call)
{
    return *call->mode == '\0' || strncmp(call->mode, "PA", 2) == 0;
}

static bool is_of_pages(const Latent *call)
{
    return strncmp(call->mode, "PA_BLK", 6) == 0;
}

/* FRACTAL_NZ. */
static bool lies_in_blocks(const Latent *call)
{
    return strcmp(call->mode, "PA_NZ") == 0 || strcmp(call->mode, "PA_BLK_NZ") == 0;
}

static bool is_flat(const Latent *call)
{
    return call->x->view.rank == 2;
}

bool op_are_latent_modes(int64_t weights, int64_t caches, int64_t queries)
{
    return (weights == 0 && caches == 0 && queries == 0) || (weights == 1 && (caches == 0 || caches == 2) && queries == 0) ||
           (weights == 2 && (caches == 0 || caches == 1) && queries == caches);
}

static bool is_integer(const Operand *operand)
{
    return operand->dtype == ACL_INT8;
}

bool op_has_latent_types(const Latent *call, int64_t weights, int64_t caches)
{
    return is_integer(call->x) == (weights == 2) && is_integer(call->uq_qr) == (weights > 0) &&
           is_integer(call->kv_cache) == (caches > 0) && is_integer(call->kr_cache) == (caches == 2) &&
           is_integer(call->query) == (caches == 1);
}

/* All products are of integers; what else there is follows from it. */
static bool is_full(const Latent *call)
{
    return is_integer(call->x);
}

/* ---- shapes ---- */

int64_t op_latent_columns(const Operand *uk, const Operand *sin)
{
    int64_t width, columns;
    const bool counted = !__builtin_add_overflow(op_size(uk, 1), op_size(sin, -1), &width) &&
                         !__builtin_mul_overflow(width, op_size(uk, 0), &columns);
    return counted ? columns : -1;
}

static int64_t token_count(const Latent *call)
{
    int64_t tokens = op_size(call->x, 0);
    return is_flat(call) || !__builtin_mul_overflow(tokens, op_size(call->x, 1), &tokens) ? tokens : -1;
}

/* The tokens' axes, and these. */
static Shape with_tokens(const Latent *call, int32_t count, const int64_t *sizes)
{
    int64_t all[4] = {0};
    const int32_t axes = call->x->view.rank - 1;
    memcpy(all, call->x->view.shape, (size_t)axes * sizeof *all);
    memcpy(all + axes, sizes, (size_t)count * sizeof *all);
    return op_shape_of(axes + count, all);
}

static void require_sizes(OpCall *op, const Latent *call)
{
    const int64_t hidden = op_size(call->x, -1), heads = op_size(call->uk, 0), depth = op_size(call->uk, 1);
    const int64_t rank = op_size(call->q_gamma, 0);
    const bool known = (hidden % 1024 == 0 && hidden >= 1024 && hidden <= 8192) || hidden == 7680;
    op_require(op, known, "tokenX", "hidden", op->invalid,
               "tokenX is %s: it has 7680 or 1 to 8 times 1024 numbers for each token", op_shape_text(op, call->x));
    const bool few = is_flat(call) ? call->third || op_size(call->x, 0) <= MOST_TOKENS : op_size(call->x, 0) <= MOST_SEQUENCES;
    op_require(op, few && token_count(call) >= 0, "tokenX", "tokens", op->invalid,
               "tokenX is %s: there are at most 65536 sequences or 1048576 tokens", op_shape_text(op, call->x));
    op_require(op, rank == 1536 || (call->third && rank == 2048), "rmsnormGammaCq", "size", op->invalid,
               "rmsnormGammaCq is %s: it has 1536 numbers%s", op_shape_text(op, call->q_gamma), call->third ? ", or 2048" : "");
    op_require(op, op_size(call->kv_gamma, 0) == LATENT, "rmsnormGammaCkv", "size", op->invalid,
               "rmsnormGammaCkv is %s: it has 512 numbers", op_shape_text(op, call->kv_gamma));
    const bool power = heads > 0 && heads <= MOST_HEADS && (heads & (heads - 1)) == 0;
    const bool deep = depth == 128 || (call->third && depth == 192);
    op_require(op, power && deep && op_size(call->uk, 2) == LATENT, "weightUk", "shape", op->invalid,
               "weightUk is %s: it is [N,%s,512], N a power of 2 up to 128", op_shape_text(op, call->uk),
               call->third ? "128 or 192" : "128");
    const Shape angles = with_tokens(call, 1, (const int64_t[]){TURNED});
    op_require_shape(op, call->sin, &angles);
    op_require_shape(op, call->cos, &angles);
}

static void require_weight(OpCall *op, const Operand *weight, int64_t rows, int64_t columns)
{
    const Shape shape = op_shape_of(2, (const int64_t[]){rows, columns});
    op_require_shape(op, weight, &shape);
}

void op_require_latent_weights(OpCall *op, const Latent *call)
{
    const int64_t hidden = op_size(call->x, -1), rank = op_size(call->q_gamma, 0);
    require_weight(op, call->dq, hidden, rank);
    require_weight(op, call->uq_qr, rank, op_latent_columns(call->uk, call->sin));
    require_weight(op, call->dkv_kr, hidden, LATENT + TURNED);
}

/* ---- caches ---- */

static void require_cache(OpCall *op, const Latent *call, const Operand *cache, int64_t depth)
{
    const View *view = &cache->view;
    bool fits = op_size(cache, -2) == 1 && op_size(cache, -1) == depth && view->rank == (strcmp(call->mode, "TND") == 0 ? 3 : 4);
    for (int32_t axis = 0; axis < view->rank - 2 && fits && !is_paged(call); axis++) {
        fits = view->shape[axis] == call->x->view.shape[axis];
    }
    op_require(op, fits, cache->name, "shape", op->invalid, "%s is %s, tokenX is %s: it has no rows of one head of %lld numbers",
               cache->name, op_shape_text(op, cache), op_shape_text(op, call->x), (long long)depth);
    op_require(op, !fits || !lies_in_blocks(call) || op_lies_page_by_page(cache), cache->name, "contiguous", op->invalid,
               "%s does not lie page by page: numbers of a page follow each other", cache->name);
}

static void require_caches(OpCall *op, const Latent *call)
{
    const Operand *kv = call->kv_cache, *kr = call->kr_cache;
    const bool flat = strcmp(call->mode, "TND") == 0;
    op_require(op, is_paged(call) || is_flat(call) == flat, "cacheModeOptional", "tokens", op->invalid,
               "cacheModeOptional is %s, tokenX is %s", call->mode, op_shape_text(op, call->x));
    if (is_paged(call) && kv->view.rank == 4 && !op_refused(op)) {
        const int64_t rows = op_size(kv, 1);
        op_require(op, rows >= LEAST_ROWS && rows <= MOST_ROWS && rows % LEAST_ROWS == 0, kv->name, "block-size", op->invalid,
                   "%s is %s: a page has 16 to 1024 rows, a multiple of 16", kv->name, op_shape_text(op, kv));
    }
    require_cache(op, call, kv, LATENT);
    require_cache(op, call, kr, TURNED);
    op_require(op, op_refused(op) || (op_size(kv, 0) == op_size(kr, 0) && op_size(kv, 1) == op_size(kr, 1)), kr->name, "pages",
               op->invalid, "%s is %s, %s is %s: other pages", kr->name, op_shape_text(op, kr), kv->name, op_shape_text(op, kv));
}

static void require_index(OpCall *op, const Latent *call)
{
    const Operand *index = call->index;
    if (!is_paged(call)) {
        op_require(op, !op_given(index), index->name, "given", op->invalid, "%s is given, and the caches have no pages",
                   index->name);
        return;
    }
    op_require(op, op_given(index), index->name, "missing", op->missing, "%s is NULL, and the caches have pages",
               index->name);
    if (op_refused(op)) {
        return;
    }
    Shape shape = with_tokens(call, 0, (const int64_t[]){0});
    if (is_of_pages(call) && !is_flat(call)) {
        shape.sizes[1] = ceiling(op_size(call->x, 1), op_size(call->kv_cache, 1));
    }
    if (is_of_pages(call) && is_flat(call)) {
        op_require_rank(op, index, 1, 1);
    } else {
        op_require_shape(op, index, &shape);
    }
}

static void require_ends(OpCall *op, const Latent *call)
{
    if (call->ends != NULL) {
        const bool needed = is_of_pages(call) && is_flat(call);
        op_require(op, op_given(call->ends) || !needed, call->ends->name, "missing", op->missing,
                   "%s is NULL, and sequences of tokens have pages of their own", call->ends->name);
    }
}

/* ---- quantization ---- */

/* `given` exactly where it is `wanted`, of this shape. */
static void require_factor(OpCall *op, const Operand *factor, bool wanted, int32_t rank, int64_t rows, int64_t columns)
{
    op_require(op, op_given(factor) == wanted, factor->name, "given", op->invalid, "%s is %s", factor->name,
               wanted ? "NULL, and the types want it" : "given, and the types have no use for it");
    if (op_given(factor) && !op_refused(op)) {
        const Shape shape = op_shape_of(rank, rank == 1 ? &columns : (const int64_t[]){rows, columns});
        op_require_shape(op, factor, &shape);
    }
}

static void require_type(OpCall *op, const Operand *operand, bool integer)
{
    op_require(op, is_integer(operand) == integer, operand->name, "type", op->invalid, "%s is of %s, and the others want %s",
               operand->name, acl_dtype_name(operand->dtype), integer ? "ACL_INT8" : "ACL_BF16");
}

static void require_types(OpCall *op, const Latent *call)
{
    const bool full = is_full(call), half = is_integer(call->uq_qr), cached = is_integer(call->kv_cache);
    require_type(op, call->uq_qr, half || full);
    require_type(op, call->dq, full);
    require_type(op, call->dkv_kr, full);
    require_type(op, call->kv_cache, cached && half);
    require_type(op, call->kr_cache, cached && !full);
    require_type(op, call->query, cached && full);
}

static void require_factors(OpCall *op, const Latent *call)
{
    const bool full = is_full(call), half = is_integer(call->uq_qr), cached = is_integer(call->kv_cache);
    const int64_t rank = op_size(call->q_gamma, 0), all = LATENT + TURNED;
    require_factor(op, call->x_scale, full, 2, token_count(call), 1);
    require_factor(op, call->dq_scale, full, 2, 1, rank);
    require_factor(op, call->uq_qr_scale, half, 2, 1, op_latent_columns(call->uk, call->sin));
    require_factor(op, call->dkv_kr_scale, full, 2, 1, all);
    const bool one = call->third && full;
    require_factor(op, call->ckv_scale, cached, one ? 1 : 2, 1, one ? 1 : LATENT);
    require_factor(op, call->ckr_scale, cached && !full, 2, 1, TURNED);
    require_factor(op, call->smooth, half && op_given(call->smooth), 2, 1, rank);
}

/* ---- outputs ---- */

static void require_output(OpCall *op, const Operand *out, bool wanted, const Shape *shape)
{
    op_require(op, !wanted || op_given(out), out->name, "missing", op->missing, "%s is NULL", out->name);
    if (wanted && !op_refused(op)) {
        op_require_shape(op, out, shape);
    }
}

static void require_outputs(OpCall *op, const Latent *call)
{
    const int64_t heads = op_size(call->uk, 0), tokens = token_count(call), rank = op_size(call->q_gamma, 0);
    const Shape query = with_tokens(call, 2, (const int64_t[]){heads, LATENT});
    const Shape rope = with_tokens(call, 2, (const int64_t[]){heads, TURNED});
    op_require_shape(op, call->query, &query);
    op_require_shape(op, call->rope, &rope);
    const Shape scales = op_shape_of(3, (const int64_t[]){tokens, heads, 1});
    if (call->query_scale != NULL) {
        require_output(op, call->query_scale, is_integer(call->query), &scales);
    }
    if (call->norm != NULL) {
        const Shape norm = with_tokens(call, 1, &rank), norm_scale = op_shape_of(2, (const int64_t[]){tokens, 1});
        require_output(op, call->norm, true, &norm);
        require_type(op, call->norm, is_integer(call->uq_qr));
        require_output(op, call->norm_scale, is_integer(call->uq_qr), &norm_scale);
    }
}

void op_require_latent(OpCall *op, const Latent *call)
{
    if (op_refused(op)) {
        return;
    }
    require_sizes(op, call);
    require_caches(op, call);
    if (!op_refused(op)) {
        require_index(op, call);
        require_ends(op, call);
        require_types(op, call);
        require_factors(op, call);
        require_outputs(op, call);
    }
}

/* ---- plan ---- */

static View cache_view(const Latent *call, const Operand *cache)
{
    const View view = cache->view;
    return lies_in_blocks(call) ? op_pages_in_blocks(cache) : view.rank == 3 ? us_view_insert_axis(view, 0, 1, 0) : view;
}

static PlannedView planned(const Operand *operand, bool wanted, ViewAccess access)
{
    return (PlannedView){wanted && operand != NULL && op_given(operand) ? operand : NULL, access, NULL};
}

aclnnStatus op_latent(OpCall *op, const Latent *call)
{
    if (op_refused(op) || token_count(call) == 0) {
        return op_plan_nothing(op);
    }
    const bool pages = is_of_pages(call), given = call->ends != NULL && pages && is_flat(call);
    const LatentHeads how = {.slots = !is_paged(call) ? LATENT_ORDER : pages ? LATENT_PAGES : LATENT_TOKENS,
                             .sequence = is_flat(call) ? token_count(call) : op_size(call->x, 1), .q_epsilon = call->q_epsilon,
                             .kv_epsilon = call->kv_epsilon, .q_factor = call->q_factor, .kv_factor = call->kv_factor};
    const bool half = is_integer(call->uq_qr), cached = is_integer(call->kv_cache), full = is_full(call);
    const View kv = cache_view(call, call->kv_cache), kr = cache_view(call, call->kr_cache);
    const PlannedView views[LATENT_VIEWS] = {
        [LATENT_X] = planned(call->x, true, VIEW_READ),
        [LATENT_DQ] = planned(call->dq, true, VIEW_READ),
        [LATENT_UQ_QR] = planned(call->uq_qr, true, VIEW_READ),
        [LATENT_UK] = planned(call->uk, true, VIEW_READ),
        [LATENT_DKV_KR] = planned(call->dkv_kr, true, VIEW_READ),
        [LATENT_Q_GAMMA] = planned(call->q_gamma, true, VIEW_READ),
        [LATENT_KV_GAMMA] = planned(call->kv_gamma, true, VIEW_READ),
        [LATENT_SINES] = planned(call->sin, true, VIEW_READ),
        [LATENT_COSINES] = planned(call->cos, true, VIEW_READ),
        [LATENT_INDEX] = planned(call->index, true, VIEW_READ),
        [LATENT_ENDS] = planned(call->ends, given, VIEW_READ),
        [LATENT_X_SCALE] = planned(call->x_scale, full, VIEW_READ),
        [LATENT_DQ_SCALE] = planned(call->dq_scale, full, VIEW_READ),
        [LATENT_UQ_QR_SCALE] = planned(call->uq_qr_scale, half, VIEW_READ),
        [LATENT_DKV_KR_SCALE] = planned(call->dkv_kr_scale, full, VIEW_READ),
        [LATENT_KV_SCALE] = planned(call->ckv_scale, cached, VIEW_READ),
        [LATENT_KR_SCALE] = planned(call->ckr_scale, cached, VIEW_READ),
        [LATENT_SMOOTH] = planned(call->smooth, half, VIEW_READ),
        [LATENT_QUERY] = planned(call->query, true, VIEW_WRITE),
        [LATENT_ROPE] = planned(call->rope, true, VIEW_WRITE),
        [LATENT_QUERY_SCALE] = planned(call->query_scale, is_integer(call->query), VIEW_WRITE),
        [LATENT_NORM] = planned(call->norm, true, VIEW_WRITE),
        [LATENT_NORM_SCALE] = planned(call->norm_scale, half && call->norm != NULL, VIEW_WRITE),
        [LATENT_KV_CACHE] = {call->kv_cache, VIEW_READ_WRITE, &kv},
        [LATENT_KR_CACHE] = {call->kr_cache, VIEW_READ_WRITE, &kr},
    };
    return op_plan_views(op, us_latent_heads, &how, sizeof how, LATENT_VIEWS, views);
}
