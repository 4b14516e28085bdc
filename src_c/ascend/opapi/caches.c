#include "ascend/opapi/caches.h"

#include "kernels/index/slots.h"
#include "kernels/sizes.h"

enum { BLOCK_BYTES = 32, MOST_HEADS = 4094, MOST_TOKEN_BYTES = 196607, MOST_GATHERED_BYTES = 148 * 1024 };

int64_t op_cache_block(const View *view)
{
    const int64_t size = (int64_t)us_dtype_size(view->dtype);
    return size > 0 ? BLOCK_BYTES / size : 1; /* a refused type has no size */
}

/* ---- modes ---- */

bool op_is_cache_mode(const char *mode)
{
    return *mode == '\0' || strcmp(mode, "Norm") == 0 || strcmp(mode, "PA_NZ") == 0;
}

bool op_is_scatter_mode(const char *mode)
{
    static const char *const names[] = {"", "None", "Nct", "NHSD", "Alibi", "Rope"};
    bool known = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !known; i++) {
        known = strcmp(mode, names[i]) == 0;
    }
    return known;
}

static bool is_plain(const char *scatter)
{
    return *scatter == '\0' || strcmp(scatter, "None") == 0;
}

CacheForm op_cache_form(const char *mode, const char *scatter, bool compressed)
{
    return strcmp(mode, "PA_NZ") == 0 ? CACHE_BLOCKS
           : strcmp(scatter, "NHSD") == 0 ? CACHE_HEADS
           : compressed ? CACHE_COMPRESSED : CACHE_ROWS;
}

bool op_compresses_rightly(const char *mode, const char *scatter, const Operand *lengths, const Operand *counts)
{
    const bool must = strcmp(scatter, "Alibi") == 0 || strcmp(scatter, "Rope") == 0;
    const bool may = must || (is_plain(scatter) && strcmp(mode, "PA_NZ") != 0);
    return op_given(lengths) == op_given(counts) && (op_given(counts) ? may : !must);
}

bool op_begins_rightly(const char *scatter, const Operand *counts, const Operand *begins)
{
    const bool rope = strcmp(scatter, "Rope") == 0;
    return op_given(begins) ? op_given(counts) && (rope || is_plain(scatter)) : !rope;
}

bool op_has_token_places(const char *scatter, IntArguments numbers)
{
    return strcmp(scatter, "Nct") != 0 || (numbers.given && numbers.count == 2 && numbers.values[0] > 0 && numbers.values[1] > 0);
}

/* ---- shapes ---- */

static bool has_sizes(const View *view, int32_t rank, const int64_t *sizes)
{
    bool fits = view->rank == rank;
    for (int32_t axis = 0; axis < rank && fits; axis++) {
        fits = sizes[axis] < 0 || view->shape[axis] == sizes[axis];
    }
    return fits;
}

/* -1: any size. */
bool op_is_cache_for(const Operand *cache, int64_t heads, int64_t depth, CacheForm form)
{
    const View *view = &cache->view;
    if (form == CACHE_BLOCKS) {
        const int64_t block = op_cache_block(view);
        int64_t blocks;
        return depth % block == 0 && !__builtin_mul_overflow(heads, depth / block, &blocks) &&
               (has_sizes(view, 4, (const int64_t[]){-1, blocks, -1, block}) ||
                has_sizes(view, 5, (const int64_t[]){-1, heads, depth / block, -1, block}));
    }
    return form == CACHE_ROWS  ? has_sizes(view, 4, (const int64_t[]){-1, -1, heads, depth})
           : form == CACHE_HEADS ? has_sizes(view, 4, (const int64_t[]){-1, heads, -1, depth})
                                 : has_sizes(view, 4, (const int64_t[]){-1, -1, 1, depth});
}

bool op_is_cache_of(const Operand *cache, const Operand *tokens, CacheForm form)
{
    return op_is_cache_for(cache, op_size(tokens, 1), op_size(tokens, 2), form);
}

bool op_is_product(int64_t value, int64_t a, int64_t b)
{
    int64_t product;
    return !__builtin_mul_overflow(a, b, &product) && product == value;
}

int64_t op_rows_of_page(const Operand *cache, CacheForm form)
{
    return op_size(cache, form == CACHE_BLOCKS || form == CACHE_HEADS ? -2 : 1);
}

bool op_have_same_pages(const Operand *a, const Operand *b, CacheForm form)
{
    return op_size(a, 0) == op_size(b, 0) && op_rows_of_page(a, form) == op_rows_of_page(b, form);
}

bool op_has_depth_of_blocks(const Operand *tokens)
{
    return op_size(tokens, 2) % op_cache_block(&tokens->view) == 0;
}

bool op_fits_page(const Operand *cache)
{
    int64_t elements;
    return !__builtin_mul_overflow(op_size(cache, 2), op_size(cache, 3), &elements) && elements < UINT32_MAX;
}

bool op_fit_heads(const Operand *key, const Operand *value)
{
    const int64_t size = (int64_t)us_dtype_size(key->view.dtype), heads = op_size(key, 1), depth = op_size(key, 2);
    const int64_t both = op_size(value, 2) < 0 ? depth : depth < INT64_MAX - op_size(value, 2) ? depth + op_size(value, 2) : -1;
    int64_t bytes;
    return heads <= MOST_HEADS && !__builtin_mul_overflow(heads * size, both, &bytes) && bytes >= 0 && bytes <= MOST_TOKEN_BYTES;
}

bool op_is_cache_format(const Operand *cache, CacheForm form)
{
    return !acl_format_is_private(cache->format) || (form == CACHE_BLOCKS && cache->format == ACL_FORMAT_FRACTAL_NZ);
}

/* ---- views ---- */

/* The last axis in blocks: [..., depth / c, c]. */
static View in_blocks(View view, int64_t block)
{
    const int32_t last = view.rank - 1;
    const int64_t step = view.strides[last];
    view = us_view_insert_axis(view, last, view.shape[last] / block, step * block);
    view.shape[last + 1] = block;
    return view;
}

/* An axis of heads * count as [heads, count]. */
static View with_heads(View view, int32_t axis, int64_t heads)
{
    const int64_t count = view.shape[axis] / heads, step = view.strides[axis];
    view = us_view_insert_axis(view, axis, heads, count * step);
    view.shape[axis + 1] = count;
    return view;
}

/* [token, head, depth], [token, head, depth / c, c]; of two dimensions one head. */
static View tokens_view(View view, CacheForm form)
{
    view = view.rank == 2 ? with_heads(view, 1, 1) : view;
    return form == CACHE_BLOCKS ? in_blocks(view, op_cache_block(&view)) : view;
}

View op_cache_view(const Operand *cache, CacheForm form, int64_t heads)
{
    View view = cache->view;
    if (form == CACHE_COMPRESSED) {
        return us_view_remove_axis(view, 2);
    }
    if (form == CACHE_BLOCKS) {
        view = view.rank == 4 ? with_heads(view, 1, heads) : view;
        return op_swap_axes(op_swap_axes(view, 2, 3), 1, 2);
    }
    return form == CACHE_HEADS ? op_swap_axes(view, 1, 2) : view;
}

bool op_lies_page_by_page(const Operand *cache)
{
    const View *view = &cache->view;
    bool behind = true;
    int64_t page = 1;
    for (int32_t axis = view->rank - 1; axis > 0 && !op_empty(cache); axis--) { /* an empty one has any sizes */
        behind = behind && (view->shape[axis] == 1 || view->strides[axis] == page);
        page *= view->shape[axis];
    }
    return op_empty(cache) || (behind && (view->shape[0] == 1 || view->strides[0] >= page));
}

View op_pages_in_blocks(const Operand *cache)
{
    const View *view = &cache->view;
    const int64_t block = op_cache_block(view), rows = view->shape[1], heads = view->shape[2], chunks = view->shape[3] / block;
    return (View){.data = view->data, .dtype = view->dtype, .rank = 5, .shape = {view->shape[0], rows, heads, chunks, block},
                  .strides = {view->strides[0], block, chunks * rows * block, rows * block, 1}};
}

/* Nct: token t begins at element offset + t * stride of the tensor's storage; its numbers follow each other. */
static bool has_tokens(const Operand *tokens, int64_t stride, int64_t offset)
{
    const View *view = &tokens->view;
    int64_t end;
    return !__builtin_mul_overflow(view->shape[0] - 1, stride, &end) && !__builtin_add_overflow(end, offset, &end) &&
           !__builtin_add_overflow(end, view->shape[1] * view->shape[2], &end) && end <= op_storage_elements(tokens);
}

void op_require_token_places(OpCall *op, const Operand *key, const Operand *value, const char *scatter, IntArguments strides,
                             IntArguments offsets)
{
    const Operand *operands[] = {key, value};
    for (int32_t i = 0; i < 2 && !op_refused(op) && strcmp(scatter, "Nct") == 0; i++) {
        const bool fits = operands[i]->view.rank == 0 || has_tokens(operands[i], strides.values[i], offsets.values[i]);
        op_require(op, fits, operands[i]->name, "places", op->invalid, "%s is %s from element %lld on, %lld apart, of %lld",
                   operands[i]->name, op_shape_text(op, operands[i]), (long long)offsets.values[i],
                   (long long)strides.values[i], (long long)op_storage_elements(operands[i]));
    }
}

static View placed_tokens(const CachedTokens *tokens, const Operand *operand, int32_t at)
{
    View view = operand->view;
    if (strcmp(tokens->scatter, "Nct") == 0) {
        view.data = (char *)view.data + (tokens->offsets.values[at] - operand->offset) * (int64_t)us_dtype_size(view.dtype);
        view.strides[0] = tokens->strides.values[at];
        view.strides[1] = view.shape[2];
        view.strides[2] = 1;
    }
    return view;
}

aclnnStatus op_put_tokens(OpCall *op, const CachedTokens *tokens)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const bool compressed = tokens->form == CACHE_COMPRESSED;
    const Slots put = {op_given(tokens->value) && tokens->value->view.rank > 0 ? 2 : 1};
    const Operand *from[] = {tokens->key, tokens->value}, *to[] = {tokens->key_cache, tokens->value_cache};
    View own[4];
    PlannedView views[8] = {{tokens->slots, VIEW_READ, NULL}};
    int32_t count = 1;
    if (compressed) {
        views[count++] = (PlannedView){tokens->counts, VIEW_READ, NULL};
        views[count++] = (PlannedView){tokens->lengths, VIEW_READ, NULL};
        views[count++] = (PlannedView){op_given(tokens->begins) ? tokens->begins : NULL, VIEW_READ, NULL};
    }
    for (int32_t i = 0; i < put.pairs; i++) {
        own[2 * i] = tokens_view(placed_tokens(tokens, from[i], i), tokens->form);
        own[2 * i + 1] = op_cache_view(to[i], tokens->form, op_size(from[i], 1));
        views[count++] = (PlannedView){from[i], VIEW_READ, &own[2 * i]};
        views[count++] = (PlannedView){to[i], VIEW_READ_WRITE, &own[2 * i + 1]};
    }
    return op_plan_views(op, compressed ? us_put_compressed : us_put_slots, &put, sizeof put, count, views);
}

bool op_are_tokens_of(const Operand *tokens, const Operand *cache, CacheForm form)
{
    if (form != CACHE_BLOCKS) {
        return has_sizes(&tokens->view, 3, (const int64_t[]){-1, op_size(cache, 2), op_size(cache, 3)});
    }
    int64_t width;
    return op_size(cache, 3) == op_cache_block(&cache->view) &&
           !__builtin_mul_overflow(op_size(cache, 1), op_size(cache, 3), &width) &&
           has_sizes(&tokens->view, 2, (const int64_t[]){-1, width});
}

bool op_is_small_token(const Operand *tokens)
{
    const int64_t most = MOST_GATHERED_BYTES / larger((int64_t)us_dtype_size(tokens->view.dtype), 1);
    int64_t width = 0;
    return !__builtin_mul_overflow(op_size(tokens, 1), tokens->view.rank > 2 ? op_size(tokens, 2) : 1, &width) && width <= most;
}

aclnnStatus op_take_tokens(OpCall *op, const PagedTokens *tokens)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const TakePages take = {2, tokens->ends};
    const Operand *from[] = {tokens->key_cache, tokens->value_cache}, *to[] = {tokens->key, tokens->value};
    const bool offset = op_given(tokens->offsets);
    View own[4];
    PlannedView views[7] = {{tokens->pages, VIEW_READ, NULL}, {tokens->lengths, VIEW_READ, NULL},
                            {offset ? tokens->offsets : NULL, VIEW_READ, NULL}};
    for (int32_t i = 0; i < take.pairs; i++) {
        own[2 * i] = op_cache_view(from[i], tokens->form, 1);
        own[2 * i + 1] = tokens_view(to[i]->view, tokens->form);
        views[3 + 2 * i] = (PlannedView){from[i], VIEW_READ, &own[2 * i]};
        views[4 + 2 * i] = (PlannedView){to[i], VIEW_READ_WRITE, &own[2 * i + 1]};
    }
    return op_plan_views(op, us_take_pages, &take, sizeof take, 7, views);
}

/* ---- the next step's tokens ---- */

bool op_are_lines(const Operand *operand, int64_t count, int64_t width)
{
    const View *view = &operand->view;
    return (view->rank == 1 && op_is_product(view->shape[0], count, width)) ||
           has_sizes(view, 2, (const int64_t[]){count, width});
}

aclnnStatus op_advance_step(OpCall *op, const Step *step)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    enum { LINES = 4 };
    const AdvanceStep advance = {step->block_size};
    const int64_t count = step->blocks->view.shape[0], width = step->guesses == NULL ? 1 : step->guesses->view.shape[1] + 1;
    View lines[LINES];
    PlannedView views[] = {{step->tokens, VIEW_READ_WRITE, NULL}, {step->positions, VIEW_READ_WRITE, NULL},
                           {step->lengths, VIEW_READ_WRITE, NULL}, {step->slots, VIEW_READ_WRITE, NULL},
                           {step->sampled, VIEW_READ, NULL}, {step->blocks, VIEW_READ, NULL},
                           {step->guesses, VIEW_READ, NULL}, {step->accepted, VIEW_READ, NULL}};
    for (int32_t i = 0; i < LINES; i++) {
        lines[i] = views[i].operand->view;
        if (lines[i].rank == 1) {
            lines[i] = us_view_insert_axis(lines[i], 0, count, width * lines[i].strides[0]);
            lines[i].shape[1] = width;
        }
        views[i].view = &lines[i];
    }
    const bool guessed = step->guesses != NULL;
    return op_plan_views(op, guessed ? us_advance_guesses : us_advance_step, &advance, sizeof advance, guessed ? 8 : 6, views);
}
