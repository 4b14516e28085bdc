#include "device/order.h"

#include "device/check.h"
#include "device/host_access.h"
#include "device/moment.h"
#include "device/use.h"
#include "device/value.h"
#include "report/caller.h"
#include "report/grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct Timeline {
    size_t place;
    uint64_t before; /* tickets of the place before the stream's first */
    Moment *waited;  /* what its next task comes after, besides the task before it; NULL: nothing */
} Timeline;

typedef struct Access {
    Use use;
    User user;
    size_t place;
    uint64_t ticket;
    int32_t stream;
    Moment *after; /* of its task; NULL: nothing */
    bool closed;   /* the host may not touch the pages, as long as nothing else is known */
} Access;

enum { PLACE_LIMIT = 4096 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_tickets[PLACE_LIMIT]; /* of all tasks that were queued */
static size_t place_count;                 /* places that were ever taken */
static bool taken_places[PLACE_LIMIT];
static Moment *seen; /* by the host */
static Access *accesses;
static size_t access_count, access_capacity;

/* The host function that this thread runs. */
static _Thread_local struct {
    bool runs;
    size_t place;
    uint64_t ticket;
} host_function;

static bool is_watching(void)
{
    return (us_checks() & (CHECK_SYNC | CHECK_RACE | CHECK_MEMORY)) != 0;
}

/* ---- moments, for others -------------------------------------------------------------------------------------------- */

Moment *us_order_hold(Moment *moment)
{
    if (moment != NULL) {
        pthread_mutex_lock(&lock);
        us_moment_hold(moment);
        pthread_mutex_unlock(&lock);
    }
    return moment;
}

void us_order_let_go(Moment *moment)
{
    if (moment != NULL) {
        pthread_mutex_lock(&lock);
        us_moment_let_go(moment);
        pthread_mutex_unlock(&lock);
    }
}

Moment *us_order_join(Moment *first, Moment *second)
{
    if (first == NULL || second == NULL) {
        return first != NULL ? first : second;
    }
    pthread_mutex_lock(&lock);
    us_moment_advance(&first, second);
    us_moment_let_go(second);
    pthread_mutex_unlock(&lock);
    return first;
}

/* ---- pages that are closed to the host, with the lock held ------------------------------------------------------- */

/* Page-locked and managed memory, which the host reaches at other addresses than kernels (arena.h). */
static bool is_host_memory(const Use *use)
{
    for (int id = 0; id < PLATFORM_LIMIT; id++) {
        Platform *platform = us_platform_at(id);
        const Arena *arena = platform != NULL ? &platform_state(platform)->host_arena : NULL;
        const Region *region = arena != NULL ? us_arena_holds(arena, use->address, use->size) : NULL;
        if (region != NULL) {
            return region->alias != 0;
        }
    }
    return false;
}

static Use pages_of(const Use *use)
{
    uintptr_t page = us_page_size();
    uintptr_t first = use->address / page * page;
    uintptr_t end = (use->address + use->size + page - 1) / page * page;
    return (Use){.address = first, .size = end - first, .writes = use->writes};
}

static void close_pages(const Access *access)
{
    Use pages = pages_of(&access->use);
    us_host_access_take_back();
    mprotect((void *)pages.address, pages.size, access->use.writes ? PROT_NONE : PROT_READ);
}

/* Opens the pages of an access that is over, except for what others need; readers first, since writers close more. */
static void open_pages(const Use *use)
{
    Use pages = pages_of(use);
    mprotect((void *)pages.address, pages.size, PROT_READ | PROT_WRITE);
    for (int writes = 0; writes < 2; writes++) {
        for (size_t i = 0; i < access_count; i++) {
            Use other = pages_of(&accesses[i].use);
            if (accesses[i].closed && accesses[i].use.writes == writes && us_uses_overlap(&pages, &other)) {
                close_pages(&accesses[i]);
            }
        }
    }
}

/* ---- accesses, with the lock held -------------------------------------------------------------------------------- */

static void drop_access(size_t index)
{
    Access dropped = accesses[index];
    accesses[index] = accesses[--access_count];
    us_moment_let_go(dropped.after);
    if (dropped.closed) {
        open_pages(&dropped.use);
    }
}

static void drop_seen(void)
{
    for (size_t i = access_count; i-- > 0;) {
        if (us_moment_reached(seen, accesses[i].place) >= accesses[i].ticket) {
            drop_access(i);
        }
    }
}

static Moment *everything(void)
{
    Moment *made = us_moment_combine(NULL, NULL, place_count);
    if (made != NULL) {
        memcpy(made->reached, last_tickets, place_count * sizeof *made->reached);
    }
    return made;
}

/* What is not known may be anything. */
static void host_has_seen(const Moment *moment)
{
    Moment *all = moment != NULL && moment->unknown ? everything() : NULL;
    const Moment *known = all != NULL ? all : moment;
    if (!us_moment_includes(seen, known)) {
        us_moment_advance(&seen, known);
        drop_seen();
    }
    us_moment_let_go(all);
}

/* Whether an earlier access is over, by what the program has arranged, when a task of the timeline runs. */
static bool is_over(const Access *access, const Timeline *timeline)
{
    return access->place == timeline->place || us_moment_reached(timeline->waited, access->place) >= access->ticket;
}

/* Whoever comes into conflict with the earlier access also does with the later one, which comes after it. */
static bool replaces(const Use *later, const Access *earlier, const Timeline *timeline)
{
    return (later->level_count == 0 || us_uses_are_alike(later, &earlier->use)) && later->address <= earlier->use.address &&
           later->address + later->size >= earlier->use.address + earlier->use.size &&
           (later->writes || !earlier->use.writes) && is_over(earlier, timeline);
}

static void compare(const Use *use, const Task *task, const StreamState *stream, Conflict *conflict)
{
    for (size_t i = 0; i < access_count && !conflict->found; i++) {
        const Access *access = &accesses[i];
        if (us_uses_conflict(use, &access->use) && !is_over(access, stream->timeline)) {
            *conflict = (Conflict){.found = true, .earlier = access->use, .later = *use,
                                   .earlier_name = access->user.name, .later_name = task->work.name,
                                   .earlier_caller = access->user.caller, .earlier_stream = access->stream,
                                   .later_stream = stream->public.id};
        }
    }
}

static void add_access(const Use *use, const Task *task, const StreamState *stream, uint64_t ticket)
{
    const Timeline *timeline = stream->timeline;
    for (size_t i = access_count; i-- > 0;) {
        if (replaces(use, &accesses[i], timeline)) {
            drop_access(i);
        }
    }
    Access *grown = us_grown(accesses, access_count, &access_capacity, sizeof *grown);
    if (grown == NULL) {
        return;
    }
    accesses = grown;
    /* The program's own code in a graph may touch what the graph's tasks before it have written. */
    bool closed = (us_checks() & CHECK_SYNC) != 0 && task->anywhere && is_host_memory(use);
    accesses[access_count++] = (Access){
        .use = *use, .user = {task->work.name, task->caller, use->writes}, .place = timeline->place, .ticket = ticket,
        .stream = stream->public.id, .after = us_moment_hold(timeline->waited), .closed = closed};
    if (closed) {
        open_pages(use);
    }
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

/* The stream's timeline, made when it is asked for first; NULL: nothing can be said about the stream. */
static Timeline *timeline_of(StreamState *stream)
{
    for (size_t place = 0; place < PLACE_LIMIT && stream->timeline == NULL && !stream->timeline_is_over; place++) {
        if (!taken_places[place]) {
            stream->timeline = calloc(1, sizeof *stream->timeline);
            if (stream->timeline != NULL) {
                taken_places[place] = true;
                place_count = place < place_count ? place_count : place + 1;
                stream->timeline->place = place;
                stream->timeline->before = last_tickets[place];
            }
            break;
        }
    }
    return stream->timeline;
}

static bool is_unknown(const Timeline *timeline)
{
    return timeline->waited != NULL && timeline->waited->unknown;
}

static Moment *moment_of(const Timeline *timeline, uint64_t ticket)
{
    Moment *made = us_moment_combine(timeline->waited, NULL, timeline->place + 1);
    if (made != NULL && us_moment_reached(made, timeline->place) < timeline->before + ticket) {
        made->reached[timeline->place] = timeline->before + ticket;
    }
    return made;
}

void us_order_queue(StreamState *stream, Task *task, Conflict *conflict)
{
    if (!is_watching()) {
        return;
    }
    pthread_mutex_lock(&lock);
    Timeline *timeline = timeline_of(stream);
    if (timeline != NULL) {
        last_tickets[timeline->place] = timeline->before + task->ticket;
        us_moment_advance(&timeline->waited, seen);
        us_moment_advance(&timeline->waited, task->after); /* with the task that waits: nobody has waited for that yet */
        bool tells_host = !task->anywhere || us_is_value_write(task->run); /* which the host may be looking at */
        task->moment = tells_host ? moment_of(timeline, task->ticket - 1) : NULL;
        if (task->over != NULL) {
            *task->over = moment_of(timeline, task->ticket);
        }
    }
    bool known = timeline != NULL && !is_unknown(timeline);
    for (size_t i = 0; i < task->use_count && known && (us_checks() & CHECK_RACE) != 0; i++) {
        compare(&task->uses[i], task, stream, conflict);
    }
    for (size_t i = 0; i < task->use_count && known; i++) {
        if (task->uses[i].size > 0) {
            add_access(&task->uses[i], task, stream, timeline->before + task->ticket);
        }
    }
    pthread_mutex_unlock(&lock);
}

Moment *us_order_moment(StreamState *stream, uint64_t *ticket)
{
    if (!is_watching()) {
        *ticket = atomic_load(&stream->submitted);
        return NULL;
    }
    pthread_mutex_lock(&stream->lock);
    pthread_mutex_lock(&lock);
    *ticket = atomic_load(&stream->submitted);
    Timeline *timeline = timeline_of(stream);
    Moment *made = timeline != NULL ? moment_of(timeline, *ticket) : NULL;
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&stream->lock);
    return made;
}

Moment *us_order_unknown(void)
{
    Moment *made = is_watching() ? us_moment_combine(NULL, NULL, 0) : NULL;
    if (made != NULL) {
        made->unknown = true;
    }
    return made;
}

/* The stream has come to rest, and so has what it waited for. */
static void forget_waits(Timeline *timeline)
{
    us_moment_let_go(timeline->waited);
    timeline->waited = us_moment_hold(seen);
}

void us_order_seen(StreamState *stream, Moment *moment)
{
    if (moment == NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    host_has_seen(moment);
    if (stream != NULL && stream->timeline != NULL &&
        us_moment_reached(seen, stream->timeline->place) >= last_tickets[stream->timeline->place]) {
        forget_waits(stream->timeline);
    }
    us_moment_let_go(moment);
    pthread_mutex_unlock(&lock);
}

void us_order_end(StreamState *stream)
{
    if (!is_watching()) {
        return;
    }
    pthread_mutex_lock(&lock);
    Timeline *timeline = stream->timeline;
    if (timeline != NULL) {
        Moment *end = moment_of(timeline, last_tickets[timeline->place] - timeline->before);
        host_has_seen(end);
        us_moment_let_go(end);
        taken_places[timeline->place] = false;
        us_moment_let_go(timeline->waited);
        free(timeline);
        stream->timeline = NULL;
    }
    stream->timeline_is_over = true;
    pthread_mutex_unlock(&lock);
}

/* ---- what the host does ------------------------------------------------------------------------------------------ */

void us_order_host_function(StreamState *stream, const Task *task)
{
    if (task->moment == NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    host_has_seen(task->moment);
    if (stream->timeline != NULL) {
        host_function.runs = true;
        host_function.place = stream->timeline->place;
        host_function.ticket = stream->timeline->before + task->ticket;
    }
    pthread_mutex_unlock(&lock);
}

void us_order_host_function_over(const Task *task)
{
    host_function.runs = host_function.runs && task->moment == NULL;
}

/* Work that comes after the host function that this thread runs is no danger to it. */
static bool comes_later(const Access *access)
{
    return host_function.runs && (access->place == host_function.place
                                      ? access->ticket > host_function.ticket
                                      : us_moment_reached(access->after, host_function.place) >= host_function.ticket);
}

bool us_order_find_user(uintptr_t address, size_t size, bool writes, User *user)
{
    bool found = false;
    const Use use = {.address = address, .size = size, .writes = writes};
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < access_count && !found && size > 0; i++) {
        found = us_uses_conflict(&use, &accesses[i].use) && !comes_later(&accesses[i]);
        if (found) {
            *user = accesses[i].user;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void us_order_forget(uintptr_t address, size_t size)
{
    const Use use = {.address = address, .size = size, .writes = true};
    pthread_mutex_lock(&lock);
    for (size_t i = access_count; i-- > 0;) {
        if (us_uses_overlap(&use, &accesses[i].use)) {
            drop_access(i);
        }
    }
    pthread_mutex_unlock(&lock);
}

bool us_order_host_touch(uintptr_t address, User *user)
{
    const Use byte = {.address = address, .size = 1, .writes = true};
    const Use page = pages_of(&byte);
    bool closed = false;
    *user = (User){.name = NULL};
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < access_count; i++) {
        Use pages = pages_of(&accesses[i].use);
        if (!accesses[i].closed || !us_uses_overlap(&page, &pages)) {
            continue;
        }
        closed = true;
        accesses[i].closed = false;
        open_pages(&accesses[i].use);
        /* A writer is worse than a reader. */
        if (us_uses_conflict(&byte, &accesses[i].use) && !comes_later(&accesses[i]) && (user->name == NULL || !user->writes)) {
            *user = accesses[i].user;
        }
    }
    pthread_mutex_unlock(&lock);
    return closed;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

void us_order_tell(const StreamState *stream, const Conflict *conflict)
{
    if (!conflict->found) {
        return;
    }
    const Use *a = &conflict->earlier, *b = &conflict->later;
    uintptr_t first = a->address > b->address ? a->address : b->address;
    uintptr_t ends[] = {a->address + a->size, b->address + b->size};
    Allocation block;
    char place[560] = "";
    if (us_memory_find(stream->device->platform, (void *)first, &block)) {
        snprintf(place, sizeof place, ", byte %zu of block #%llu (%zu bytes from %s%s)",
                 (size_t)(first - block.address), (unsigned long long)block.serial, block.size, block.function,
                 us_place(block.caller).text);
    }
    us_finding("race", "%s on stream %d %s %zu bytes at %p%s, which %s%s on stream %d %s; nothing orders the two: let "
               "stream %d wait for an event of stream %d, or the host for the latter", conflict->later_name,
               (int)conflict->later_stream, b->writes ? "writes" : "reads",
               (size_t)((ends[0] < ends[1] ? ends[0] : ends[1]) - first), (void *)first, place, conflict->earlier_name,
               us_place(conflict->earlier_caller).text, (int)conflict->earlier_stream, a->writes ? "writes" : "reads",
               (int)conflict->later_stream, (int)conflict->earlier_stream);
}

void us_order_tell_branches(const Task *first, const Use *of_first, const Task *second, const Use *of_second)
{
    const uintptr_t at = of_first->address > of_second->address ? of_first->address : of_second->address;
    us_finding("race", "%s%s %s memory at %p that %s%s %s in another branch of the graph; nothing in the graph orders the two: "
               "let one branch wait for an event of the other", second->work.name, us_place(second->caller).text,
               of_second->writes ? "writes" : "reads", (void *)at, first->work.name, us_place(first->caller).text,
               of_first->writes ? "writes" : "reads");
}
