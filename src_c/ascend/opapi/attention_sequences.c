/* Attention: the rows and keys of every sequence, and the band of the sparse mode. */
#include "ascend/opapi/attention_parts.h"
#include "kernels/scratch.h"

int64_t sequence_count(const AttentionCall *call, const Operand4 *of)
{
    return call->packed ? call->query_ends.count : of->query.shape[0];
}

bool is_listed(const AttentionCall *call)
{
    return call->keys.count > 1;
}

int64_t key_room(const AttentionCall *call, const Operand4 *of, int64_t batch)
{
    if (op_given(call->pages)) {
        return call->pages->view.shape[1] * of->key.shape[2];
    }
    return is_listed(call) ? call->keys.items[batch]->view.shape[layout_of(call)->row] : of->key.shape[2];
}

int64_t shared_keys(const AttentionCall *call)
{
    if (!op_given(call->shared_key)) {
        return 0;
    }
    return call->shared_length.count > 0 ? call->shared_length.values[0]
                                         : call->shared_key->view.shape[layout_of(call)->row];
}

int64_t most_keys(const AttentionCall *call, const Operand4 *of)
{
    int64_t most = key_room(call, of, 0);
    for (int64_t s = 1; is_listed(call) && s < call->keys.count; s++) {
        const int64_t room = key_room(call, of, s);
        most = room > most ? room : most;
    }
    return most;
}

int64_t begin_of(IntArguments ends, int64_t at)
{
    return at == 0 ? 0 : ends.values[at - 1];
}

int64_t longest_part(IntArguments ends)
{
    int64_t most = 0;
    for (int64_t s = 0; s < ends.count; s++) {
        const int64_t length = ends.values[s] - begin_of(ends, s);
        most = length > most ? length : most;
    }
    return most;
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

bool is_padded(const AttentionCall *call)
{
    return (op_given(call->query_padding) && call->query_lengths.count > 0) ||
           (op_given(call->key_padding) && call->key_lengths.count > 0);
}

static void set_band(const AttentionCall *call, AttentionSequence *sequence, int64_t mode, int64_t prefix)
{
    const int64_t corner = sequence->key_count - sequence->seen_rows;
    sequence->low = -FAR;
    sequence->high = FAR;
    if (!op_given(call->mask) || mode == MODE_ALL || (mode == MODE_DEFAULT && is_padded(call))) {
        return;
    }
    if (mode == MODE_DEFAULT || mode == MODE_BAND) {
        const int64_t origin = mode == MODE_BAND ? corner : 0;
        sequence->low = origin - bounded(call->before);
        sequence->high = origin + bounded(call->after);
        return;
    }
    sequence->high = mode == MODE_LEFT_UP ? 0 : corner;
    const bool kept = prefix > 0 && (mode == MODE_PREFIX || mode == MODE_PREFIX_SMALL);
    sequence->prefix = kept ? prefix : 0;
}

int64_t length_of(IntArguments lengths, int64_t sequence, int64_t whole)
{
    return lengths.count == 0 ? whole : lengths.values[lengths.count == 1 ? 0 : sequence];
}

/* Scores so far, and those of a sequence. */
static int64_t with_scores(int64_t before, int64_t heads, int64_t rows, int64_t keys)
{
    int64_t count;
    return __builtin_add_overflow(before, us_scratch_count(us_scratch_count(heads, rows), keys), &count) ? INT64_MAX : count;
}

int64_t score_count(const AttentionCall *call)
{
    const Operand4 of = split_heads(call);
    const int64_t batches = of.query.shape[0], rows = of.query.shape[2], keys = of.key.shape[2];
    int64_t count = call->packed ? 0 : with_scores(0, us_scratch_count(batches, call->heads), rows, keys);
    for (int64_t s = 0; call->packed && s < call->query_ends.count; s++) {
        count = with_scores(count, call->heads, call->query_ends.values[s] - begin_of(call->query_ends, s),
                            call->key_ends.values[s] - begin_of(call->key_ends, s));
    }
    return count;
}

void describe_sequences(const AttentionCall *call, const Operand4 *of, Attention *attention)
{
    int64_t rows = 0, scores = 0;
    const int64_t sequences = attention->sizes.sequences;
    for (int64_t s = 0; s < sequences; s++) {
        AttentionSequence *sequence = &attention->of[s];
        *sequence = (AttentionSequence){.query_count = of->query.shape[2], .key_count = key_room(call, of, s),
                                        .rows_before = rows, .score_begin = scores};
        if (call->packed) {
            sequence->query_begin = begin_of(call->query_ends, s);
            sequence->query_count = call->query_ends.values[s] - sequence->query_begin;
        }
        if (call->packed && !op_given(call->pages)) {
            sequence->key_begin = begin_of(call->key_ends, s);
            sequence->key_count = call->key_ends.values[s] - sequence->key_begin;
        }
        sequence->seen_rows = length_of(call->query_lengths, s, sequence->query_count);
        sequence->key_count = shared_keys(call) + length_of(call->key_lengths, s, sequence->key_count);
        rows += sequence->query_count;
        scores = with_scores(scores, call->heads, sequence->query_count, sequence->key_count);
    }
    const int64_t cut = call->mode > MODE_PREFIX_SMALL ? cut_sequence(call, sequences, attention->of) : -1;
    for (int64_t s = 0; s < sequences; s++) {
        const int64_t others = call->mode == MODE_OUTSIDE_LEFT_UP ? MODE_LEFT_UP : MODE_RIGHT_DOWN;
        const int64_t mode = call->mode <= MODE_PREFIX_SMALL ? call->mode : s == cut ? MODE_BAND : others;
        set_band(call, &attention->of[s], mode, s < call->prefix.count ? call->prefix.values[s] : 0);
    }
}

bool mask_is_read(const AttentionCall *call)
{
    return op_given(call->mask) &&
           (call->mode == MODE_DEFAULT || call->mode == MODE_ALL || call->mode == MODE_PREFIX);
}
