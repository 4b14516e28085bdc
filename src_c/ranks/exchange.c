#include "ranks/exchange.h"

#include "device/stream_internal.h"
#include "kernels/scratch.h"
#include "ranks/room_order.h"
#include "report/trace.h"

#include <string.h>

static const int64_t LOOK_AGAIN = 100000000; /* nanoseconds until somebody who waits looks whether the others live */
static const int64_t ALLOW_AGAIN = 2000000;  /* until it lets deferred streams run what was queued meanwhile */

/* ---- channels ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* As many bytes as there is room for. */
static uint64_t push(Channel *channel, const char *from, uint64_t bytes)
{
    const uint64_t written = atomic_load_explicit(&channel->written, memory_order_relaxed);
    const uint64_t room = CHANNEL_BYTES - (written - atomic_load_explicit(&channel->read, memory_order_acquire));
    const uint64_t count = least(bytes, room), at = written % CHANNEL_BYTES, first = least(count, CHANNEL_BYTES - at);
    memcpy(channel->bytes + at, from, first);
    memcpy(channel->bytes, from + first, count - first);
    atomic_store_explicit(&channel->written, written + count, memory_order_release);
    return count;
}

/* As many bytes as are there. */
static uint64_t pull(Channel *channel, char *to, uint64_t bytes)
{
    const uint64_t read = atomic_load_explicit(&channel->read, memory_order_relaxed);
    const uint64_t there = atomic_load_explicit(&channel->written, memory_order_acquire) - read;
    const uint64_t count = least(bytes, there), at = read % CHANNEL_BYTES, first = least(count, CHANNEL_BYTES - at);
    memcpy(to, channel->bytes + at, first);
    memcpy(to + first, channel->bytes, count - first);
    atomic_store_explicit(&channel->read, read + count, memory_order_release);
    return count;
}

/* ---- turns ---- */

static uint64_t draw(Turns *turns)
{
    return atomic_fetch_add(&turns->drawn, 1);
}

static bool take_turn(Turns *turns, uint64_t turn)
{
    return (turn == NO_TURN || atomic_load(&turns->served) == turn) && !atomic_exchange(&turns->taken, true);
}

static void end_turn(Room *room, Turns *turns, uint64_t turn)
{
    if (turn != NO_TURN) {
        atomic_fetch_add(&turns->served, 1);
    }
    atomic_store(&turns->taken, false);
    us_signal_tell(us_room_bell(room, room->rank));
}

/* ---- messages ---- */

/* Whether it may use its channel. */
static bool begin(Room *room, ChannelKind kind, Transfer *transfer)
{
    if (!transfer->begun && kind == CHANNEL_DIRECT) {
        transfer->begun = take_turn(&room->direct[transfer->peer][transfer->sends], transfer->turn);
        return transfer->begun;
    }
    return true;
}

/* One of the two parts of a message: moves what can be moved; true: something was. */
static bool move_part(Channel *channel, Transfer *transfer, char *part, uint64_t begin_of_part, uint64_t bytes)
{
    if (transfer->moved < begin_of_part || transfer->moved >= begin_of_part + bytes) {
        return false;
    }
    const uint64_t done = transfer->moved - begin_of_part;
    const uint64_t count = transfer->sends ? push(channel, part + done, bytes - done)
                                           : pull(channel, part + done, bytes - done);
    transfer->moved += count;
    return count > 0;
}

static bool means_the_same(const Transfer *transfer, Explanation *why)
{
    const Letterhead *mine = &transfer->head, *theirs = &transfer->got;
    if (strncmp(mine->caption, theirs->caption, CAPTION_BYTES) != 0) {
        us_explain(why, "rank %d runs %.*s, this rank %.*s", (int)transfer->peer, CAPTION_BYTES, theirs->caption,
                   CAPTION_BYTES, mine->caption);
        return false;
    }
    if (mine->bytes != theirs->bytes || mine->whole != theirs->whole) {
        us_explain(why, "rank %d sends %llu bytes by %.*s, of which this rank expects %llu", (int)transfer->peer,
                   (unsigned long long)theirs->whole, CAPTION_BYTES, theirs->caption, (unsigned long long)mine->whole);
        return false;
    }
    return true;
}

/* True: something was moved. A message of another meaning is left where it is, and `why` says so. */
static bool move(Room *room, ChannelKind kind, Transfer *transfer, Explanation *why)
{
    const int32_t from = transfer->sends ? room->rank : transfer->peer, to = transfer->sends ? transfer->peer : room->rank;
    Channel *channel = us_room_channel(room, kind, from, to);
    const uint64_t head = sizeof(Letterhead), bytes = transfer->head.bytes;
    char *letterhead = (char *)(transfer->sends ? &transfer->head : &transfer->got);
    bool moved = move_part(channel, transfer, letterhead, 0, head);
    if (moved && transfer->moved == head && !transfer->sends && !means_the_same(transfer, why)) {
        return true;
    }
    moved |= move_part(channel, transfer, transfer->data, head, bytes);
    if (moved) {
        us_signal_tell(us_room_bell(room, transfer->peer));
    }
    if (transfer->moved == head + bytes) {
        transfer->over = true;
        if (kind == CHANNEL_DIRECT) {
            end_turn(room, &room->direct[transfer->peer][transfer->sends], transfer->turn);
        }
    }
    return moved;
}

/* All messages once. True: something was moved. `*left`: how many are not over. */
static bool move_all(Room *room, ChannelKind kind, Transfer *transfers, int32_t count, int32_t *left, Explanation *why)
{
    bool moved = false;
    *left = 0;
    for (int32_t i = 0; i < count && why->text[0] == '\0'; i++) {
        if (!transfers[i].over && begin(room, kind, &transfers[i])) {
            moved |= move(room, kind, &transfers[i], why);
        }
        *left += !transfers[i].over;
    }
    return moved;
}

/* ---- waiting ---- */

static void wake(void *bell)
{
    us_signal_tell(bell);
}

typedef struct Wait {
    Room *room;
    uint64_t start;  /* when something moved last */
    uint64_t looked; /* when the system was asked last whether the others live */
    bool late;
} Wait;

static Wait begin_wait(Room *room)
{
    const uint64_t now = us_now();
    return (Wait){room, now, now, false};
}

/* Why nothing will come any more of the messages that are left. */
static bool is_lost(Wait *wait, const Transfer *transfers, int32_t count, Explanation *why)
{
    const uint64_t now = us_now();
    const bool asks_system = (int64_t)(now - wait->looked) >= LOOK_AGAIN;
    if (us_room_has_failed(wait->room, why)) {
        return true;
    }
    wait->looked = asks_system ? now : wait->looked;
    for (int32_t i = 0; i < count; i++) {
        if (!transfers[i].over && us_room_has_lost(wait->room, transfers[i].peer, asks_system, why)) {
            return true;
        }
    }
    return false;
}

/* Until a bell rings, for a while. False: it is over with the operation. */
static bool wait_for_bell(Wait *wait, uint32_t changes, Explanation *why)
{
    SignalWords *bell = us_room_bell(wait->room, wait->room->rank);
    const int64_t waited = (int64_t)(us_now() - wait->start), patience = wait->room->patience;
    if (us_task_gives_up()) {
        us_explain(why, "its stream has been stopped");
        return false;
    }
    if (patience >= 0 && waited >= patience) {
        wait->late = true;
        us_explain(why, "other ranks have not run it within %lld s", (long long)(patience / 1000000000));
        return false;
    }
    us_task_allows_others();
    const int64_t most = us_stream_mode() == STREAM_MODE_DEFERRED ? ALLOW_AGAIN : LOOK_AGAIN;
    us_signal_wait(bell, changes, patience < 0 || patience - waited > most ? most : patience - waited);
    return true;
}

static KernelStatus fail(Room *room, const char *caption, const Explanation *why, bool late)
{
    Explanation whole;
    us_explain(&whole, "%.*s: %s", CAPTION_BYTES, caption, why->text);
    us_room_fail(room, whole.text);
    us_kernel_fault("%s", why->text);
    return late ? KERNEL_TIMEOUT : KERNEL_FAULT;
}

/* The operation that failed may have left a part of a message in a channel, which the next one would take for its own. */
static bool comes_after_failure(Room *room, Explanation *why)
{
    Explanation earlier;
    const bool fails = us_room_has_failed_here(room, &earlier);
    us_explain(fails ? why : NULL, "an operation before it has failed: %s", earlier.text);
    return fails;
}

/* What a rank wrote before it left may come to light only after its leaving has: hence one more look. */
static KernelStatus run(Room *room, ChannelKind kind, Transfer *transfers, int32_t count)
{
    SignalWords *bell = us_room_bell(room, room->rank);
    Wait wait = begin_wait(room);
    Explanation why = {""}, loss = {""};
    if (comes_after_failure(room, &why)) {
        return us_kernel_fault("%s", why.text);
    }
    for (bool lost = false;;) {
        int32_t left;
        const uint32_t changes = atomic_load(&bell->changes);
        const bool moved = move_all(room, kind, transfers, count, &left, &why);
        if (why.text[0] == '\0' && left == 0) {
            return KERNEL_OK;
        }
        if (why.text[0] == '\0' && !moved && lost) {
            why = loss;
        }
        wait.start = moved ? us_now() : wait.start;
        lost = !moved && is_lost(&wait, transfers, count, &loss);
        if (why.text[0] != '\0' || (!moved && !lost && !wait_for_bell(&wait, changes, &why))) {
            return fail(room, transfers[0].head.caption, &why, wait.late);
        }
    }
}

KernelStatus us_exchange(Room *room, ChannelKind kind, Transfer *transfers, int32_t count)
{
    us_task_sleeps(wake, us_room_bell(room, room->rank));
    const KernelStatus status = run(room, kind, transfers, count);
    us_task_sleeps(NULL, NULL);
    return status;
}

/* ---- tasks ---- */

void us_rank_task_take(void *attributes, bool recorded)
{
    RankTask *task = attributes;
    us_room_hold(task->room);
    task->turn = NO_TURN;
    task->recorded = recorded;
}

static void draw_for_messages(Exchange *exchange)
{
    Room *room = exchange->task.room;
    for (int32_t i = 0; i < exchange->count; i++) {
        ExchangeItem *item = &exchange->items[i];
        item->turn = item->peer == room->rank ? NO_TURN : draw(&room->direct[item->peer][item->sends]);
    }
}

void us_rank_task_draw(void *attributes)
{
    RankTask *task = attributes;
    if (task->kind == CHANNEL_DIRECT) {
        task->turn = 0;
        draw_for_messages(attributes);
    } else {
        task->turn = draw(&task->room->collective);
    }
    atomic_fetch_add(&task->room->busy, 1);
}

static bool inherit_messages(Exchange *exchange, const Exchange *from)
{
    bool same = exchange->count == from->count;
    for (int32_t i = 0; i < exchange->count && same; i++) {
        ExchangeItem *item = &exchange->items[i];
        same = item->peer == from->items[i].peer && item->sends == from->items[i].sends;
        item->turn = same ? from->items[i].turn : NO_TURN;
    }
    return same;
}

void us_rank_task_inherit(void *attributes, void *from)
{
    RankTask *task = attributes, *before = from;
    const bool alike = task->room == before->room && task->kind == before->kind;
    if (alike && (task->kind != CHANNEL_DIRECT || inherit_messages(attributes, from))) {
        task->turn = before->turn;
        before->turn = NO_TURN;
    }
}

void us_rank_task_drop(const RankTask *task)
{
    Explanation why;
    us_explain(&why, "%.*s: it was dropped before it ran", CAPTION_BYTES, task->caption);
    us_room_fail(task->room, why.text);
    if (task->turn != NO_TURN) {
        atomic_fetch_sub(&task->room->busy, 1);
    }
}

void us_rank_task_release(void *attributes, bool ran)
{
    const RankTask *task = attributes;
    if (!ran && task->turn != NO_TURN) {
        us_rank_task_drop(task);
    }
    us_room_let_go(task->room);
}

/* What the others do cannot be foreseen. The thread that queues a task must not wait for them, nor a graph that can do
 * something else meanwhile; who waits for the stream may as well do it here. */
bool us_rank_task_is_ready(const void *attributes)
{
    const RankTask *task = attributes;
    if (task->room->ranks == 1) {
        return task->turn == NO_TURN || task->kind == CHANNEL_DIRECT ||
               atomic_load(&task->room->collective.served) == task->turn;
    }
    return !task->recorded && us_stream_mode() != STREAM_MODE_INLINE;
}

bool us_rank_task_is_awaited(const void *attributes)
{
    return !us_room_is_of_process(((const RankTask *)attributes)->room);
}

struct Moment *us_rank_task_after(const void *attributes, Stream *stream)
{
    const RankTask *task = attributes;
    return us_room_order(task->room, task->kind == CHANNEL_COLLECTIVE ? task->turn : NO_TURN, stream);
}

void us_rank_task_over(const void *attributes, struct Moment *moment)
{
    const RankTask *task = attributes;
    us_room_note_last(task->room, task->kind == CHANNEL_COLLECTIVE, moment);
}

const LaunchMeeting us_rank_meeting = {us_rank_task_take,     us_rank_task_draw,       us_rank_task_inherit,
                                       us_rank_task_release,  us_rank_task_is_ready,   us_rank_task_is_awaited,
                                       us_rank_task_after,    us_rank_task_over};

static void begin_task(const RankTask *task)
{
    if (task->turn == NO_TURN) {
        atomic_fetch_add(&task->room->busy, 1);
    }
}

/* A task that has failed in what it computes leaves the others waiting, so they are told. */
static KernelStatus end_task(const RankTask *task, KernelStatus status)
{
    if (status != KERNEL_OK) {
        Explanation why;
        us_explain(&why, "%.*s: %s", CAPTION_BYTES, task->caption,
                   status == KERNEL_NO_MEMORY ? "no host memory" : us_kernel_fault_text());
        us_room_fail(task->room, why.text); /* unless it has failed before */
    }
    atomic_fetch_sub(&task->room->busy, 1);
    return status;
}

static KernelStatus await_turn(const RankTask *task)
{
    Room *room = task->room;
    SignalWords *bell = us_room_bell(room, room->rank);
    Wait wait = begin_wait(room);
    Explanation why = {""};
    for (;;) {
        const uint32_t changes = atomic_load(&bell->changes);
        const bool left = us_room_has_lost(room, room->rank, false, &why); /* the operator was planned before */
        if (!left && take_turn(&room->collective, task->turn)) {
            return KERNEL_OK;
        }
        if (left || us_room_has_failed(room, &why) || !wait_for_bell(&wait, changes, &why)) {
            return fail(room, task->caption, &why, wait.late);
        }
    }
}

KernelStatus us_collective_begin(const RankTask *task)
{
    begin_task(task);
    us_task_sleeps(wake, us_room_bell(task->room, task->room->rank));
    const KernelStatus status = await_turn(task);
    us_task_sleeps(NULL, NULL);
    return status;
}

KernelStatus us_collective_end(const RankTask *task, KernelStatus status)
{
    end_turn(task->room, &task->room->collective, task->turn);
    return end_task(task, status);
}

static uint64_t bytes_of(const View *view)
{
    return us_view_is_absent(view) ? 0 : (uint64_t)us_view_elements(view) * us_dtype_size(view->dtype);
}

Transfer us_transfer(const RankTask *task, int32_t peer, bool sends, char *data, uint64_t bytes)
{
    Transfer transfer = {.peer = peer, .sends = sends, .data = data, .head = {.bytes = bytes, .whole = bytes}, .turn = NO_TURN};
    memcpy(transfer.head.caption, task->caption, CAPTION_BYTES);
    return transfer;
}

KernelStatus us_exchange_bytes(const RankTask *task, char *sent, const int64_t *sent_sizes, char *received,
                               const int64_t *received_sizes)
{
    const int32_t ranks = task->room->ranks, own = task->room->rank;
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
        } else {
            transfers[count++] = us_transfer(task, rank, false, received, (uint64_t)received_sizes[rank]);
            transfers[count++] = us_transfer(task, rank, true, sent, (uint64_t)sent_sizes[rank]);
        }
        sent += sent_sizes[rank];
        received += received_sizes[rank];
    }
    const KernelStatus status = count > 0 ? us_exchange(task->room, CHANNEL_COLLECTIVE, transfers, count) : KERNEL_OK;
    us_scratch_give_back(transfers);
    return status;
}

/* A rank's messages to itself: the k-th that it sends is the k-th that it receives. */
static KernelStatus copy_own(const View *views, const Exchange *exchange)
{
    int32_t received = -1;
    for (int32_t i = 0; i < exchange->count; i++) {
        if (exchange->items[i].peer != exchange->task.room->rank || !exchange->items[i].sends) {
            continue;
        }
        for (received++; received < exchange->count; received++) {
            if (exchange->items[received].peer == exchange->task.room->rank && !exchange->items[received].sends) {
                break;
            }
        }
        if (received == exchange->count || bytes_of(&views[i]) != bytes_of(&views[received])) {
            return us_kernel_fault("this rank sends itself %llu bytes that it does not receive",
                                   (unsigned long long)bytes_of(&views[i]));
        }
        if (bytes_of(&views[i]) > 0) {
            memmove(views[received].data, views[i].data, bytes_of(&views[i]));
        }
    }
    return KERNEL_OK;
}

static KernelStatus move_views(const View *views, const Exchange *exchange)
{
    Transfer *transfers = us_scratch_array(exchange->count, sizeof *transfers);
    int32_t count = 0;
    if (transfers == NULL) {
        return KERNEL_NO_MEMORY;
    }
    for (int32_t i = 0; i < exchange->count; i++) {
        const ExchangeItem *item = &exchange->items[i];
        if (item->peer != exchange->task.room->rank) {
            transfers[count] = us_transfer(&exchange->task, item->peer, item->sends, views[i].data, bytes_of(&views[i]));
            transfers[count++].turn = item->turn;
        }
    }
    KernelStatus status = copy_own(views, exchange);
    if (status == KERNEL_OK && count > 0) {
        status = us_exchange(exchange->task.room, exchange->task.kind, transfers, count);
    }
    us_scratch_give_back(transfers);
    return status;
}

KernelStatus us_exchange_views(const View *views, const void *attributes)
{
    const Exchange *exchange = attributes;
    if (exchange->task.kind == CHANNEL_DIRECT) {
        begin_task(&exchange->task);
        return end_task(&exchange->task, move_views(views, exchange));
    }
    const KernelStatus status = us_collective_begin(&exchange->task);
    return us_collective_end(&exchange->task, status == KERNEL_OK ? move_views(views, exchange) : status);
}
