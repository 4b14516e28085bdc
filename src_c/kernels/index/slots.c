#include "kernels/index/slots.h"

#include "kernels/linear.h"
#include "kernels/move/copy_view.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"

/* ---- places ---- */

static int64_t element_at(const View *places, int64_t offset)
{
    return places->dtype == DTYPE_INT32 ? ((const int32_t *)places->data)[offset] : ((const int64_t *)places->data)[offset];
}

static int64_t place_at(const View *places, int64_t entry)
{
    return element_at(places, entry * places->strides[0]);
}

/* Slots slot … slot + count - 1, of which there is at least one. */
static bool has_slots(const View *cache, int64_t slot, int64_t count)
{
    int64_t last;
    return slot >= 0 && !__builtin_add_overflow(slot, count - 1, &last) && last / cache->shape[1] < cache->shape[0];
}

/* Rows row … row + count - 1 of a page. */
static View rows_in_page(const View *cache, int64_t page, int64_t row, int64_t count)
{
    const View rows = us_view_remove_axis(us_view_rows(cache, page, page + 1), 0);
    return us_view_rows(&rows, row, row + count);
}

static View slot_of(const View *cache, int64_t slot)
{
    return rows_in_page(cache, slot / cache->shape[1], slot % cache->shape[1], 1);
}

static KernelStatus no_slot(int64_t slot, const char *of, int64_t entry, const View *cache)
{
    return us_kernel_fault("slot %lld of %s %lld is outside a cache of %lld pages of %lld rows", (long long)slot, of,
                           (long long)entry, (long long)cache->shape[0], (long long)cache->shape[1]);
}

/* ---- a token, a slot ---- */

KernelStatus us_put_slots(const View *views, const void *attributes)
{
    const Slots *put = attributes;
    const View *slots = &views[0], *pairs = &views[1];
    const int64_t tokens = slots->shape[0];
    for (int64_t token = 0; token < tokens; token++) {
        const int64_t slot = place_at(slots, token);
        if (slot != -1 && !has_slots(&pairs[1], slot, 1)) {
            return no_slot(slot, "token", token, &pairs[1]);
        }
    }
    for (int64_t token = 0; token < tokens; token++) {
        const int64_t slot = place_at(slots, token);
        for (int32_t pair = 0; pair < put->pairs && slot >= 0; pair++) {
            const View from = us_view_rows(&pairs[2 * pair], token, token + 1), to = slot_of(&pairs[2 * pair + 1], slot);
            us_copy_view(&to, &from);
        }
    }
    return KERNEL_OK;
}

/* ---- compressed sequences ---- */

typedef struct Kept {
    int64_t slot, length, count, begin; /* begin: of the mean; -1: the last `count` tokens are kept */
} Kept;

static Kept kept_of(const View *views, int64_t sequence, int64_t entry)
{
    const View *begins = &views[3];
    return (Kept){place_at(&views[0], entry), place_at(&views[2], sequence), place_at(&views[1], entry),
                  us_view_is_absent(begins) ? -1 : place_at(begins, entry)};
}

static int64_t rows_of(Kept kept)
{
    return kept.begin < 0 ? kept.count : kept.length - kept.count + (kept.count > 0);
}

/* Whether what is said of a head of a sequence makes sense, and its slots are there. */
static KernelStatus check_kept(const View *views, Kept kept, int64_t entry)
{
    const bool has_begin = us_view_is_absent(&views[3]) || (kept.begin >= 0 && kept.begin <= kept.length);
    if (!has_begin || kept.count < 0 || kept.count > kept.length - (kept.begin < 0 ? 0 : kept.begin)) {
        return us_kernel_fault("entry %lld compresses %lld tokens from %lld on: its sequence has %lld", (long long)entry,
                               (long long)kept.count, (long long)kept.begin, (long long)kept.length);
    }
    const bool fits = rows_of(kept) == 0 || has_slots(&views[5], kept.slot, rows_of(kept));
    return fits ? KERNEL_OK : no_slot(kept.slot, "entry", entry, &views[5]);
}

static KernelStatus check_compressed(const View *views)
{
    const int64_t sequences = views[2].shape[0], heads = views[4].shape[1], tokens = views[4].shape[0];
    int64_t rest = tokens;
    for (int64_t sequence = 0; sequence < sequences; sequence++) {
        const int64_t length = place_at(&views[2], sequence);
        if (length < 0 || length > rest) {
            return us_kernel_fault("sequence %lld has %lld tokens: there are %lld", (long long)sequence, (long long)length,
                                   (long long)rest);
        }
        rest -= length;
        for (int64_t head = 0; head < heads; head++) {
            const int64_t entry = sequence * heads + head;
            const KernelStatus status = check_kept(views, kept_of(views, sequence, entry), entry);
            if (status != KERNEL_OK) {
                return status;
            }
        }
    }
    return rest == 0 ? KERNEL_OK : us_kernel_fault("sequences have %lld tokens: there are %lld", (long long)(tokens - rest),
                                                   (long long)tokens);
}

/* Tokens [first, end) of a head to the slots from `slot` on. */
static void put_tokens(const View *tokens, int64_t first, int64_t end, const View *cache, int64_t slot)
{
    const int64_t rows = cache->shape[1];
    for (int64_t count; first < end; first += count, slot += count) {
        count = smaller(end - first, rows - slot % rows);
        const View from = us_view_rows(tokens, first, first + count);
        const View to = rows_in_page(cache, slot / rows, slot % rows, count);
        us_copy_view(&to, &from);
    }
}

static KernelStatus put_mean(const View *tokens, int64_t first, int64_t count, const View *cache, int64_t slot)
{
    const int64_t depth = tokens->shape[1];
    const View to = slot_of(cache, slot);
    double *row = us_scratch_array(us_scratch_count(depth, 2), sizeof *row), *sums = row + depth;
    if (row == NULL) {
        return KERNEL_NO_MEMORY;
    }
    for (int64_t i = 0; i < depth; i++) {
        sums[i] = 0;
    }
    for (int64_t token = first; token < first + count; token++) {
        us_linear_load_double(tokens, token * depth, depth, row);
        for (int64_t i = 0; i < depth; i++) {
            sums[i] += row[i];
        }
    }
    for (int64_t i = 0; i < depth; i++) {
        sums[i] /= (double)count;
    }
    us_linear_store_double(&to, 0, depth, sums);
    us_scratch_give_back(row);
    return KERNEL_OK;
}

/* `tokens` of one head, from the sequence's first one on. */
static KernelStatus put_kept(const View *tokens, Kept kept, const View *cache)
{
    if (kept.begin < 0) {
        put_tokens(tokens, kept.length - kept.count, kept.length, cache, kept.slot);
        return KERNEL_OK;
    }
    const int64_t rest = kept.begin + kept.count, means = kept.count > 0;
    put_tokens(tokens, 0, kept.begin, cache, kept.slot);
    put_tokens(tokens, rest, kept.length, cache, kept.slot + kept.begin + means);
    return means ? put_mean(tokens, kept.begin, kept.count, cache, kept.slot + kept.begin) : KERNEL_OK;
}

KernelStatus us_put_compressed(const View *views, const void *attributes)
{
    const Slots *put = attributes;
    const int64_t sequences = views[2].shape[0], heads = views[4].shape[1];
    KernelStatus status = check_compressed(views);
    int64_t first = 0;
    for (int64_t entry = 0; entry < sequences * heads && status == KERNEL_OK; entry++) {
        const Kept kept = kept_of(views, entry / heads, entry);
        for (int32_t pair = 0; pair < put->pairs && status == KERNEL_OK; pair++) {
            View own = us_view_rows(&views[4 + 2 * pair], first, first + kept.length);
            own.data = (char *)own.data + entry % heads * own.strides[1] * (int64_t)us_dtype_size(own.dtype);
            own = us_view_remove_axis(own, 1);
            status = put_kept(&own, kept, &views[5 + 2 * pair]);
        }
        first += entry % heads == heads - 1 ? kept.length : 0;
    }
    return status;
}

/* ---- tokens from pages ---- */

/* The tokens of a sequence: where they begin, in the result and among the rows of its pages, and how many there are. */
typedef struct Run {
    int64_t first, row, length;
} Run;

static Run run_of(const View *views, const TakePages *take, int64_t sequence, int64_t first)
{
    const View *lengths = &views[1], *offsets = &views[2];
    const int64_t rows = views[3].shape[1], offset = us_view_is_absent(offsets) ? 0 : place_at(offsets, sequence);
    const int64_t value = place_at(lengths, sequence);
    int64_t length = value;
    if (take->ends && __builtin_sub_overflow(place_at(lengths, sequence + 1), value, &length)) {
        length = -1;
    }
    return (Run){take->ends ? value : first, offset < 0 ? -1 : offset / rows * rows, length};
}

static int64_t page_at(const View *pages, int64_t sequence, int64_t number)
{
    return element_at(pages, sequence * pages->strides[0] + number * pages->strides[1]);
}

static KernelStatus check_pages(const View *views, Run run, int64_t sequence)
{
    const View *pages = &views[0], *cache = &views[3];
    const int64_t rows = cache->shape[1], first = run.row / rows;
    for (int64_t i = first; run.length > 0 && i - first <= (run.length - 1) / rows; i++) {
        const int64_t page = i < pages->shape[1] ? page_at(pages, sequence, i) : -1;
        if (i >= pages->shape[1] || page < 0 || page >= cache->shape[0]) {
            return us_kernel_fault("page %lld of sequence %lld is number %lld: %lld are named, of %lld", (long long)i,
                                   (long long)sequence, (long long)page, (long long)pages->shape[1],
                                   (long long)cache->shape[0]);
        }
    }
    return KERNEL_OK;
}

static KernelStatus check_runs(const View *views, const TakePages *take)
{
    const int64_t tokens = views[4].shape[0];
    int64_t next = 0;
    KernelStatus status = KERNEL_OK;
    for (int64_t sequence = 0; sequence < views[0].shape[0] && status == KERNEL_OK; sequence++) {
        const Run run = run_of(views, take, sequence, next);
        if (run.first != next || run.row < 0 || run.length < 0 || run.length > tokens - next) {
            return us_kernel_fault("sequence %lld has %lld tokens from %lld on, %lld rows behind its pages' begin: there is room "
                                   "for %lld from %lld on", (long long)sequence, (long long)run.length, (long long)run.first,
                                   (long long)run.row, (long long)tokens, (long long)next);
        }
        next += run.length;
        status = check_pages(views, run, sequence);
    }
    return status;
}

KernelStatus us_take_pages(const View *views, const void *attributes)
{
    const TakePages *take = attributes;
    const int64_t rows = views[3].shape[1];
    const KernelStatus status = check_runs(views, take);
    int64_t next = 0;
    for (int64_t sequence = 0; sequence < views[0].shape[0] && status == KERNEL_OK; sequence++) {
        const Run run = run_of(views, take, sequence, next);
        for (int64_t done = 0, count; done < run.length; done += count) {
            const int64_t page = page_at(&views[0], sequence, (run.row + done) / rows);
            count = smaller(run.length - done, rows);
            for (int32_t pair = 0; pair < take->pairs; pair++) {
                const View from = rows_in_page(&views[3 + 2 * pair], page, 0, count);
                const View to = us_view_rows(&views[4 + 2 * pair], next + done, next + done + count);
                us_copy_view(&to, &from);
            }
        }
        next += run.length;
    }
    return status;
}

/* ---- the next step's tokens ---- */

/* Below 0: none. */
static int64_t slot_in_blocks(const View *blocks, int64_t sequence, int64_t position, int64_t block_size)
{
    int64_t slot = -1;
    if (position >= 0 && position < INT64_MAX && position / block_size < blocks->shape[1]) { /* there is one length more */
        const int64_t block = page_at(blocks, sequence, position / block_size);
        if (block < 0 || __builtin_mul_overflow(block, block_size, &slot) ||
            __builtin_add_overflow(slot, position % block_size, &slot)) {
            slot = -1;
        }
    }
    return slot;
}

static int64_t *number_at(const View *view, int64_t sequence, int64_t token)
{
    return (int64_t *)view->data + sequence * view->strides[0] + token * view->strides[1];
}

static void put_step(const View *views, int64_t sequence, int64_t token, int64_t position, int64_t block_size)
{
    *number_at(&views[1], sequence, token) = position;
    *number_at(&views[2], sequence, token) = position + 1;
    *number_at(&views[3], sequence, token) = slot_in_blocks(&views[5], sequence, position, block_size);
}

KernelStatus us_advance_step(const View *views, const void *attributes)
{
    const int64_t block_size = ((const AdvanceStep *)attributes)->block_size;
    const View *lengths = &views[2], *sampled = &views[4], *blocks = &views[5];
    for (int64_t i = 0; i < sampled->shape[0]; i++) {
        const int64_t position = *number_at(lengths, i, 0);
        if (slot_in_blocks(blocks, i, position, block_size) < 0) {
            return us_kernel_fault("sequence %lld has %lld tokens, and no block for one more: it may have %lld of %lld tokens",
                                   (long long)i, (long long)position, (long long)blocks->shape[1], (long long)block_size);
        }
    }
    for (int64_t i = 0; i < sampled->shape[0]; i++) {
        *number_at(&views[0], i, 0) = *number_at(sampled, i, 0);
        put_step(views, i, 0, *number_at(lengths, i, 0), block_size);
    }
    return KERNEL_OK;
}

/* The last one that is not below 0; -1: there is none. */
static int64_t last_sampled(const View *sampled, int64_t sequence)
{
    int64_t token = -1;
    for (int64_t i = sampled->shape[1] - 1; i >= 0 && token < 0; i--) {
        token = *number_at(sampled, sequence, i);
    }
    return token < 0 ? -1 : token;
}

/* Below 0: none. */
static int64_t position_behind(const View *views, int64_t sequence, int64_t token)
{
    int64_t position;
    const bool is_none = __builtin_add_overflow(*number_at(&views[1], sequence, token), 1, &position) ||
                         __builtin_add_overflow(position, place_at(&views[7], sequence), &position);
    return is_none ? -1 : position;
}

static KernelStatus check_guesses(const View *views, int64_t block_size)
{
    const View *blocks = &views[5];
    for (int64_t i = 0; i < views[0].shape[0]; i++) {
        if (last_sampled(&views[4], i) < 0) {
            return us_kernel_fault("sequence %lld has no sampled token that is not below 0", (long long)i);
        }
        for (int64_t token = 0; token < views[0].shape[1]; token++) {
            if (slot_in_blocks(blocks, i, position_behind(views, i, token), block_size) < 0) {
                return us_kernel_fault("token %lld of sequence %lld, at %lld with %lld accepted behind it, gets no block: "
                                       "there are %lld of %lld tokens", (long long)token, (long long)i,
                                       (long long)*number_at(&views[1], i, token), (long long)place_at(&views[7], i),
                                       (long long)blocks->shape[1], (long long)block_size);
            }
        }
    }
    return KERNEL_OK;
}

KernelStatus us_advance_guesses(const View *views, const void *attributes)
{
    const int64_t block_size = ((const AdvanceStep *)attributes)->block_size;
    const KernelStatus status = check_guesses(views, block_size);
    for (int64_t i = 0; status == KERNEL_OK && i < views[0].shape[0]; i++) {
        const int64_t sampled = last_sampled(&views[4], i);
        for (int64_t token = 0; token < views[0].shape[1]; token++) {
            *number_at(&views[0], i, token) = token == 0 ? sampled : *number_at(&views[6], i, token - 1);
            put_step(views, i, token, position_behind(views, i, token), block_size);
        }
    }
    return status;
}
