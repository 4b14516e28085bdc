#include "kernels/routing/routing.h"

#include "kernels/maths/maths.h"
#include "kernels/routing/integers.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"
#include "tensor/parallel.h"

#include <string.h>

enum { LIMIT = US_GATE_EXPERTS, PIECE_ELEMENTS = 8 * 1024 };
enum { X, BIAS, WEIGHTS, CHOSEN, NORM, KEYS, TABLE };

typedef struct Gate {
    const GateTokens *call;
    const View *views;
    int64_t rows, experts, piece_rows;
    float bias[LIMIT]; /* zeros without one */
} Gate;

static float sqrt_softplus(float x)
{
    return sqrt_float(softplus_float(x));
}

static void soften(float *scores, int64_t count)
{
    float largest = scores[0];
    double sum = 0;
    for (int64_t e = 1; e < count; e++) {
        largest = scores[e] > largest ? scores[e] : largest;
    }
    for (int64_t e = 0; e < count; e++) {
        scores[e] = exp_float(scores[e] - largest);
        sum += (double)scores[e];
    }
    for (int64_t e = 0; e < count; e++) {
        scores[e] = (float)((double)scores[e] / sum);
    }
}

static void normalise(const Gate *gate, float *scores)
{
    if (gate->call->norm == GATE_SOFTMAX) {
        soften(scores, gate->experts);
        return;
    }
    for (int64_t e = 0; e < gate->experts; e++) {
        scores[e] = gate->call->norm == GATE_SIGMOID ? sigmoid_float(scores[e]) : sqrt_softplus(scores[e]);
    }
}

/* As torch.topk: NaN is above all others. */
static bool is_above(float a, float b)
{
    return a > b || (a != a && b == b);
}

/* Numbers of the largest values, at most so many, in descending order, the first of equal ones first. */
typedef struct Largest {
    int64_t most, held, numbers[LIMIT];
} Largest;

static void start_with_none(Largest *found, int64_t most)
{
    found->most = most;
    found->held = 0;
}

static void find_largest(const float *values, int64_t begin, int64_t end, Largest *found)
{
    for (int64_t i = begin; i < end; i++) {
        if (found->held == found->most && !is_above(values[i], values[found->numbers[found->most - 1]])) {
            continue;
        }
        int64_t at = found->held < found->most ? found->held++ : found->most - 1;
        for (; at > 0 && is_above(values[i], values[found->numbers[at - 1]]); at--) {
            found->numbers[at] = found->numbers[at - 1];
        }
        found->numbers[at] = i;
    }
}

/* The sum of the largest ones, from the largest on. */
static float group_score(const GateTokens *call, const float *values, int64_t size)
{
    Largest best;
    start_with_none(&best, call->best);
    find_largest(values, 0, size, &best);
    float sum = values[best.numbers[0]];
    for (int64_t i = 1; i < best.held; i++) {
        sum += values[best.numbers[i]];
    }
    return sum;
}

/* The best groups are kept. */
static void choose_groups(const Gate *gate, const float *values, bool *kept)
{
    const int64_t groups = gate->call->groups, size = gate->experts / groups;
    memset(kept, gate->call->kept_groups == groups, (size_t)groups);
    if (gate->call->kept_groups < groups) {
        float scores[LIMIT];
        Largest best;
        start_with_none(&best, gate->call->kept_groups);
        for (int64_t g = 0; g < groups; g++) {
            scores[g] = group_score(gate->call, values + g * size, size);
        }
        find_largest(scores, 0, groups, &best);
        for (int64_t i = 0; i < best.held; i++) {
            kept[best.numbers[i]] = true;
        }
    }
}

static void store_weights(const Gate *gate, int64_t row, float *weights)
{
    const GateTokens *call = gate->call;
    const Line line = us_line_of(&gate->views[WEIGHTS], 1, row);
    double sum = 0;
    for (int64_t i = 0; i < call->choices; i++) {
        sum += (double)weights[i];
    }
    for (int64_t i = 0; i < call->choices; i++) {
        const double share = call->divides ? (double)weights[i] / (sum + call->eps) : (double)weights[i];
        weights[i] = (float)(share * call->factor);
    }
    us_store_float(line.data, line.dtype, line.stride, weights, call->choices);
}

/* By the table, of the row that the token's key names. */
static void look_experts_up(const Gate *gate, int64_t row, int64_t *experts)
{
    const int64_t key = us_integer_at(&gate->views[KEYS], 0, row);
    for (int64_t i = 0; i < gate->call->choices; i++) {
        experts[i] = us_integer_at(&gate->views[TABLE], key, i);
    }
}

static void choose_experts(const Gate *gate, const float *scores, Largest *chosen)
{
    const int64_t groups = gate->call->groups, size = gate->experts / groups;
    float values[LIMIT];
    bool kept[LIMIT];
    for (int64_t e = 0; e < gate->experts; e++) {
        values[e] = scores[e] + gate->bias[e];
    }
    choose_groups(gate, values, kept);
    for (int64_t g = 0; g < groups; g++) {
        if (kept[g]) {
            find_largest(values, g * size, (g + 1) * size, chosen);
        }
    }
}

static void gate_row(const Gate *gate, int64_t row)
{
    float scores[LIMIT], weights[LIMIT];
    Largest experts;
    const Line x = us_line_of(&gate->views[X], 1, row), chosen = us_line_of(&gate->views[CHOSEN], 1, row);
    const Line norm = us_line_of(&gate->views[NORM], 1, row);
    us_load_float(scores, x.data, x.dtype, x.stride, gate->experts);
    normalise(gate, scores);
    if (norm.data) {
        us_store_float(norm.data, norm.dtype, norm.stride, scores, gate->experts);
    }
    if (us_view_is_absent(&gate->views[TABLE])) {
        start_with_none(&experts, gate->call->choices);
        choose_experts(gate, scores, &experts);
    } else {
        look_experts_up(gate, row, experts.numbers);
    }
    for (int64_t i = 0; i < gate->call->choices; i++) {
        weights[i] = scores[experts.numbers[i]];
        *(int32_t *)us_line_element(&chosen, i) = (int32_t)experts.numbers[i];
    }
    store_weights(gate, row, weights);
}

static void gate_piece(void *context, int64_t piece)
{
    const Gate *gate = context;
    const int64_t begin = piece * gate->piece_rows;
    for (int64_t row = begin; row < smaller(begin + gate->piece_rows, gate->rows); row++) {
        gate_row(gate, row);
    }
}

static KernelStatus check_table(const Gate *gate)
{
    const View *table = &gate->views[TABLE];
    for (int64_t row = 0; row < gate->rows && !us_view_is_absent(table); row++) {
        const int64_t key = us_integer_at(&gate->views[KEYS], 0, row);
        if (key < 0 || key >= table->shape[0]) {
            return us_kernel_fault("input id %lld of %lld is %lld, which is not in 0 … %lld", (long long)row,
                                   (long long)gate->rows, (long long)key, (long long)table->shape[0] - 1);
        }
        for (int64_t i = 0; i < gate->call->choices; i++) {
            const int64_t expert = us_integer_at(table, key, i);
            if (expert < 0 || expert >= gate->experts) {
                return us_kernel_fault("expert %lld of input id %lld is %lld, which is not in 0 … %lld", (long long)i,
                                       (long long)key, (long long)expert, (long long)gate->experts - 1);
            }
        }
    }
    return KERNEL_OK;
}

KernelStatus us_gate_tokens(const View *views, const void *attributes)
{
    Gate gate = {.call = attributes, .views = views, .rows = views[X].shape[0], .experts = views[X].shape[1]};
    gate.piece_rows = PIECE_ELEMENTS / gate.experts + 1;
    if (!us_view_is_absent(&views[BIAS])) {
        const Line bias = us_line_of(&views[BIAS], 0, 0);
        us_load_float(gate.bias, bias.data, bias.dtype, bias.stride, gate.experts);
    }
    const KernelStatus status = check_table(&gate);
    if (status == KERNEL_OK) {
        us_parallel(ceiling(gate.rows, gate.piece_rows), gate_piece, &gate);
    }
    return status;
}
