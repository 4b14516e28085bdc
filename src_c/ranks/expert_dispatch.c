#include "kernels/scratch.h"
#include "ranks/expert_routes.h"
#include "tensor/convert.h"
#include "tensor/lane.h"

#include <math.h>
#include <string.h>

enum { ORIGIN_SIZE = 128 };

static void put_integer(const View *view, int64_t i, int32_t value)
{
    if (!us_view_is_absent(view)) {
        memcpy(us_element_at(view, i, 0), &value, sizeof value);
    }
}

static void put_number(const View *view, int64_t i, float value)
{
    if (!us_view_is_absent(view)) {
        memcpy(us_element_at(view, i, 0), &value, sizeof value);
    }
}

/* Goes before each row. */
typedef struct Ticket {
    float step, weight;
    int32_t token, choice;
} Ticket;

typedef struct Dispatch {
    const View *views;
    const ExpertDispatch *how;
    ExpertRoute route;
    int64_t columns, record; /* bytes of a ticket and a row */
    int64_t own;             /* experts */
    int64_t *counts;         /* of own experts, by ranks */
    char *sent, *received;
} Dispatch;

/* NaN becomes the least, too. */
static int8_t saturated(float value)
{
    return (int8_t)(value > INT8_MIN ? value < INT8_MAX ? value : INT8_MAX : INT8_MIN);
}

static float quantize(const Dispatch *run, int64_t token, int64_t choice, int8_t *row, float *numbers)
{
    const View *smooth = &run->views[DISPATCH_SMOOTH], *x = &run->views[DISPATCH_X];
    const int64_t shared = run->route.choices - run->route.k;
    float most = 0;
    us_load_float(numbers, us_element_at(x, token, 0), x->dtype, x->strides[1], run->columns);
    if (!us_view_is_absent(smooth)) {
        const int64_t line = choice >= run->route.k ? choice - run->route.k
                                                    : shared + us_integer_at(&run->views[DISPATCH_IDS], token, choice);
        for (int64_t i = 0; i < run->columns; i++) {
            numbers[i] *= us_number_at(smooth, line, i);
        }
    }
    for (int64_t i = 0; i < run->columns; i++) {
        const float size = numbers[i] < 0 ? -numbers[i] : numbers[i];
        most = size > most ? size : most;
    }
    const float factor = 127.0F / most;
    for (int64_t i = 0; i < run->columns; i++) {
        row[i] = most > 0 ? saturated(rintf(numbers[i] * factor)) : 0;
    }
    return most > 0 ? 1.0F / factor : 0;
}

static void pack(const Dispatch *run, float *numbers)
{
    const View *x = &run->views[DISPATCH_X], *weights = &run->views[DISPATCH_WEIGHTS], *out = &run->views[DISPATCH_OUT];
    const int64_t size = (int64_t)us_dtype_size(x->dtype);
    for (int64_t i = 0; i < run->route.tokens * run->route.choices; i++) {
        const int64_t token = i / run->route.choices, choice = i % run->route.choices, place = run->route.places[i];
        if (place < 0) {
            continue;
        }
        char *record = run->sent + place * run->record;
        Ticket ticket = {.token = (int32_t)token, .choice = (int32_t)choice, .weight = 1};
        if (choice < run->route.k && !us_view_is_absent(weights)) {
            ticket.weight = us_number_at(weights, token, choice);
        }
        if (out->dtype == x->dtype) {
            us_copy_elements(record + sizeof ticket, 1, us_element_at(x, token, 0), x->strides[1], size, run->columns);
        } else {
            ticket.step = quantize(run, token, choice, (int8_t *)record + sizeof ticket, numbers);
        }
        memcpy(record, &ticket, sizeof ticket);
    }
}

static void put_row(const Dispatch *run, int64_t row, int32_t rank, const char *record)
{
    Ticket ticket;
    const View *out = &run->views[DISPATCH_OUT], *origin = &run->views[DISPATCH_ORIGIN];
    memcpy(&ticket, record, sizeof ticket);
    us_copy_elements(us_element_at(out, row, 0), out->strides[1], record + sizeof ticket, 1, (int64_t)us_dtype_size(out->dtype),
                     run->columns);
    put_number(&run->views[DISPATCH_STEPS], row, ticket.step);
    put_number(&run->views[DISPATCH_ARRIVED_WEIGHTS], row, ticket.weight);
    put_integer(origin, row * ORIGIN_SIZE, rank);
    put_integer(origin, row * ORIGIN_SIZE + 1, ticket.token);
    put_integer(origin, row * ORIGIN_SIZE + 2, ticket.choice);
}

/* By experts, by ranks; they have come by ranks, by experts. */
static void unpack(const Dispatch *run, const int64_t *begin)
{
    const int32_t ranks = run->how->layout.task.room->ranks;
    const View *tokens = &run->views[DISPATCH_TOKENS];
    int64_t row = 0, before = 0;
    for (int64_t expert = 0; expert < run->own; expert++) {
        for (int32_t rank = 0; rank < ranks; rank++) {
            const int64_t *counts = run->counts + rank * run->own;
            const char *record = run->received + begin[rank] * run->record;
            for (int64_t i = 0; i < expert; i++) {
                record += counts[i] * run->record;
            }
            for (int64_t i = 0; i < counts[expert]; i++, record += run->record) {
                put_row(run, row++, rank, record);
            }
            put_integer(&run->views[DISPATCH_COUNTS], expert * ranks + rank, (int32_t)counts[expert]);
        }
        const int64_t number = run->how->sums ? row : row - before;
        memcpy(us_element_at(tokens, expert, 0), &number, sizeof number);
        before = row;
    }
}

static void put_order(const Dispatch *run)
{
    for (int64_t i = 0; i < run->route.tokens * run->route.k && !us_view_is_absent(&run->views[DISPATCH_ORDER]); i++) {
        const int64_t place = run->route.places[i / run->route.k * run->route.choices + i % run->route.k];
        int64_t slot = 0;
        while (place >= run->route.begin[slot + 1]) {
            slot++;
        }
        put_integer(&run->views[DISPATCH_ORDER], i, place < 0 ? 0 : (int32_t)(place - run->route.begin[slot]));
    }
}

/* sizes: four numbers for each rank. */
static KernelStatus move_rows(Dispatch *run, int64_t *sizes)
{
    const ExpertLayout *layout = &run->how->layout;
    const int32_t ranks = layout->task.room->ranks;
    int64_t *sent = sizes, *received = sizes + ranks, *begin = sizes + 2 * ranks, total = 0;
    for (int32_t rank = 0; rank < ranks; rank++) {
        begin[rank] = total;
        received[rank] = 0;
        for (int64_t i = 0; i < run->own; i++) {
            received[rank] += run->counts[rank * run->own + i];
        }
        total += received[rank];
        received[rank] *= run->record;
        sent[rank] = us_tokens_to(layout, &run->route, rank) * run->record;
    }
    if (total > run->views[DISPATCH_OUT].shape[0]) {
        return us_kernel_fault("%lld tokens arrive; expandX has room for %lld", (long long)total,
                               (long long)run->views[DISPATCH_OUT].shape[0]);
    }
    run->received = us_scratch_array(total, (size_t)run->record);
    if (run->received == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const KernelStatus status = us_exchange_bytes(&layout->task, run->sent, sent, run->received, received);
    if (status == KERNEL_OK) {
        unpack(run, begin);
        put_order(run);
    }
    us_scratch_give_back(run->received);
    return status;
}

/* How many tokens go to each slot of another rank. */
static KernelStatus exchange_counts(const Dispatch *run, int64_t *sizes)
{
    const ExpertLayout *layout = &run->how->layout;
    const int32_t ranks = layout->task.room->ranks;
    int64_t *counts = us_scratch_array(run->route.slots, sizeof *counts);
    if (counts == NULL) {
        return KERNEL_NO_MEMORY;
    }
    for (int64_t slot = 0; slot < run->route.slots; slot++) {
        counts[slot] = run->route.begin[slot + 1] - run->route.begin[slot];
    }
    for (int32_t rank = 0; rank < ranks; rank++) {
        sizes[rank] = (us_first_slot(layout, rank + 1) - us_first_slot(layout, rank)) * (int64_t)sizeof *counts;
        sizes[ranks + rank] = run->own * (int64_t)sizeof *counts;
    }
    const KernelStatus status = us_exchange_bytes(&layout->task, (char *)counts, sizes, (char *)run->counts, sizes + ranks);
    us_scratch_give_back(counts);
    return status;
}

static KernelStatus dispatch(Dispatch *run)
{
    const ExpertLayout *layout = &run->how->layout;
    const int32_t ranks = layout->task.room->ranks;
    run->own = us_experts_of(layout, ranks, layout->task.room->rank);
    run->counts = us_scratch_array(run->own * ranks + 4 * ranks, sizeof *run->counts);
    float *numbers = us_scratch_array(run->columns, sizeof *numbers);
    run->sent = us_scratch_array(run->route.count, (size_t)run->record);
    KernelStatus status = run->counts != NULL && numbers != NULL && run->sent != NULL ? KERNEL_OK : KERNEL_NO_MEMORY;
    if (status == KERNEL_OK) {
        pack(run, numbers);
        status = exchange_counts(run, run->counts + run->own * ranks);
    }
    if (status == KERNEL_OK) {
        status = move_rows(run, run->counts + run->own * ranks);
    }
    us_scratch_give_back(run->sent);
    us_scratch_give_back(numbers);
    us_scratch_give_back(run->counts);
    return status;
}

KernelStatus us_dispatch_to_experts(const View *views, const void *attributes)
{
    Dispatch run = {.views = views, .how = attributes, .columns = views[DISPATCH_X].shape[1]};
    const ExpertLayout *layout = &run.how->layout;
    run.record = (int64_t)sizeof(Ticket) + run.columns * (int64_t)us_dtype_size(views[DISPATCH_OUT].dtype);
    KernelStatus status = us_collective_begin(&layout->task);
    if (status == KERNEL_OK) {
        status = us_expert_route(&run.route, layout, &views[DISPATCH_IDS], &views[DISPATCH_ACTIVE]);
        status = status == KERNEL_OK ? dispatch(&run) : status;
        us_expert_route_end(&run.route);
    }
    return us_collective_end(&layout->task, status);
}
