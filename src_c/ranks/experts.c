#include "ranks/experts.h"

#include "kernels/scratch.h"
#include "tensor/convert.h"
#include "tensor/lane.h"

#include <math.h>
#include <string.h>

enum { ORIGIN_SIZE = 128 };

/* ---- elements ---- */

static void *at(const View *view, int64_t row, int64_t column)
{
    const int64_t place = view->rank == 1 ? row * view->strides[0] : row * view->strides[0] + column * view->strides[1];
    return (char *)view->data + place * (int64_t)us_dtype_size(view->dtype);
}

static int32_t integer_at(const View *view, int64_t row, int64_t column)
{
    int32_t value;
    memcpy(&value, at(view, row, column), sizeof value);
    return value;
}

static float number_at(const View *view, int64_t row, int64_t column)
{
    float value;
    memcpy(&value, at(view, row, column), sizeof value);
    return value;
}

static void put_integer(const View *view, int64_t i, int32_t value)
{
    if (!us_view_is_absent(view)) {
        memcpy(at(view, i, 0), &value, sizeof value);
    }
}

static void put_number(const View *view, int64_t i, float value)
{
    if (!us_view_is_absent(view)) {
        memcpy(at(view, i, 0), &value, sizeof value);
    }
}

/* ---- who goes where ---- */

/* Each expert of each rank is a slot: those of shared ones first. What goes to a slot is in the order of the tokens. */
typedef struct Route {
    int64_t tokens, k, choices; /* of a token: k, and those of shared experts */
    int64_t slots, count;
    int64_t *begin;  /* of each slot, and the end */
    int64_t *places; /* of each token's choices; -1: none */
} Route;

static bool is_active(const View *active, int64_t token, int64_t k)
{
    return us_view_is_absent(active) || *(const uint8_t *)at(active, token, k) != 0;
}

/* A shared expert works for a token that has any other one. */
static bool is_token_active(const Route *route, const View *active, int64_t token)
{
    bool any = false;
    for (int64_t k = 0; k < route->k && !any; k++) {
        any = is_active(active, token, k);
    }
    return any;
}

/* -1: nowhere, -2: there is no such expert. */
static int64_t slot_of(const ExpertLayout *layout, const Route *route, const View *ids, const View *active, int64_t token,
                       int64_t choice)
{
    if (choice >= route->k) {
        const int64_t copies = layout->shared_ranks / layout->shared;
        return is_token_active(route, active, token) ? (choice - route->k) * copies + layout->task.room->rank % copies : -1;
    }
    const int64_t expert = integer_at(ids, token, choice);
    const int64_t all = layout->experts + layout->nothing + layout->copies + layout->constants;
    return !is_active(active, token, choice) ? -1
           : expert < 0 || expert >= all     ? -2
           : expert >= layout->experts       ? -1
                                             : layout->shared_ranks + expert;
}

/* Places become slots, slots are counted, and slots become places. */
static KernelStatus find_places(Route *route, const ExpertLayout *layout, const View *ids, const View *active)
{
    memset(route->begin, 0, (size_t)(route->slots + 1) * sizeof *route->begin);
    for (int64_t i = 0; i < route->tokens * route->choices; i++) {
        const int64_t token = i / route->choices, choice = i % route->choices;
        const int64_t slot = slot_of(layout, route, ids, active, token, choice);
        if (slot == -2) {
            return us_kernel_fault("expertIds[%lld, %lld] is %d; there are %lld experts", (long long)token, (long long)choice,
                                   (int)integer_at(ids, token, choice),
                                   (long long)(layout->experts + layout->nothing + layout->copies + layout->constants));
        }
        route->places[i] = slot;
        if (slot >= 0) {
            route->begin[slot + 1]++;
        }
    }
    for (int64_t slot = 0; slot < route->slots; slot++) {
        route->begin[slot + 1] += route->begin[slot];
    }
    route->count = route->begin[route->slots];
    for (int64_t i = 0; i < route->tokens * route->choices; i++) {
        if (route->places[i] >= 0) {
            route->places[i] = route->begin[route->places[i]]++;
        }
    }
    memmove(route->begin + 1, route->begin, (size_t)route->slots * sizeof *route->begin);
    route->begin[0] = 0;
    return KERNEL_OK;
}

static Route route_of(const ExpertLayout *layout, const View *ids)
{
    Route route = {.tokens = ids->shape[0], .k = ids->shape[1], .slots = layout->shared_ranks + layout->experts};
    route.choices = route.k + (layout->shared_ranks > 0 ? layout->shared : 0);
    route.begin = us_scratch_array(route.slots + 1 + route.tokens * route.choices, sizeof *route.begin);
    route.places = route.begin != NULL ? route.begin + route.slots + 1 : NULL;
    return route;
}

static int64_t first_slot(const ExpertLayout *layout, int32_t rank)
{
    const int32_t ranks = layout->task.room->ranks;
    const int64_t before = rank - layout->shared_ranks; /* ranks of experts that are not shared */
    return before <= 0 ? rank : layout->shared_ranks + before * us_experts_of(layout, ranks, ranks - 1);
}

static int64_t sent_to(const ExpertLayout *layout, const Route *route, int32_t rank)
{
    return route->begin[first_slot(layout, rank + 1)] - route->begin[first_slot(layout, rank)];
}

/* ---- exchange ---- */

/* Of each rank: what it gets, what it sends; one after another. */
static KernelStatus exchange(const RankTask *task, char *sent, const int64_t *sent_sizes, char *received,
                             const int64_t *received_sizes)
{
    const int32_t ranks = task->room->ranks;
    const int32_t own = task->room->rank;
    if (sent_sizes[own] != received_sizes[own]) {
        return us_kernel_fault("this rank sends itself %lld bytes, of which it expects %lld", (long long)sent_sizes[own],
                               (long long)received_sizes[own]);
    }
    Transfer *transfers = us_scratch_array(2 * ranks, sizeof *transfers);
    int32_t count = 0;
    if (transfers == NULL) {
        return KERNEL_NO_MEMORY;
    }
    for (int32_t rank = 0; rank < ranks; rank++) {
        if (rank == own) {
            memcpy(received, sent, (size_t)sent_sizes[rank]);
        }
        for (int sends = 0; sends < 2 && rank != own; sends++) {
            const uint64_t bytes = (uint64_t)(sends ? sent_sizes : received_sizes)[rank];
            transfers[count] = (Transfer){.peer = rank, .sends = sends, .data = sends ? sent : received,
                                          .head = {.bytes = bytes, .whole = bytes}, .turn = NO_TURN};
            memcpy(transfers[count++].head.caption, task->caption, CAPTION_BYTES);
        }
        sent += sent_sizes[rank];
        received += received_sizes[rank];
    }
    const KernelStatus status = count > 0 ? us_exchange(task->room, CHANNEL_COLLECTIVE, transfers, count) : KERNEL_OK;
    us_scratch_give_back(transfers);
    return status;
}

/* Others wait for a rank that cannot go on: they are told. */
static KernelStatus finished(const RankTask *task, KernelStatus status)
{
    if (status != KERNEL_OK && !us_room_has_failed(task->room, NULL)) {
        us_room_fail(task->room, status == KERNEL_NO_MEMORY ? "no host memory for tokens" : us_kernel_fault_text());
    }
    us_collective_end(task);
    return status;
}

/* ---- dispatch ---- */

/* Goes before each row. */
typedef struct Ticket {
    float step, weight;
    int32_t token, choice;
} Ticket;

typedef struct Dispatch {
    const View *views;
    const ExpertDispatch *how;
    Route route;
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
    us_load_float(numbers, at(x, token, 0), x->dtype, x->strides[1], run->columns);
    if (!us_view_is_absent(smooth)) {
        const int64_t line = choice >= run->route.k ? choice - run->route.k
                                                    : shared + integer_at(&run->views[DISPATCH_IDS], token, choice);
        for (int64_t i = 0; i < run->columns; i++) {
            numbers[i] *= number_at(smooth, line, i);
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
            ticket.weight = number_at(weights, token, choice);
        }
        if (out->dtype == x->dtype) {
            us_copy_elements(record + sizeof ticket, 1, at(x, token, 0), x->strides[1], size, run->columns);
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
    us_copy_elements(at(out, row, 0), out->strides[1], record + sizeof ticket, 1, (int64_t)us_dtype_size(out->dtype),
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
        memcpy(at(tokens, expert, 0), &number, sizeof number);
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
        sent[rank] = sent_to(layout, &run->route, rank) * run->record;
    }
    if (total > run->views[DISPATCH_OUT].shape[0]) {
        return us_kernel_fault("%lld tokens arrive; expandX has room for %lld", (long long)total,
                               (long long)run->views[DISPATCH_OUT].shape[0]);
    }
    run->received = us_scratch_array(total, (size_t)run->record);
    if (run->received == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const KernelStatus status = exchange(&layout->task, run->sent, sent, run->received, received);
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
        sizes[rank] = (first_slot(layout, rank + 1) - first_slot(layout, rank)) * (int64_t)sizeof *counts;
        sizes[ranks + rank] = run->own * (int64_t)sizeof *counts;
    }
    const KernelStatus status = exchange(&layout->task, (char *)counts, sizes, (char *)run->counts, sizes + ranks);
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
        run.route = route_of(layout, &views[DISPATCH_IDS]);
        status = run.route.begin == NULL ? KERNEL_NO_MEMORY
                                         : find_places(&run.route, layout, &views[DISPATCH_IDS], &views[DISPATCH_ACTIVE]);
        status = status == KERNEL_OK ? dispatch(&run) : status;
        us_scratch_give_back(run.route.begin);
    }
    return finished(&layout->task, status);
}

/* ---- combine ---- */

typedef struct Combine {
    const View *views;
    const ExpertLayout *layout;
    Route route;
    int64_t columns, size; /* bytes of a row */
    char *sent, *received;
} Combine;

/* Rows that are by experts, by ranks become such by ranks, by experts. `sizes`: of each rank. */
static KernelStatus pack_back(const Combine *run, int64_t *sizes, int64_t rows)
{
    const int32_t ranks = run->layout->task.room->ranks;
    const View *x = &run->views[COMBINE_X], *counts = &run->views[COMBINE_COUNTS];
    const int64_t own = us_experts_of(run->layout, ranks, run->layout->task.room->rank);
    char *to = run->sent;
    for (int32_t rank = 0; rank < ranks; rank++) {
        int64_t row = 0;
        sizes[rank] = 0;
        for (int64_t i = 0; i < own * ranks; i++) {
            const int64_t count = integer_at(counts, i, 0);
            if (count < 0 || row + count > rows) {
                return us_kernel_fault("epSendCounts[%lld] is %lld; expandX has %lld rows, %lld before these", (long long)i,
                                       (long long)count, (long long)rows, (long long)row);
            }
            for (int64_t k = 0; i % ranks == rank && k < count; k++, to += run->size) {
                us_copy_elements(to, 1, at(x, row + k, 0), x->strides[1], (int64_t)us_dtype_size(x->dtype), run->columns);
            }
            sizes[rank] += i % ranks == rank ? count * run->size : 0;
            row += count;
        }
    }
    return KERNEL_OK;
}

static void load(float *to, const View *view, int64_t row, int64_t count)
{
    us_load_float(to, at(view, row, 0), view->dtype, view->strides[1], count);
}

/* What an expert on no rank gives; false: nothing. */
static bool compute(const Combine *run, int64_t token, int64_t choice, float *numbers)
{
    const ExpertLayout *layout = run->layout;
    const int64_t copy = integer_at(&run->views[COMBINE_IDS], token, choice) - layout->experts - layout->nothing;
    float *factor = numbers + run->columns, *value = factor + run->columns;
    if (!is_active(&run->views[COMBINE_ACTIVE], token, choice) || copy < 0) {
        return false;
    }
    load(numbers, &run->views[COMBINE_TOKENS], token, run->columns);
    if (copy >= layout->copies) {
        load(factor, &run->views[COMBINE_FACTOR], copy - layout->copies, run->columns);
        for (int64_t i = 0; i < run->columns; i++) {
            numbers[i] *= factor[i];
        }
        load(factor, &run->views[COMBINE_WEIGHT], copy - layout->copies, run->columns);
        load(value, &run->views[COMBINE_VALUE], copy - layout->copies, run->columns);
        for (int64_t i = 0; i < run->columns; i++) {
            numbers[i] += factor[i] * value[i];
        }
    }
    return true;
}

static void add_up(const Combine *run, float *sum, float *numbers)
{
    const View *out = &run->views[COMBINE_OUT], *added = &run->views[COMBINE_ADDED];
    for (int64_t token = 0; token < run->route.tokens; token++) {
        memset(sum, 0, (size_t)run->columns * sizeof *sum);
        for (int64_t choice = 0; choice < run->route.choices; choice++) {
            const int64_t place = run->route.places[token * run->route.choices + choice];
            if (place >= 0) {
                us_load_float(numbers, run->received + place * run->size, out->dtype, 1, run->columns);
            } else if (choice >= run->route.k || !compute(run, token, choice, numbers)) {
                continue;
            }
            const float weight = choice < run->route.k ? number_at(&run->views[COMBINE_WEIGHTS], token, choice) : 1;
            for (int64_t i = 0; i < run->columns; i++) {
                sum[i] += numbers[i] * weight;
            }
        }
        if (!us_view_is_absent(added)) {
            load(numbers, added, token, run->columns);
            for (int64_t i = 0; i < run->columns; i++) {
                sum[i] += numbers[i];
            }
        }
        us_store_float(at(out, token, 0), out->dtype, out->strides[1], sum, run->columns);
    }
}

static KernelStatus combine(Combine *run)
{
    const int32_t ranks = run->layout->task.room->ranks;
    const int64_t rows = run->views[COMBINE_X].shape[0];
    int64_t *sizes = us_scratch_array(2 * ranks, sizeof *sizes);
    float *numbers = us_scratch_array(us_scratch_count(4, run->columns), sizeof *numbers);
    run->sent = us_scratch_array(rows, (size_t)run->size);
    run->received = us_scratch_array(run->route.count, (size_t)run->size);
    const bool has_room = sizes != NULL && numbers != NULL && run->sent != NULL && run->received != NULL;
    KernelStatus status = has_room ? pack_back(run, sizes, rows) : KERNEL_NO_MEMORY;
    for (int32_t rank = 0; status == KERNEL_OK && rank < ranks; rank++) {
        sizes[ranks + rank] = sent_to(run->layout, &run->route, rank) * run->size;
    }
    if (status == KERNEL_OK) {
        status = exchange(&run->layout->task, run->sent, sizes, run->received, sizes + ranks);
    }
    if (status == KERNEL_OK) {
        add_up(run, numbers, numbers + run->columns);
    }
    us_scratch_give_back(run->received);
    us_scratch_give_back(run->sent);
    us_scratch_give_back(numbers);
    us_scratch_give_back(sizes);
    return status;
}

KernelStatus us_combine_from_experts(const View *views, const void *attributes)
{
    Combine run = {.views = views, .layout = attributes, .columns = views[COMBINE_OUT].shape[1]};
    run.size = run.columns * (int64_t)us_dtype_size(views[COMBINE_X].dtype);
    KernelStatus status = us_collective_begin(&run.layout->task);
    if (status == KERNEL_OK) {
        run.route = route_of(run.layout, &views[COMBINE_IDS]);
        status = run.route.begin == NULL
                     ? KERNEL_NO_MEMORY
                     : find_places(&run.route, run.layout, &views[COMBINE_IDS], &views[COMBINE_ACTIVE]);
        status = status == KERNEL_OK ? combine(&run) : status;
        us_scratch_give_back(run.route.begin);
    }
    return finished(&run.layout->task, status);
}
