#include "report/grace.h"

#include "report/fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* One per thread; never freed, but used again when its thread has ended. */
typedef struct Caller {
    _Atomic uint64_t since; /* burials before the thread's call began, counted from 1; 0: in no call */
    _Atomic bool taken;
    struct Caller *next;
} Caller;

typedef struct Burial {
    struct Burial *next;
    uint64_t number;
    void (*end)(void *object);
    void *object;
} Burial;

static Caller *_Atomic callers;
static _Atomic uint64_t burials = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the list, oldest first */
static Burial *first, *last;

static _Thread_local Caller *own;
static _Thread_local int depth;

static pthread_key_t thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Threads that a forked child does not have are in no call there. */
static void forget_others(void)
{
    for (Caller *caller = atomic_load(&callers); caller != NULL; caller = caller->next) {
        if (caller != own) {
            atomic_store(&caller->since, 0);
            atomic_store(&caller->taken, false);
        }
    }
}

__attribute__((constructor)) static void prepare_forks(void)
{
    us_fork_waits_for(&lock);
    pthread_atfork(NULL, NULL, forget_others);
}

static void give_back(void *caller)
{
    atomic_store(&((Caller *)caller)->since, 0);
    atomic_store(&((Caller *)caller)->taken, false);
    own = NULL;
}

static void create_key(void)
{
    pthread_key_create(&thread_end, give_back);
}

static Caller *take_caller(void)
{
    for (Caller *caller = atomic_load(&callers); caller != NULL; caller = caller->next) {
        if (!atomic_exchange(&caller->taken, true)) {
            return caller;
        }
    }
    Caller *made = calloc(1, sizeof *made);
    if (made != NULL) {
        atomic_init(&made->taken, true);
        made->next = atomic_load(&callers);
        while (!atomic_compare_exchange_weak(&callers, &made->next, made)) {
        }
    }
    return made;
}

void us_grace_enter(void)
{
    if (depth++ > 0) {
        return;
    }
    if (own == NULL) {
        pthread_once(&once, create_key);
        own = take_caller();
        pthread_setspecific(thread_end, own);
    }
    if (own != NULL) {
        /* Sequentially consistent: whoever ends a handle now either is seen by our look-up or sees us here. */
        atomic_store(&own->since, atomic_load(&burials));
    }
}

void us_grace_leave(void)
{
    if (--depth == 0 && own != NULL) {
        atomic_store_explicit(&own->since, 0, memory_order_release);
    }
}

bool us_grace_is_nested(void)
{
    return depth > 1;
}

static bool others_are_in_calls(void)
{
    bool found = false;
    for (Caller *caller = atomic_load(&callers); caller != NULL && !found; caller = caller->next) {
        found = caller != own && atomic_load(&caller->since) != 0;
    }
    return found;
}

void us_grace_wait_for_others(uint64_t nanoseconds)
{
    enum { LOOK_AGAIN_US = 50 };
    uint64_t looks = nanoseconds / (LOOK_AGAIN_US * 1000);
    while (others_are_in_calls() && looks-- > 0) {
        usleep(LOOK_AGAIN_US);
    }
}

static uint64_t oldest_call(void)
{
    uint64_t oldest = UINT64_MAX;
    for (Caller *caller = atomic_load(&callers); caller != NULL; caller = caller->next) {
        uint64_t since = atomic_load(&caller->since);
        oldest = since != 0 && since < oldest ? since : oldest;
    }
    return oldest;
}

/* The oldest burial whose object nobody can know any more, taken from the list. */
static Burial *take_forgotten(uint64_t oldest)
{
    pthread_mutex_lock(&lock);
    Burial *burial = first;
    if (burial != NULL && burial->number <= oldest) {
        first = burial->next;
        last = first == NULL ? NULL : last;
    } else {
        burial = NULL;
    }
    pthread_mutex_unlock(&lock);
    return burial;
}

void us_grace_bury(void (*end)(void *object), void *object)
{
    Burial *burial = malloc(sizeof *burial);
    if (burial == NULL) {
        return; /* better kept for good than freed too early */
    }
    *burial = (Burial){.end = end, .object = object};
    pthread_mutex_lock(&lock);
    burial->number = atomic_fetch_add(&burials, 1) + 1;
    if (last == NULL) {
        first = burial;
    } else {
        last->next = burial;
    }
    last = burial;
    pthread_mutex_unlock(&lock);
    uint64_t oldest = oldest_call();
    for (Burial *old = take_forgotten(oldest); old != NULL; old = take_forgotten(oldest)) {
        old->end(old->object);
        free(old);
    }
}
