#include "tensor/parallel.h"

#include "report/report.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

/* How long a thread looks for work (or for the end of it) before it sleeps. Long enough that a chain of kernels meets
 * warm threads, short enough that it costs nobody else a time slice. */
enum { SPIN_NANOSECONDS = 30000, SPINS_BETWEEN_CLOCKS = 64, THREAD_LIMIT = 1024 };

/* One call of us_parallel, on its caller's stack. */
typedef struct Job {
    ParallelBody *body;
    void *context;
    int64_t pieces;
    _Atomic int64_t next;  /* the piece to run next */
    _Atomic int helpers;   /* workers inside; changed under the lock */
    bool caller_sleeps;    /* under the lock */
    struct Job *following; /* under the lock */
} Job;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work; /* a job was published */
    pthread_cond_t done; /* some job has no helpers left */
    Job *jobs;           /* jobs that may have pieces left, oldest first */
    _Atomic uint64_t published;
    int workers, sleeping;
    bool started;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static _Thread_local bool inside; /* this thread runs pieces: nested calls are serial */

static void spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static int64_t now_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* True while a spinning thread may go on; reads the clock now and then. */
static bool may_spin(int *spins, int64_t *until)
{
    spin_pause();
    if (++*spins % SPINS_BETWEEN_CLOCKS != 0) {
        return true;
    }
    int64_t now = now_nanoseconds();
    if (*until == 0) {
        *until = now + SPIN_NANOSECONDS;
    }
    return now < *until;
}

static void run_pieces(Job *job)
{
    int64_t piece;
    while ((piece = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->pieces) {
        job->body(job->context, piece);
    }
}

/* Under the lock: no further worker joins the job. */
static void withdraw(Job *job)
{
    for (Job **link = &pool.jobs; *link; link = &(*link)->following) {
        if (*link == job) {
            *link = job->following;
            return;
        }
    }
}

static void wait_for_work(uint64_t seen)
{
    int spins = 0;
    int64_t until = 0;
    pthread_mutex_unlock(&pool.lock);
    while (atomic_load_explicit(&pool.published, memory_order_relaxed) == seen && may_spin(&spins, &until)) {
    }
    pthread_mutex_lock(&pool.lock);
    if (!pool.jobs) {
        pool.sleeping++;
        while (!pool.jobs) {
            pthread_cond_wait(&pool.work, &pool.lock);
        }
        pool.sleeping--;
    }
}

static void *worker(void *unused)
{
    (void)unused;
    inside = true;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (!pool.jobs) {
            wait_for_work(atomic_load_explicit(&pool.published, memory_order_relaxed));
        }
        Job *job = pool.jobs;
        atomic_fetch_add_explicit(&job->helpers, 1, memory_order_relaxed);
        pthread_mutex_unlock(&pool.lock);
        run_pieces(job);
        pthread_mutex_lock(&pool.lock);
        withdraw(job);
        bool caller_sleeps = job->caller_sleeps;
        /* From here on the job may be gone. */
        if (atomic_fetch_sub_explicit(&job->helpers, 1, memory_order_release) == 1 && caller_sleeps) {
            pthread_cond_broadcast(&pool.done);
        }
    }
    return NULL;
}

static void before_fork(void)
{
    pthread_mutex_lock(&pool.lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&pool.lock);
}

/* The child has none of the workers: it starts with an empty pool. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.done, NULL);
    pool.jobs = NULL;
    pool.workers = 0;
    pool.sleeping = 0;
    pool.started = false;
}

static void register_fork_handlers(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* Under the lock. Workers are detached and end with the process: they touch nothing but this file's state and the jobs
 * of callers. Signals are left to the program's own threads, except those a fault raises in the worker itself. */
static void start_workers(void)
{
    pool.started = true;
    sigset_t blocked, previous;
    sigfillset(&blocked);
    sigdelset(&blocked, SIGSEGV);
    sigdelset(&blocked, SIGBUS);
    sigdelset(&blocked, SIGFPE);
    sigdelset(&blocked, SIGILL);
    sigdelset(&blocked, SIGABRT);
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return;
    }
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &blocked, &previous);
    while (pool.workers < us_parallel_threads() - 1) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, worker, NULL) != 0) {
            break;
        }
        pool.workers++;
    }
    pthread_sigmask(SIG_SETMASK, &previous, NULL);
    pthread_attr_destroy(&attributes);
}

static void publish(Job *job)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_fork_handlers);
    pthread_mutex_lock(&pool.lock);
    if (!pool.started) {
        start_workers();
    }
    Job **last = &pool.jobs;
    while (*last) {
        last = &(*last)->following;
    }
    *last = job;
    atomic_fetch_add_explicit(&pool.published, 1, memory_order_relaxed);
    int64_t wanted = job->pieces - 1;
    int wake = pool.sleeping < wanted ? pool.sleeping : (int)wanted;
    pthread_mutex_unlock(&pool.lock);
    for (; wake > 0; wake--) {
        pthread_cond_signal(&pool.work);
    }
}

static void finish(Job *job)
{
    pthread_mutex_lock(&pool.lock);
    withdraw(job);
    pthread_mutex_unlock(&pool.lock);
    int spins = 0;
    int64_t until = 0;
    while (atomic_load_explicit(&job->helpers, memory_order_acquire) != 0) {
        if (may_spin(&spins, &until)) {
            continue;
        }
        pthread_mutex_lock(&pool.lock);
        job->caller_sleeps = true;
        while (atomic_load_explicit(&job->helpers, memory_order_acquire) != 0) {
            pthread_cond_wait(&pool.done, &pool.lock);
        }
        pthread_mutex_unlock(&pool.lock);
    }
}

void us_parallel(int64_t pieces, ParallelBody *body, void *context)
{
    if (pieces <= 1 || inside || us_parallel_threads() == 1) {
        for (int64_t piece = 0; piece < pieces; piece++) {
            body(context, piece);
        }
        return;
    }
    Job job = {.body = body, .context = context, .pieces = pieces};
    publish(&job);
    inside = true;
    run_pieces(&job);
    inside = false;
    finish(&job);
}

static int usable_processors(void)
{
    cpu_set_t processors;
    if (sched_getaffinity(0, sizeof processors, &processors) != 0) {
        return 1;
    }
    int count = CPU_COUNT(&processors);
    return count < 1 ? 1 : count;
}

int us_parallel_threads(void)
{
    static _Atomic int threads;
    int known = atomic_load_explicit(&threads, memory_order_relaxed);
    if (known == 0) {
        known = (int)us_environment_integer("UNDERSTUDY_THREADS", usable_processors(), 1, THREAD_LIMIT);
        atomic_store_explicit(&threads, known, memory_order_relaxed);
    }
    return known;
}
