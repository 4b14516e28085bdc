#include "kernels/rnn/delta_rule.h"

#include "kernels/attention/tiles.h"
#include "kernels/linear.h"
#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"

enum { OF_QUERY, OF_KEY, OF_VALUE, OF_BETA, OF_GATE, OF_KEY_GATE, OF_LENGTHS, OF_BEFORE, OF_AFTER, OF_OUT, OF_PLACES,
       OF_ACCEPTED };

typedef struct Task {
    const View *views;
    float scale;
    int64_t group, key_depth, value_depth; /* heads of the value that share a key */
    int64_t *begins;                       /* the first token of every sequence */
    KernelStatus status;
} Task;

/* What a head needs. */
typedef struct Parts {
    float *state, *query, *key, *value, *fading, *out;
} Parts;

static int64_t whole_at(const View *view, int64_t i)
{
    return ((const int32_t *)view->data)[i * view->strides[0]];
}

/* ---- what is not there ---- */

static KernelStatus check_lengths(const View *lengths, int64_t tokens, const DeltaRule *rule)
{
    int64_t end = 0;
    for (int64_t s = 0; s < lengths->shape[0]; s++) {
        const int64_t length = whole_at(lengths, s);
        if (length < rule->whole || (rule->longest > 0 && length > rule->longest) || length > tokens - end) {
            return us_kernel_fault("sequence %lld has %lld tokens, behind %lld of %lld", (long long)s, (long long)length,
                                   (long long)end, (long long)tokens);
        }
        end += length;
    }
    return end == tokens ? KERNEL_OK : us_kernel_fault("the sequences have %lld tokens of %lld", (long long)end,
                                                       (long long)tokens);
}

static KernelStatus check_places(const View *views)
{
    const View *places = &views[OF_PLACES], *accepted = &views[OF_ACCEPTED];
    for (int64_t t = 0; t < places->shape[0]; t++) {
        const int64_t place = whole_at(places, t), states = views[OF_AFTER].shape[0];
        if (place < 0 || place >= states) {
            return us_kernel_fault("token %lld has state %lld of %lld", (long long)t, (long long)place, (long long)states);
        }
    }
    for (int64_t s = 0; !us_view_is_absent(accepted) && s < accepted->shape[0]; s++) {
        const int64_t count = whole_at(accepted, s), length = whole_at(&views[OF_LENGTHS], s);
        if (count < 1 || count > length) {
            return us_kernel_fault("sequence %lld has %lld accepted tokens of %lld", (long long)s, (long long)count,
                                   (long long)length);
        }
    }
    return KERNEL_OK;
}

/* ---- a head ---- */

static void *take_parts(const Task *task, Parts *parts)
{
    const int64_t dk = task->key_depth, dv = task->value_depth;
    float **const arrays[] = {&parts->state, &parts->query, &parts->key, &parts->value, &parts->fading, &parts->out};
    const int64_t sides[][2] = {{dv, dk}, {dk, 1}, {dk, 1}, {dv, 1}, {dk, 1}, {dv, 1}};
    return attention_take_arrays(sizeof sides / sizeof *sides, arrays, sides);
}

static float one_number(const View *view, int64_t token, int64_t head)
{
    float number;
    us_linear_load_float(view, token * view->shape[1] + head, 1, &number);
    return number;
}

static void load_state(const Task *task, int64_t place, int64_t head, float *state)
{
    const View *view = &task->views[OF_BEFORE];
    const int64_t size = task->key_depth * task->value_depth;
    us_linear_load_float(view, (place * view->shape[1] + head) * size, size, state);
}

static void store_state(const Task *task, int64_t place, int64_t head, const float *state)
{
    const View *view = &task->views[OF_AFTER];
    const int64_t size = task->key_depth * task->value_depth;
    us_linear_store_float(view, (place * view->shape[1] + head) * size, size, state);
}

/* fading[j] = e^(g + gk[j]), as a product: either may be absent. */
static void find_fading(const Task *task, int64_t token, int64_t head, float *fading)
{
    const View *gate = &task->views[OF_GATE], *gates = &task->views[OF_KEY_GATE];
    const int64_t depth = task->key_depth;
    const float of_head = us_view_is_absent(gate) ? 1 : exp_float(one_number(gate, token, head));
    if (us_view_is_absent(gates)) {
        for (int64_t j = 0; j < depth; j++) {
            fading[j] = of_head;
        }
        return;
    }
    us_linear_load_float(gates, (token * gates->shape[1] + head) * depth, depth, fading);
    for (int64_t j = 0; j < depth; j++) {
        fading[j] = of_head * exp_float(fading[j]);
    }
}

static void step(const Task *task, int64_t token, int64_t head, const Parts *parts)
{
    const int64_t dk = task->key_depth, dv = task->value_depth, heads = task->views[OF_VALUE].shape[1];
    const int64_t key_row = (token * task->views[OF_KEY].shape[1] + head / task->group) * dk, row = (token * heads + head) * dv;
    us_linear_load_float(&task->views[OF_QUERY], key_row, dk, parts->query);
    us_linear_load_float(&task->views[OF_KEY], key_row, dk, parts->key);
    us_linear_load_float(&task->views[OF_VALUE], row, dv, parts->value);
    attention_multiply(parts->query, dk, task->scale);
    find_fading(task, token, head, parts->fading);
    const float beta = one_number(&task->views[OF_BETA], token, head);
    for (int64_t i = 0; i < dv; i++) {
        float *line = parts->state + i * dk;
        for (int64_t j = 0; j < dk; j++) {
            line[j] *= parts->fading[j];
        }
        const float learned = beta * (parts->value[i] - inner_product(line, parts->key, dk));
        for (int64_t j = 0; j < dk; j++) {
            line[j] += learned * parts->key[j];
        }
        parts->out[i] = inner_product(line, parts->query, dk);
    }
    us_linear_store_float(&task->views[OF_OUT], row, dv, parts->out);
}

/* The state that a sequence begins with. */
static int64_t first_place(const View *views, int64_t sequence, int64_t token)
{
    const View *accepted = &views[OF_ACCEPTED];
    const int64_t behind = us_view_is_absent(accepted) ? 0 : whole_at(accepted, sequence) - 1;
    return whole_at(&views[OF_PLACES], token + behind);
}

static void run_sequence(const Task *task, int64_t sequence, int64_t head, const Parts *parts)
{
    const View *places = &task->views[OF_PLACES];
    const bool placed = !us_view_is_absent(places);
    const int64_t begin = task->begins[sequence], end = begin + whole_at(&task->views[OF_LENGTHS], sequence);
    load_state(task, placed ? first_place(task->views, sequence, begin) : sequence, head, parts->state);
    for (int64_t token = begin; token < end; token++) {
        step(task, token, head, parts);
        if (placed) {
            store_state(task, whole_at(places, token), head, parts->state);
        }
    }
    if (!placed) {
        store_state(task, sequence, head, parts->state);
    }
}

/* A head of one sequence, or of all in turn where they may have states in common. */
static void run_piece(void *context, int64_t piece)
{
    Task *task = context;
    const int64_t heads = task->views[OF_VALUE].shape[1], first = piece / heads;
    const int64_t end = us_view_is_absent(&task->views[OF_PLACES]) ? first + 1 : task->views[OF_LENGTHS].shape[0];
    Parts parts;
    void *block = take_parts(task, &parts);
    if (block == NULL) {
        __atomic_store_n(&task->status, KERNEL_NO_MEMORY, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t sequence = first; sequence < end; sequence++) {
        run_sequence(task, sequence, piece % heads, &parts);
    }
    us_scratch_give_back(block);
}

static void find_begins(const Task *task)
{
    const View *lengths = &task->views[OF_LENGTHS];
    int64_t token = 0;
    for (int64_t s = 0; s < lengths->shape[0]; s++) {
        task->begins[s] = token;
        token += whole_at(lengths, s);
    }
}

KernelStatus us_delta_rule(const View *views, const void *attributes)
{
    const DeltaRule *rule = attributes;
    const View *value = &views[OF_VALUE];
    Task task = {.views = views, .scale = rule->scale, .group = value->shape[1] / views[OF_KEY].shape[1],
                 .key_depth = views[OF_KEY].shape[2], .value_depth = value->shape[2]};
    task.status = check_lengths(&views[OF_LENGTHS], value->shape[0], rule);
    const bool placed = !us_view_is_absent(&views[OF_PLACES]);
    if (task.status == KERNEL_OK && placed) {
        task.status = check_places(views);
    }
    if (task.status != KERNEL_OK) {
        return task.status;
    }
    const int64_t sequences = views[OF_LENGTHS].shape[0];
    task.begins = us_scratch_array(sequences, sizeof *task.begins);
    if (task.begins == NULL) {
        return KERNEL_NO_MEMORY;
    }
    find_begins(&task);
    run_pieces((placed ? 1 : sequences) * value->shape[1], us_scratch_count(us_view_elements(value), task.key_depth), run_piece,
               &task);
    us_scratch_give_back(task.begins);
    return task.status;
}
