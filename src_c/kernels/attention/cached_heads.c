#include "kernels/attention/cached_heads.h"

#include "kernels/index/slots.h"
#include "kernels/map/formulas.h"
#include "kernels/move/move.h"
#include "kernels/norm/normalize.h"
#include "kernels/pieces.h"
#include "kernels/quantize/quantize.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"

enum { X, GAMMA, COSINES, SINES, SCALE, OFFSET, OUT, CACHE };

/* ---- slots ---- */

static int64_t index_at(const View *index, int64_t at)
{
    const int64_t columns = index->rank > 1 ? index->shape[1] : 1;
    const int64_t place = at / columns * index->strides[0] + (index->rank > 1 ? at % columns * index->strides[1] : 0);
    return index->dtype == DTYPE_INT32 ? ((const int32_t *)index->data)[place] : ((const int64_t *)index->data)[place];
}

/* Rows row … of a page as a slot; false: they are not there. */
static bool find_slot(const View *cache, int64_t page, int64_t row, int64_t *slot)
{
    return page >= 0 && page < cache->shape[0] && row >= 0 && row < cache->shape[1] &&
           !__builtin_mul_overflow(page, cache->shape[1], slot) && !__builtin_add_overflow(*slot, row, slot);
}

/* -1: none. */
static KernelStatus slot_of(HeadSlots how, const View *index, const View *cache, int64_t sequence, int64_t token,
                            int64_t tokens, int64_t *slot)
{
    const int64_t rows = cache->shape[1], blocks = ceiling(tokens, rows);
    const int64_t value = index_at(index, how == SLOTS_OF_BLOCKS ? sequence * blocks + token / rows : sequence * tokens + token);
    *slot = -1;
    if (value == -1) {
        return KERNEL_OK;
    }
    const int64_t row = how == SLOTS_OF_TOKENS ? value % rows : how == SLOTS_OF_BLOCKS ? token % rows : value;
    if (value >= 0 && find_slot(cache, how == SLOTS_OF_PAGES ? sequence : value / rows, row, slot)) {
        return KERNEL_OK;
    }
    return us_kernel_fault("index %lld of token %lld of sequence %lld is outside a cache of %lld pages of %lld rows",
                           (long long)value, (long long)token, (long long)sequence, (long long)cache->shape[0],
                           (long long)rows);
}

static const View *any_cache(const CachedHeads *call, const View *views)
{
    for (int32_t part = 0; part < call->count; part++) {
        const View *cache = &views[1 + part * HEAD_VIEWS + CACHE];
        if (!us_view_is_absent(cache)) {
            return cache;
        }
    }
    return NULL;
}

static KernelStatus find_slots(const CachedHeads *call, const View *views, int64_t *slots)
{
    const View *cache = any_cache(call, views);
    const int64_t sequences = views[1 + X].shape[0], tokens = views[1 + X].shape[1];
    KernelStatus status = KERNEL_OK;
    for (int64_t i = 0; i < sequences * tokens && cache != NULL && status == KERNEL_OK; i++) {
        status = slot_of(call->slots, &views[0], cache, i / tokens, i % tokens, tokens, &slots[i]);
    }
    return status;
}

/* ---- numbers ---- */

static KernelStatus convert(const View *from, const View *to)
{
    return us_reshape((const View[]){*from, *to}, NULL);
}

static KernelStatus normalize(const HeadPart *part, const View *x, const View *gamma, const View *to)
{
    const int64_t depth = x->shape[3];
    const Normalize how = {.line = depth, .parameter_run = 1, .parameter_count = depth, .epsilon = part->epsilon, .factor = 1};
    const View absent = us_view_absent();
    return us_normalize((const View[]){*x, absent, absent, *gamma, absent, absent, *to, absent, absent}, &how);
}

/* The first `count` numbers of every head. */
static View first_of(View heads, int64_t count)
{
    heads.shape[3] = count;
    return heads;
}

static KernelStatus turn(const HeadPart *part, const View *from, const View *cosines, const View *sines, const View *to)
{
    const View x = first_of(*from, part->turned), y = first_of(*to, part->turned);
    const bool sorts = part->turn == TURN_SORTED;
    const MapCall rotate = {.formula = &us_map_rotate, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .inputs = 6,
                            .outputs = 2, .items = 1};
    return us_map((const View[]){us_view_half(x, 3, false, sorts), us_view_half(x, 3, true, sorts),
                                 us_view_half(*cosines, 3, false, false), us_view_half(*cosines, 3, true, false),
                                 us_view_half(*sines, 3, false, false), us_view_half(*sines, 3, true, false),
                                 us_view_half(y, 3, false, false), us_view_half(y, 3, true, false)}, &rotate);
}

/* What is turned after it was normalized is so from a copy in `space`: a map whose results lie among its inputs makes two. */
static KernelStatus compute(const HeadPart *part, const View *views, const View *to, float *space)
{
    const bool turns = part->turn != TURN_NOT, whole = turns && part->turned == to->shape[3];
    View from = views[X];
    KernelStatus status = part->normalizes ? normalize(part, &from, &views[GAMMA], to)
                          : whole          ? KERNEL_OK
                                           : convert(&from, to);
    if (status == KERNEL_OK && turns && part->normalizes) {
        const View first = first_of(*to, part->turned);
        from = us_view_contiguous(space, DTYPE_FLOAT32, 4, first.shape);
        status = convert(&first, &from);
    }
    if (status == KERNEL_OK && turns) {
        status = turn(part, &from, &views[COSINES], &views[SINES], to);
    }
    return status == KERNEL_OK && !us_view_is_absent(&views[OUT]) ? convert(to, &views[OUT]) : status;
}

static KernelStatus quantize(const HeadPart *part, const View *views, const View *values, const View *to)
{
    const Quantize how = {.rounding = ROUND_EVEN, .divides = part->divides};
    return us_view_is_absent(&views[SCALE]) ? convert(values, to)
                                            : us_quantize((const View[]){*values, views[SCALE], views[OFFSET], *to}, &how);
}

/* ---- pieces ---- */

enum { PIECE = 32 * 1024 }; /* numbers, about */

/* Some sequences, or some tokens of one. */
typedef struct Range {
    int64_t sequence, sequences, token, tokens;
} Range;

typedef struct Work {
    const HeadPart *part;
    const View *views;
    View packed; /* what the cache gets, of all tokens; absent: there is none */
    Range step;
    KernelStatus status;
} Work;

static View cut(View view, int32_t axis, int64_t first, int64_t count)
{
    if (view.shape[axis] > 1) { /* else it is for all */
        view.data = (char *)view.data + first * view.strides[axis] * (int64_t)us_dtype_size(view.dtype);
        view.shape[axis] = count;
    }
    return view;
}

static View tokens_of(const View *view, Range range)
{
    return us_view_is_absent(view) ? *view
                                   : cut(cut(*view, 0, range.sequence, range.sequences), 1, range.token, range.tokens);
}

static KernelStatus run_range(const Work *work, Range range)
{
    View views[HEAD_VIEWS];
    for (int i = 0; i < HEAD_VIEWS; i++) {
        views[i] = i == GAMMA || i == CACHE ? work->views[i] : tokens_of(&work->views[i], range);
    }
    const int64_t count = us_view_elements(&views[X]);
    float *taken = us_scratch_array(us_scratch_count(count, 2), sizeof *taken);
    if (taken == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const View values = us_view_contiguous(taken, DTYPE_FLOAT32, 4, views[X].shape), packed = tokens_of(&work->packed, range);
    KernelStatus status = compute(work->part, views, &values, taken + count);
    if (status == KERNEL_OK && !us_view_is_absent(&packed)) {
        status = quantize(work->part, views, &values, &packed);
    }
    us_scratch_give_back(taken);
    return status;
}

static void run_piece(void *context, int64_t piece)
{
    Work *work = context;
    const int64_t *shape = work->views[X].shape, of_sequence = ceiling(shape[1], work->step.tokens);
    Range range = {.sequence = piece / of_sequence * work->step.sequences, .token = piece % of_sequence * work->step.tokens};
    range.sequences = smaller(work->step.sequences, shape[0] - range.sequence);
    range.tokens = smaller(work->step.tokens, shape[1] - range.token);
    us_keep_status(&work->status, run_range(work, range));
}

/* ---- parts ---- */

/* [sequences, tokens, heads, depth], packed, as a cache has its rows. */
static View as_rows(const View *values, int32_t rank, int64_t last)
{
    const int64_t *of = values->shape;
    const int64_t shape[] = {of[0] * of[1], of[2], of[3] / last, last};
    const int64_t whole[] = {of[0] * of[1], of[2], of[3]};
    return us_view_contiguous(values->data, values->dtype, rank - 1, rank == 5 ? shape : whole);
}

static KernelStatus put(const View *packed, const View *cache, int64_t *slots)
{
    const View tokens = as_rows(packed, cache->rank, cache->shape[cache->rank - 1]);
    const View places = us_view_contiguous(slots, DTYPE_INT64, 1, tokens.shape);
    return us_put_slots((const View[]){places, tokens, *cache}, &(Slots){1});
}

/* Numbers are found on all threads; rows are put one after another, because of several for one slot the last one stays. */
static KernelStatus run_part(const HeadPart *part, const View *views, int64_t *slots)
{
    const View *x = &views[X], *cache = &views[CACHE];
    const int64_t count = us_view_elements(x), fitting = larger(PIECE / us_scratch_count(x->shape[2], x->shape[3]), 1);
    Work work = {part, views, us_view_absent(), {.sequences = 1, .tokens = fitting}, KERNEL_OK};
    if (fitting > x->shape[1]) {
        work.step = (Range){.sequences = fitting / x->shape[1], .tokens = x->shape[1]};
    }
    void *taken = NULL;
    if (!us_view_is_absent(cache)) {
        taken = us_scratch_array(count, us_dtype_size(cache->dtype));
        if (taken == NULL) {
            return KERNEL_NO_MEMORY;
        }
        work.packed = us_view_contiguous(taken, cache->dtype, 4, x->shape);
    }
    run_pieces(ceiling(x->shape[0], work.step.sequences) * ceiling(x->shape[1], work.step.tokens), count, run_piece, &work);
    const KernelStatus status = work.status == KERNEL_OK && taken != NULL ? put(&work.packed, cache, slots) : work.status;
    us_scratch_give_back(taken);
    return status;
}

KernelStatus us_cached_heads(const View *views, const void *attributes)
{
    const CachedHeads *call = attributes;
    const View *x = &views[1 + X];
    int64_t *slots = us_scratch_array(us_scratch_count(x->shape[0], x->shape[1]), sizeof *slots);
    KernelStatus status = slots != NULL ? find_slots(call, views, slots) : KERNEL_NO_MEMORY;
    for (int32_t part = 0; part < call->count && status == KERNEL_OK; part++) {
        status = run_part(&call->parts[part], &views[1 + part * HEAD_VIEWS], slots);
    }
    us_scratch_give_back(slots);
    return status;
}
