#include "report/fork.h"

enum { LOCK_LIMIT = 8 };
static pthread_mutex_t *locks[LOCK_LIMIT];
static int lock_count;

static void take_all(void)
{
    for (int i = 0; i < lock_count; i++) {
        pthread_mutex_lock(locks[i]);
    }
}

static void let_go_all(void)
{
    for (int i = lock_count; i-- > 0;) {
        pthread_mutex_unlock(locks[i]);
    }
}

void us_fork_waits_for(pthread_mutex_t *lock)
{
    if (lock_count == 0) {
        pthread_atfork(take_all, let_go_all, let_go_all);
    }
    locks[lock_count++] = lock;
}
