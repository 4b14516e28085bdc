/* Two threads in every order that their locks allow: one stops before it takes a lock, the other does all it has to do, the
 * first goes on; once for each lock that it takes. Nothing depends on how fast anything is. Not for inline mode, nor for
 * sanitizers, which have their own pthread_mutex_lock. */
#ifndef UNDERSTUDY_TEST_HALTS_H
#define UNDERSTUDY_TEST_HALTS_H

#include "../check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <string.h>

typedef int LockFunction(pthread_mutex_t *mutex);

static _Thread_local int locks_to_halt; /* the thread halts when it would take this many more; 0: never */
static _Thread_local int locks_held;
static sem_t has_halted, may_go_on;

static LockFunction *real(LockFunction *_Atomic *found, const char *name)
{
    if (*found == NULL) {
        *found = (LockFunction *)dlsym(RTLD_NEXT, name);
    }
    return *found;
}

static void halt(void)
{
    sem_post(&has_halted);
    sem_wait(&may_go_on);
}

/* What takes a lock while it holds another is left alone: the other thread might need that one. */
int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static LockFunction *_Atomic found;
    if (locks_held == 0 && locks_to_halt > 0 && --locks_to_halt == 0) {
        halt();
    }
    locks_held++;
    return real(&found, "pthread_mutex_lock")(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    static LockFunction *_Atomic found;
    locks_held--;
    return real(&found, "pthread_mutex_unlock")(mutex);
}

typedef struct Halting {
    void (*work)(void);
    int locks;
    bool took_them; /* the thread had so many */
} Halting;

static void *work_and_halt(void *argument)
{
    Halting *halting = (Halting *)argument;
    locks_to_halt = halting->locks;
    halting->work();
    halting->took_them = locks_to_halt == 0;
    locks_to_halt = 0;
    if (!halting->took_them) { /* the other runs after all of it */
        halt();
    }
    return NULL;
}

/* `prepare`, then `halting` and `other` at once, then `check`: until `halting` takes no more locks. */
static inline void try_all_orders(void (*prepare)(void), void (*halting)(void), void (*other)(void), void (*check)(void))
{
    Halting state = {.work = halting, .took_them = true};
    sem_init(&has_halted, 0, 0);
    sem_init(&may_go_on, 0, 0);
    while (state.took_them) {
        pthread_t thread;
        state.locks++;
        prepare();
        CHECK(pthread_create(&thread, NULL, work_and_halt, &state) == 0);
        sem_wait(&has_halted);
        other();
        sem_post(&may_go_on);
        CHECK(pthread_join(thread, NULL) == 0);
        check();
    }
}

typedef struct Race {
    const char *name;
    void (*prepare)(void), (*halting)(void), (*other)(void), (*check)(void);
} Race;

/* All of them, or the one that is asked for. */
static inline void try_all_orders_of(const Race *races, size_t count, const char *asked)
{
    for (size_t i = 0; i < count; i++) {
        if (asked == NULL || strcmp(asked, races[i].name) == 0) {
            try_all_orders(races[i].prepare, races[i].halting, races[i].other, races[i].check);
        }
    }
}

#endif
