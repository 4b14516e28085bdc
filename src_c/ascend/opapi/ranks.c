#include "ascend/opapi/ranks.h"

#include "ascend/common/op_memory.h"
#include "kernels/reduce/reductions.h"
#include "ranks/exchange.h"
#include "ranks/names.h"

#include <stdio.h>

Room *op_require_group(OpCall *op, const char *name, const char *group)
{
    if (op_refused(op)) {
        return NULL;
    }
    bool several = false;
    Platform *platform = ascend_platform();
    const Context *context = platform != NULL ? us_context_current(platform) : NULL;
    Room *room = context != NULL ? us_room_named(group, context->device, &several) : NULL;
    op_require(op, context == NULL || !several, name, "several", op->invalid,
               "%s is \"%s\": several ranks of device %d have communicators of this name", name, group,
               context != NULL ? (int)context->device->ordinal : 0);
    op_require(op, room != NULL, name, "unknown", op->invalid, "%s is \"%s\", which is no communicator of %s", name, group,
               context != NULL ? "this thread's device" : "this thread: it has no device");
    for (int i = 0; room != NULL && i < ROOM_LIMIT; i++) {
        if (op->executor->rooms[i] == NULL) {
            op->executor->rooms[i] = room;
            break;
        }
    }
    return room;
}

void op_require_matrix(OpCall *op, const Operand *matrix, int64_t rows, int64_t columns)
{
    const Shape shape = op_shape_of(2, (const int64_t[]){rows, columns});
    op_require_shape(op, matrix, &shape);
}

const Operand *op_packed(OpCall *op, const Operand *operand)
{
    if (op_refused(op) || us_view_is_contiguous(&operand->view)) {
        return operand;
    }
    const Operand *copy = op_temporary(op, operand->dtype, op_shape(operand));
    op_copy(op, operand, copy);
    return copy;
}

/* Where a result is made that must be row-major. */
static const Operand *room_for(OpCall *op, const Operand *to)
{
    return op_refused(op) || us_view_is_contiguous(&to->view) ? to : op_temporary(op, to->dtype, op_shape(to));
}

static void put_in_place(OpCall *op, const Operand *made, const Operand *to)
{
    if (made != to) {
        op_copy(op, made, to);
    }
}

/* `count` elements of a row-major tensor; absent: none. */
static View elements(const Operand *operand, int64_t begin, int64_t count)
{
    char *data = (char *)operand->view.data + begin * (int64_t)us_dtype_size(operand->view.dtype);
    return count == 0 ? us_view_absent() : us_view_contiguous(data, operand->view.dtype, 1, &count);
}

/* moved: NULL where no tensor is. */
static RankTask task_of(const OpCall *op, Room *room, const Operand *moved)
{
    RankTask task = {.room = room, .kind = CHANNEL_COLLECTIVE};
    const char *type = moved != NULL ? us_dtype_name(moved->view.dtype) : "";
    snprintf(task.caption, sizeof task.caption, "%s(%s)", op->call.function, type);
    return task;
}

/* ---- messages ---- */

typedef struct Messages {
    Exchange *exchange;
    PlannedView *views;
    int32_t limit;
} Messages;

static Messages messages_of(OpCall *op, Room *room, const Operand *moved, int32_t limit)
{
    Messages made = {.limit = limit};
    made.exchange = op_take(op, sizeof(Exchange) + (size_t)limit * sizeof(ExchangeItem));
    made.views = op_take(op, (size_t)limit * sizeof *made.views);
    if (!op_refused(op)) {
        made.exchange->task = task_of(op, room, moved);
    }
    return made;
}

static void add(OpCall *op, Messages *messages, int32_t peer, bool sends, const Operand *operand, View view)
{
    View *kept = op_take(op, sizeof *kept);
    if (!op_refused(op)) {
        const int32_t at = messages->exchange->count++;
        *kept = view;
        messages->exchange->items[at] = (ExchangeItem){peer, sends, NO_TURN};
        messages->views[at] = (PlannedView){operand, sends ? VIEW_READ : VIEW_WRITE, kept};
    }
}

static void send(OpCall *op, const Messages *messages)
{
    if (!op_refused(op)) {
        const Exchange *exchange = messages->exchange;
        op_plan_meeting(op, us_exchange_views, exchange, sizeof *exchange + (size_t)exchange->count * sizeof *exchange->items,
                        exchange->count, messages->views);
    }
}

/* ---- reductions ---- */

/* Element `rank` * `each` and those behind it, at most `each`. */
static View share_of(const Operand *operand, int64_t each, int32_t rank)
{
    const int64_t count = op_elements(operand), begin = each * rank < count ? each * rank : count;
    return elements(operand, begin, count - begin < each ? count - begin : each);
}

/* Each rank gets the sum of a share, `own` of `to`. */
static void reduce_shares(OpCall *op, Room *room, const Operand *from, int64_t each, const Operand *to, View own)
{
    PlannedView *views = op_take(op, ((size_t)room->ranks + 1) * sizeof *views);
    View *parts = op_take(op, (size_t)room->ranks * sizeof *parts);
    if (op_refused(op)) {
        return;
    }
    for (int32_t rank = 0; rank < room->ranks; rank++) {
        parts[rank] = share_of(from, each, rank);
        views[rank] = (PlannedView){from, VIEW_READ, &parts[rank]};
    }
    views[room->ranks] = (PlannedView){to, VIEW_WRITE, &own};
    const RankReduction how = {.task = task_of(op, room, from), .reduction = &us_reduce_sum, .dtype = from->view.dtype};
    op_plan_meeting(op, us_reduce_ranks, &how, sizeof how, room->ranks + 1, views);
}

void op_all_reduce(OpCall *op, Room *room, const Operand *from, const Operand *to)
{
    if (op_refused(op)) {
        return;
    }
    const int64_t count = op_elements(to), each = count / room->ranks + (count % room->ranks > 0);
    const Operand *made = room_for(op, to);
    const View own = share_of(made, each, room->rank);
    reduce_shares(op, room, op_packed(op, from), each, made, own);
    Messages messages = messages_of(op, room, made, 2 * room->ranks);
    for (int32_t rank = 0; rank < room->ranks; rank++) {
        if (rank != room->rank) {
            add(op, &messages, rank, true, made, own);
            add(op, &messages, rank, false, made, share_of(made, each, rank));
        }
    }
    send(op, &messages);
    put_in_place(op, made, to);
}

void op_reduce_scatter(OpCall *op, Room *room, const Operand *from, const Operand *to)
{
    if (op_refused(op)) {
        return;
    }
    const Operand *made = room_for(op, to);
    const int64_t each = op_elements(to);
    reduce_shares(op, room, op_packed(op, from), each, made, elements(made, 0, each));
    put_in_place(op, made, to);
}

void op_all_gather(OpCall *op, Room *room, const Operand *from, const Operand *to)
{
    if (op_refused(op)) {
        return;
    }
    const Operand *packed = op_packed(op, from), *made = room_for(op, to);
    const int64_t each = op_elements(from);
    Messages messages = messages_of(op, room, packed, 2 * room->ranks);
    for (int32_t rank = 0; rank < room->ranks; rank++) {
        add(op, &messages, rank, true, packed, elements(packed, 0, each));
        add(op, &messages, rank, false, made, elements(made, each * rank, each));
    }
    send(op, &messages);
    put_in_place(op, made, to);
}

void op_all_to_all(OpCall *op, Room *room, const Operand *from, const int64_t *sent, const Operand *to,
                   const int64_t *received)
{
    if (op_refused(op)) {
        return;
    }
    const Operand *packed = op_packed(op, from), *made = room_for(op, to);
    const int64_t columns = op_size(from, 1);
    int64_t out = 0, in = 0;
    Messages messages = messages_of(op, room, packed, 2 * room->ranks);
    for (int32_t rank = 0; rank < room->ranks; rank++) {
        add(op, &messages, rank, true, packed, elements(packed, out * columns, sent[rank] * columns));
        add(op, &messages, rank, false, made, elements(made, in * columns, received[rank] * columns));
        out += sent[rank];
        in += received[rank];
    }
    send(op, &messages);
    put_in_place(op, made, to);
}

aclnnStatus op_barrier(OpCall *op, Room *room)
{
    op_begin_steps(op);
    if (!op_refused(op)) {
        Messages messages = messages_of(op, room, NULL, 2 * room->ranks);
        for (int32_t rank = 0; rank < room->ranks; rank++) {
            add(op, &messages, rank, true, NULL, us_view_absent());
            add(op, &messages, rank, false, NULL, us_view_absent());
        }
        send(op, &messages);
    }
    return op_end_steps(op);
}

aclnnStatus op_reset_buffers(OpCall *op, Room *room, bool synchronizes)
{
    return synchronizes ? op_barrier(op, room) : op_plan_nothing(op);
}
