#include "kernels/attention/latent.h"

#include "kernels/attention/cached_heads.h"
#include "kernels/linear.h"
#include "kernels/matmul/matmul.h"
#include "kernels/norm/normalize.h"
#include "kernels/quantize/product.h"
#include "kernels/quantize/quantize.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"

enum { STEP = 128 }; /* tokens at a time, which bounds the working memory */

typedef struct Sizes {
    int64_t tokens, hidden, rank, heads, depth, turned, latent;
} Sizes;

static int64_t last_size(const View *view)
{
    return view->shape[view->rank - 1];
}

static Sizes sizes_of(const View *views)
{
    const View *uk = &views[LATENT_UK];
    View tokens = views[LATENT_X];
    tokens.rank--;
    return (Sizes){us_view_elements(&tokens), last_size(&views[LATENT_X]), views[LATENT_DQ].shape[1], uk->shape[0], uk->shape[1],
                   last_size(&views[LATENT_SINES]), uk->shape[2]};
}

static int64_t head_width(const Sizes *sizes)
{
    return sizes->depth + sizes->turned;
}

static int64_t latent_width(const Sizes *sizes)
{
    return sizes->latent + sizes->turned;
}

static bool holds_integers(const View *view)
{
    return view->dtype == DTYPE_INT8;
}

static View floats(float *values, int32_t rank, const int64_t *shape)
{
    return us_view_contiguous(values, DTYPE_FLOAT32, rank, shape);
}

/* ---- slots ---- */

static bool has_caches(const View *views)
{
    return !us_view_is_empty(&views[LATENT_KV_CACHE]) && !us_view_is_empty(&views[LATENT_KR_CACHE]);
}

static int64_t whole_at(const View *view, int64_t at)
{
    int64_t place = 0;
    for (int32_t axis = view->rank - 1; axis >= 0; axis--) {
        place += at % view->shape[axis] * view->strides[axis];
        at /= view->shape[axis];
    }
    return view->dtype == DTYPE_INT32 ? ((const int32_t *)view->data)[place] : ((const int64_t *)view->data)[place];
}

static KernelStatus slots_of_tokens(const View *views, int64_t tokens, int64_t *slots)
{
    const View *index = &views[LATENT_INDEX], *cache = &views[LATENT_KV_CACHE];
    for (int64_t token = 0; token < tokens; token++) {
        slots[token] = whole_at(index, token);
        if (slots[token] < -1 || slots[token] / cache->shape[1] >= cache->shape[0]) {
            return us_kernel_fault("index %lld of token %lld is outside a cache of %lld pages of %lld rows",
                                   (long long)slots[token], (long long)token, (long long)cache->shape[0],
                                   (long long)cache->shape[1]);
        }
    }
    return KERNEL_OK;
}

/* The slots of `count` tokens, on the pages from entry *page of the index on. */
static KernelStatus slots_of_sequence(const View *views, int64_t count, int64_t *page, int64_t *slots)
{
    const View *index = &views[LATENT_INDEX], *cache = &views[LATENT_KV_CACHE];
    const int64_t rows = cache->shape[1], pages = us_view_elements(index);
    for (int64_t token = 0; token < count; token++) {
        const int64_t entry = *page + token / rows, number = entry < pages ? whole_at(index, entry) : -1;
        if (number < 0 || number >= cache->shape[0]) {
            return us_kernel_fault("page %lld of %lld is number %lld: it is outside a cache of %lld pages", (long long)entry,
                                   (long long)pages, (long long)number, (long long)cache->shape[0]);
        }
        slots[token] = number * rows + token % rows;
    }
    *page += ceiling(count, rows);
    return KERNEL_OK;
}

static KernelStatus slots_of_pages(const LatentHeads *how, const View *views, int64_t tokens, int64_t *slots)
{
    const View *ends = &views[LATENT_ENDS];
    const bool given = !us_view_is_absent(ends);
    const int64_t sequences = given ? ends->shape[0] : ceiling(tokens, larger(how->sequence, 1));
    int64_t page = 0, done = 0;
    KernelStatus status = KERNEL_OK;
    for (int64_t i = 0; i < sequences && status == KERNEL_OK; i++) {
        const int64_t end = given ? whole_at(ends, i) : done + how->sequence;
        if (end < done || end > tokens) {
            return us_kernel_fault("sequence %lld ends at token %lld of %lld, behind %lld", (long long)i, (long long)end,
                                   (long long)tokens, (long long)done);
        }
        status = slots_of_sequence(views, end - done, &page, &slots[done]);
        done = end;
    }
    if (status == KERNEL_OK && done != tokens) {
        return us_kernel_fault("the last sequence ends at token %lld of %lld", (long long)done, (long long)tokens);
    }
    return status;
}

static KernelStatus find_slots(const LatentHeads *how, const View *views, int64_t tokens, int64_t *slots)
{
    if (how->slots == LATENT_TOKENS) {
        return slots_of_tokens(views, tokens, slots);
    }
    if (how->slots == LATENT_PAGES) {
        return slots_of_pages(how, views, tokens, slots);
    }
    for (int64_t token = 0; token < tokens; token++) {
        slots[token] = token;
    }
    return KERNEL_OK;
}

/* ---- working memory ---- */

/* Of all steps the factors, of one step the rest. */
typedef struct Work {
    float *q_gamma, *kv_gamma, *kv_scale, *kr_scale;
    float *x, *x_scale, *sines, *cosines, *c, *c_scale, *wide, *latent, *query, *query_scale, *rope;
    int8_t *x_integers, *c_integers, *query_integers;
} Work;

/* Parts of a block; without one only their bytes are counted. */
typedef struct Layout {
    char *cursor;
    size_t bytes;
} Layout;

static void *part_of(Layout *layout, int64_t count, size_t size)
{
    const size_t bytes = us_scratch_bytes(count, size);
    layout->bytes += bytes;
    return layout->cursor != NULL ? us_scratch_part(&layout->cursor, bytes) : NULL;
}

static size_t lay_out(Work *work, char *block, const View *views, const Sizes *sizes)
{
    const int64_t step = smaller(sizes->tokens, STEP), heads = us_scratch_count(step, sizes->heads);
    const bool x = holds_integers(&views[LATENT_X]), c = holds_integers(&views[LATENT_UQ_QR]);
    const bool query = holds_integers(&views[LATENT_QUERY]);
    Layout parts = {block, 0};
    work->q_gamma = part_of(&parts, sizes->rank, sizeof(float));
    work->kv_gamma = part_of(&parts, sizes->latent, sizeof(float));
    work->kv_scale = part_of(&parts, sizes->latent, sizeof(float));
    work->kr_scale = part_of(&parts, sizes->turned, sizeof(float));
    work->x = part_of(&parts, us_scratch_count(step, sizes->hidden), sizeof(float));
    work->x_scale = part_of(&parts, step, sizeof(float));
    work->sines = part_of(&parts, us_scratch_count(step, sizes->turned), sizeof(float));
    work->cosines = part_of(&parts, us_scratch_count(step, sizes->turned), sizeof(float));
    work->c = part_of(&parts, us_scratch_count(step, sizes->rank), sizeof(float));
    work->c_scale = part_of(&parts, step, sizeof(float));
    work->wide = part_of(&parts, us_scratch_count(heads, head_width(sizes)), sizeof(float));
    work->latent = part_of(&parts, us_scratch_count(step, latent_width(sizes)), sizeof(float));
    work->query = part_of(&parts, us_scratch_count(heads, sizes->latent), sizeof(float));
    work->query_scale = part_of(&parts, heads, sizeof(float));
    work->rope = part_of(&parts, us_scratch_count(heads, sizes->turned), sizeof(float));
    work->x_integers = part_of(&parts, x ? us_scratch_count(step, sizes->hidden) : 0, 1);
    work->c_integers = part_of(&parts, c ? us_scratch_count(step, sizes->rank) : 0, 1);
    work->query_integers = part_of(&parts, query ? us_scratch_count(heads, sizes->latent) : 0, 1);
    return parts.bytes;
}

static void load_factors(const LatentHeads *how, const View *views, const Sizes *sizes, const Work *work)
{
    us_linear_load_float(&views[LATENT_Q_GAMMA], 0, sizes->rank, work->q_gamma);
    us_linear_load_float(&views[LATENT_KV_GAMMA], 0, sizes->latent, work->kv_gamma);
    for (int64_t i = 0; i < sizes->rank; i++) {
        work->q_gamma[i] = (float)(work->q_gamma[i] * how->q_factor);
    }
    for (int64_t i = 0; i < sizes->latent; i++) {
        work->kv_gamma[i] = (float)(work->kv_gamma[i] * how->kv_factor);
    }
    const View *kv = &views[LATENT_KV_SCALE], *kr = &views[LATENT_KR_SCALE];
    if (!us_view_is_absent(kv)) {
        const bool one = us_view_elements(kv) == 1;
        for (int64_t i = 0; i < (one ? sizes->latent : 1); i++) {
            us_linear_load_float(kv, 0, one ? 1 : sizes->latent, &work->kv_scale[i]);
        }
    }
    if (!us_view_is_absent(kr)) {
        us_linear_load_float(kr, 0, sizes->turned, work->kr_scale);
    }
}

/* ---- steps ---- */

typedef struct Step {
    const LatentHeads *how;
    const View *views;
    const Sizes *sizes;
    const Work *work;
    int64_t first, count;
} Step;

static void load(const Step *step, int32_t view, int64_t width, float *values)
{
    us_linear_load_float(&step->views[view], step->first * width, step->count * width, values);
}

static void store(const Step *step, int32_t view, int64_t width, const float *values)
{
    us_linear_store_float(&step->views[view], step->first * width, step->count * width, values);
}

/* Of integers; `values` is there for their numbers. */
static void store_integers(const Step *step, int32_t view, int64_t width, const int8_t *integers, float *values)
{
    for (int64_t i = 0; i < step->count * width; i++) {
        values[i] = integers[i];
    }
    store(step, view, width, values);
}

static void load_tokens(const Step *step)
{
    const Work *work = step->work;
    load(step, LATENT_X, step->sizes->hidden, work->x);
    load(step, LATENT_SINES, step->sizes->turned, work->sines);
    load(step, LATENT_COSINES, step->sizes->turned, work->cosines);
    if (holds_integers(&step->views[LATENT_X])) {
        load(step, LATENT_X_SCALE, 1, work->x_scale);
        for (int64_t i = 0; i < step->count * step->sizes->hidden; i++) {
            work->x_integers[i] = (int8_t)work->x[i];
        }
    }
}

/* Rows of `depth` numbers, or of integers with a scale for each row, times a weight. */
static KernelStatus multiply(const Step *step, float *rows, int8_t *integers, float *scale, int64_t depth, int32_t weight,
                             int32_t weight_scale, float *result)
{
    const View *b = &step->views[weight], absent = us_view_absent();
    const View c = floats(result, 2, (const int64_t[]){step->count, b->shape[1]});
    const int64_t shape[] = {step->count, depth};
    if (!holds_integers(b)) {
        return us_product((const View[]){floats(rows, 2, shape), *b, absent, c, absent, absent},
                          &(ViewProduct){.compute = DTYPE_FLOAT32, .alpha = {1}});
    }
    const View a = us_view_contiguous(integers, DTYPE_INT8, 2, shape);
    const View of_rows = floats(scale, 2, (const int64_t[]){step->count, 1});
    const QuantizedProduct how = {.group = depth, .scale_columns = 1, .packed_a = NOT_PACKED, .packed_b = NOT_PACKED};
    const View views[] = {a, *b, step->views[weight_scale], c, absent, of_rows, absent, absent, absent};
    return us_quantized_product(views, &how);
}

static KernelStatus quantize(float *x, const View *smooth, int64_t rows, int64_t width, int8_t *integers, float *scale)
{
    const int64_t shape[] = {rows, width};
    const View absent = us_view_absent();
    const View factors = us_view_is_absent(smooth) ? absent : us_view_remove_axis(*smooth, 0);
    return us_quantize_rows((const View[]){floats(x, 2, shape), factors, us_view_contiguous(integers, DTYPE_INT8, 2, shape),
                                           floats(scale, 1, shape), absent, absent}, &(QuantizeRows){.rounding = ROUND_EVEN});
}

/* c, and its integers where the next weight wants them. */
static KernelStatus compress(const Step *step)
{
    const Work *work = step->work;
    const int64_t rank = step->sizes->rank, shape[] = {step->count, rank};
    KernelStatus status = multiply(step, work->x, work->x_integers, work->x_scale, step->sizes->hidden, LATENT_DQ,
                                   LATENT_DQ_SCALE, work->c);
    if (status == KERNEL_OK) {
        const View c = floats(work->c, 2, shape), gamma = floats(work->q_gamma, 1, &rank), absent = us_view_absent();
        const Normalize how = {.line = rank, .parameter_run = 1, .parameter_count = rank, .epsilon = step->how->q_epsilon,
                               .factor = 1};
        status = us_normalize((const View[]){c, absent, absent, gamma, absent, absent, c, absent, absent}, &how);
    }
    const bool integers = holds_integers(&step->views[LATENT_UQ_QR]), told = !us_view_is_absent(&step->views[LATENT_NORM]);
    if (status == KERNEL_OK && integers) {
        status = quantize(work->c, &step->views[LATENT_SMOOTH], step->count, rank, work->c_integers, work->c_scale);
    }
    if (status == KERNEL_OK && told && integers) {
        store_integers(step, LATENT_NORM, rank, work->c_integers, work->c);
        store(step, LATENT_NORM_SCALE, 1, work->c_scale);
    } else if (status == KERNEL_OK && told) {
        store(step, LATENT_NORM, rank, work->c);
    }
    return status;
}

static KernelStatus query(const Step *step)
{
    const Work *work = step->work;
    const Sizes *sizes = step->sizes;
    const int64_t count = step->count, heads = sizes->heads, width = head_width(sizes);
    KernelStatus status = multiply(step, work->c, work->c_integers, work->c_scale, sizes->rank, LATENT_UQ_QR, LATENT_UQ_QR_SCALE,
                                   work->wide);
    if (status != KERNEL_OK) {
        return status;
    }
    const View absent = us_view_absent();
    const View a = {.data = work->wide, .dtype = DTYPE_FLOAT32, .rank = 3, .shape = {heads, count, sizes->depth},
                    .strides = {width, heads * width, 1}};
    const View c = {.data = work->query, .dtype = DTYPE_FLOAT32, .rank = 3, .shape = {heads, count, sizes->latent},
                    .strides = {sizes->latent, heads * sizes->latent, 1}};
    status = us_product((const View[]){a, step->views[LATENT_UK], absent, c, absent, absent},
                        &(ViewProduct){.compute = DTYPE_FLOAT32, .alpha = {1}});
    const bool integers = holds_integers(&step->views[LATENT_QUERY]);
    if (status == KERNEL_OK && integers) {
        status = quantize(work->query, &absent, count * heads, sizes->latent, work->query_integers, work->query_scale);
    }
    if (status == KERNEL_OK && integers) {
        store_integers(step, LATENT_QUERY, heads * sizes->latent, work->query_integers, work->query);
        store(step, LATENT_QUERY_SCALE, heads, work->query_scale);
    } else if (status == KERNEL_OK) {
        store(step, LATENT_QUERY, heads * sizes->latent, work->query);
    }
    return status;
}

/* [1, tokens, heads, depth] of lines of `line` numbers for each token. */
static View in_heads(float *values, int64_t count, int64_t heads, int64_t depth, int64_t line)
{
    return (View){.data = values, .dtype = DTYPE_FLOAT32, .rank = 4, .shape = {1, count, heads, depth},
                  .strides = {0, line, line / heads, 1}};
}

static View for_heads(const View *scale, float *values, const View *x)
{
    View view = us_view_absent();
    if (!us_view_is_absent(scale)) {
        view = *x;
        view.data = values;
        view.strides[1] = view.strides[2] = 0;
    }
    return view;
}

/* What is turned, and what the caches get. */
static KernelStatus finish(const Step *step, int64_t *slots)
{
    const Work *work = step->work;
    const Sizes *sizes = step->sizes;
    const View *views = step->views, absent = us_view_absent();
    const int64_t count = step->count, line = latent_width(sizes), wide = sizes->heads * head_width(sizes);
    const bool keys = has_caches(views);
    const View sines = in_heads(work->sines, count, 1, sizes->turned, sizes->turned);
    const View cosines = in_heads(work->cosines, count, 1, sizes->turned, sizes->turned);
    const View latent = in_heads(work->latent, count, 1, sizes->latent, line);
    const View turned = in_heads(work->latent + sizes->latent, count, 1, sizes->turned, line);
    const View rope = in_heads(work->rope, count, sizes->heads, sizes->turned, sizes->heads * sizes->turned);
    const View gamma = floats(work->kv_gamma, 1, &sizes->latent);
    const View index = us_view_contiguous(slots, DTYPE_INT64, 1, &count);
    const CachedHeads how = {.slots = SLOTS_OF_TOKENS, .count = keys ? 3 : 1,
                             .parts = {{0, false, false, TURN_SORTED, sizes->turned},
                                       {step->how->kv_epsilon, true, false, TURN_NOT, 0},
                                       {0, false, false, TURN_SORTED, sizes->turned}}};
    const View parts[] = {
        keys ? index : absent,
        in_heads(work->wide + sizes->depth, count, sizes->heads, sizes->turned, wide), absent, cosines, sines, absent, absent,
        rope, absent,
        latent, gamma, absent, absent, for_heads(&views[LATENT_KV_SCALE], work->kv_scale, &latent), absent, absent,
        views[LATENT_KV_CACHE],
        turned, absent, cosines, sines, for_heads(&views[LATENT_KR_SCALE], work->kr_scale, &turned), absent, absent,
        views[LATENT_KR_CACHE],
    };
    const KernelStatus status = us_cached_heads(parts, &how);
    if (status == KERNEL_OK) {
        store(step, LATENT_ROPE, sizes->heads * sizes->turned, work->rope);
    }
    return status;
}

static KernelStatus run(const Step *step, int64_t *slots)
{
    const Work *work = step->work;
    load_tokens(step);
    KernelStatus status = compress(step);
    if (status == KERNEL_OK) {
        status = query(step);
    }
    if (status == KERNEL_OK && has_caches(step->views)) {
        status = multiply(step, work->x, work->x_integers, work->x_scale, step->sizes->hidden, LATENT_DKV_KR, LATENT_DKV_KR_SCALE,
                          work->latent);
    }
    return status == KERNEL_OK ? finish(step, slots) : status;
}

KernelStatus us_latent_heads(const View *views, const void *attributes)
{
    const LatentHeads *how = attributes;
    const Sizes sizes = sizes_of(views);
    Work work = {0};
    int64_t *slots = us_scratch_array(sizes.tokens, sizeof *slots);
    char *block = slots != NULL ? us_scratch_take(lay_out(&work, NULL, views, &sizes)) : NULL;
    KernelStatus status = block != NULL ? KERNEL_OK : KERNEL_NO_MEMORY;
    if (status == KERNEL_OK) {
        lay_out(&work, block, views, &sizes);
        load_factors(how, views, &sizes, &work);
        status = has_caches(views) ? find_slots(how, views, sizes.tokens, slots) : KERNEL_OK;
    }
    for (int64_t first = 0; first < sizes.tokens && status == KERNEL_OK; first += STEP) {
        const Step step = {how, views, &sizes, &work, first, smaller(sizes.tokens - first, STEP)};
        status = run(&step, &slots[first]);
    }
    us_scratch_give_back(block);
    us_scratch_give_back(slots);
    return status;
}
