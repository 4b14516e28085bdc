#include "report/gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static _Atomic(GateRule *) rule; /* NULL: open */
static pthread_t owner;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;

void us_gate_close(GateRule *waits)
{
    pthread_mutex_lock(&lock);
    owner = pthread_self();
    atomic_store(&rule, waits);
    pthread_mutex_unlock(&lock);
}

void us_gate_open(void)
{
    pthread_mutex_lock(&lock);
    atomic_store(&rule, NULL);
    pthread_cond_broadcast(&opened);
    pthread_mutex_unlock(&lock);
}

/* With the lock held: whether the calling thread has to wait with this function. */
static bool holds(const char *function)
{
    GateRule *waits = atomic_load(&rule);
    return waits != NULL && !pthread_equal(owner, pthread_self()) && waits(function);
}

bool us_gate_holds(const char *function)
{
    if (atomic_load(&rule) == NULL) {
        return false;
    }
    pthread_mutex_lock(&lock);
    const bool result = holds(function);
    pthread_mutex_unlock(&lock);
    return result;
}

void us_gate_wait(const char *function)
{
    pthread_mutex_lock(&lock);
    while (holds(function)) {
        pthread_cond_wait(&opened, &lock);
    }
    pthread_mutex_unlock(&lock);
}
