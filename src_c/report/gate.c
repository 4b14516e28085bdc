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

void us_gate_pass(const char *function)
{
    if (atomic_load_explicit(&rule, memory_order_relaxed) == NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    for (GateRule *waits = atomic_load(&rule); waits != NULL && !pthread_equal(owner, pthread_self()) && waits(function);
         waits = atomic_load(&rule)) {
        pthread_cond_wait(&opened, &lock);
    }
    pthread_mutex_unlock(&lock);
}
