#include "tensor/parallel.h"

#include "report/report.h"
#include "report/thread.h"
#include "report/trace.h"
#include "tensor/processors.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* How long a thread looks for work (or for the end of it) before it sleeps. Long enough that a chain of kernels meets
 * warm threads, short enough that it costs nobody else a time slice. Before it wakes a sleeping worker, which costs
 * several microseconds, a caller gives threads that are about to wait for its result a moment to come and help. */
enum { SPIN_NANOSECONDS = 60000, GRACE_NANOSECONDS = 1500, SPINS_BETWEEN_CLOCKS = 16, THREAD_LIMIT = 1024 };

/* Of the pieces left in a share, a thread takes one in so many at a time, but no more than so many. */
enum { PARTS = 4, MOST_PIECES = 32 };

enum { SHARE_LIMIT = 16, CACHE_LINE = 64 };

/* Pieces that are neighbours in memory, for one thread; who has no piece of his own left takes from others. */
typedef struct Share {
    _Alignas(CACHE_LINE) _Atomic int64_t next; /* the piece to run next */
    int64_t end;
    bool claimed; /* under the lock */
} Share;

/* One call of us_parallel, on its caller's stack. */
typedef struct Job {
    Share shares[SHARE_LIMIT];
    int share_count;
    ParallelBody *body;
    void *context;
    int64_t pieces;
    _Atomic int helpers;   /* other threads inside; changed under the lock */
    bool caller_sleeps;    /* under the lock */
    struct Job *following; /* under the lock */
} Job;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work; /* a job was published */
    pthread_cond_t done; /* some job has no helpers left */
    Job *_Atomic jobs;   /* jobs that may have pieces left, oldest first; changed under the lock */
    _Atomic int standby; /* threads that are awake, have nothing to do, and join a job when they see one */
    _Atomic uint64_t published; /* jobs so far */
    int workers;
    _Atomic int sleeping;
    bool started;
} pool = {.lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP, .work = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static _Thread_local bool inside; /* this thread runs pieces: nested calls are serial */

/* The share that this thread had last. It claims the same again: what it read and wrote then is in its core's caches. */
static _Thread_local int home;

static void spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* A limited time of busy waiting. */
typedef struct Spin {
    int64_t limit, until;
    int rounds;
} Spin;

/* True while a spinning thread may go on; reads the clock now and then. */
static bool may_spin(Spin *spin)
{
    spin_pause();
    if (++spin->rounds % SPINS_BETWEEN_CLOCKS != 0) {
        return true;
    }
    int64_t now = (int64_t)us_now();
    if (spin->until == 0) {
        spin->until = now + spin->limit;
    }
    return now < spin->until;
}

static int64_t pieces_left(const Share *share)
{
    const int64_t next = atomic_load_explicit(&share->next, memory_order_relaxed);
    return next < share->end ? share->end - next : 0;
}

static bool has_pieces(const Job *job)
{
    for (int i = 0; i < job->share_count; i++) {
        if (pieces_left(&job->shares[i]) > 0) {
            return true;
        }
    }
    return false;
}

static void split(Job *job)
{
    const int threads = us_parallel_threads(), most = threads < SHARE_LIMIT ? threads : SHARE_LIMIT;
    job->share_count = job->pieces < most ? (int)job->pieces : most;
    const int64_t least = job->pieces / job->share_count, longer = job->pieces % job->share_count;
    int64_t begin = 0;
    for (int i = 0; i < job->share_count; i++) {
        Share *share = &job->shares[i];
        atomic_init(&share->next, begin);
        share->end = begin += least + (i < longer);
        share->claimed = false;
    }
}

/* Under the lock. With more threads than shares, some have one in common. */
static int claim_share(Job *job)
{
    int mine = home % job->share_count;
    for (int i = 0; i < job->share_count && job->shares[mine].claimed; i++) {
        mine = (mine + 1) % job->share_count;
    }
    job->shares[mine].claimed = true;
    return home = mine;
}

/* Takes the next few pieces of a share, neighbours in memory: a thread that hops from piece to piece reads and writes
 * slower than one that goes straight on. Few enough that others can take from what is left. 0: none is left. */
static int64_t take_pieces(Share *share, int64_t *first)
{
    int64_t count;
    *first = atomic_load_explicit(&share->next, memory_order_relaxed);
    do {
        const int64_t left = share->end - *first;
        if (left <= 0) {
            return 0;
        }
        count = left / PARTS;
        count = count < 1 ? 1 : count > MOST_PIECES ? MOST_PIECES : count;
    } while (!atomic_compare_exchange_weak_explicit(&share->next, first, *first + count, memory_order_relaxed,
                                                    memory_order_relaxed));
    return count;
}

/* First the thread's own share, then what the others have left, until the pieces have run out, or the thread has got
 * what it is waiting for (`enough` may be NULL). */
static void run_pieces(Job *job, int mine, bool (*enough)(void *), void *context)
{
    for (int turn = 0; turn < job->share_count; turn++) {
        Share *share = &job->shares[(mine + turn) % job->share_count];
        int64_t piece, count;
        while ((count = take_pieces(share, &piece)) > 0) {
            for (const int64_t end = piece + count; piece < end; piece++) {
                job->body(job->context, piece);
            }
            if (enough != NULL && enough(context)) {
                return;
            }
        }
    }
}

/* Under the lock: no further worker joins the job. */
static void withdraw(Job *job)
{
    if (pool.jobs == job) {
        pool.jobs = job->following;
        return;
    }
    for (Job *before = pool.jobs; before != NULL; before = before->following) {
        if (before->following == job) {
            before->following = job->following;
            return;
        }
    }
}

/* Under the lock: the oldest job that has pieces left and room for one more thread; NULL: none. */
static Job *joinable_job(void)
{
    Job *job = pool.jobs;
    while (job != NULL && (!has_pieces(job) ||
                           atomic_load_explicit(&job->helpers, memory_order_relaxed) >= us_parallel_threads() - 1)) {
        job = job->following;
    }
    return job;
}

/* Under the lock, which is released meanwhile. */
static void help(Job *job, bool (*enough)(void *), void *context)
{
    atomic_fetch_add_explicit(&job->helpers, 1, memory_order_relaxed);
    const int mine = claim_share(job);
    pthread_mutex_unlock(&pool.lock);
    inside = true;
    run_pieces(job, mine, enough, context);
    inside = false;
    pthread_mutex_lock(&pool.lock);
    if (!has_pieces(job)) {
        withdraw(job);
    }
    bool caller_sleeps = job->caller_sleeps;
    /* From here on the job may be gone. */
    if (atomic_fetch_sub_explicit(&job->helpers, 1, memory_order_release) == 1 && caller_sleeps) {
        pthread_cond_broadcast(&pool.done);
    }
}

bool us_parallel_wait(bool (*enough)(void *context), void *context, int64_t nanoseconds)
{
    bool done = enough(context);
    if (done || us_usable_processors() == 1) {
        return done;
    }
    const bool may_help = !inside && us_thread_has_room();
    Spin spin = {.limit = nanoseconds};
    atomic_fetch_add_explicit(&pool.standby, may_help, memory_order_relaxed);
    uint64_t refused = 0; /* the latest job when there was none to join */
    while (!(done = enough(context)) && may_spin(&spin)) {
        uint64_t published = atomic_load_explicit(&pool.published, memory_order_relaxed);
        if (!may_help || published == refused || atomic_load_explicit(&pool.jobs, memory_order_relaxed) == NULL) {
            continue;
        }
        pthread_mutex_lock(&pool.lock);
        Job *job = joinable_job();
        refused = job == NULL ? published : 0;
        if (job != NULL) {
            atomic_fetch_sub_explicit(&pool.standby, 1, memory_order_relaxed);
            help(job, enough, context);
            atomic_fetch_add_explicit(&pool.standby, 1, memory_order_relaxed);
            spin = (Spin){.limit = nanoseconds};
        }
        pthread_mutex_unlock(&pool.lock);
    }
    atomic_fetch_sub_explicit(&pool.standby, may_help, memory_order_relaxed);
    return done;
}

static bool sees_job(void *unused)
{
    (void)unused;
    return atomic_load_explicit(&pool.jobs, memory_order_relaxed) != NULL;
}

/* A worker leaves the processor to others: when as many threads stand by as there are processors beside the program's
 * own, it sleeps at once. */
static bool looks_for_job(void *unused)
{
    return sees_job(unused) || atomic_load_explicit(&pool.standby, memory_order_relaxed) >= us_usable_processors();
}

static void *worker(void *unused)
{
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        Job *job = joinable_job();
        if (job != NULL) {
            help(job, NULL, NULL);
            pthread_mutex_unlock(&pool.lock);
            us_parallel_wait(looks_for_job, unused, SPIN_NANOSECONDS);
            pthread_mutex_lock(&pool.lock);
            continue;
        }
        pool.sleeping++;
        pthread_cond_wait(&pool.work, &pool.lock);
        pool.sleeping--;
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
    pool.standby = 0;
    pool.workers = 0;
    pool.sleeping = 0;
    pool.started = false;
}

static void register_fork_handlers(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* Under the lock. Workers are detached and end with the process: they touch nothing but this file's state and the jobs
 * of callers. */
static void start_workers(void)
{
    pthread_t thread;
    pool.started = true;
    while (pool.workers < us_parallel_threads() - 1 && us_thread_start(&thread, worker, NULL)) {
        pthread_detach(thread);
        pool.workers++;
    }
}

/* The caller's share. */
static int publish(Job *job)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_fork_handlers);
    pthread_mutex_lock(&pool.lock);
    if (!pool.started) {
        start_workers();
    }
    if (pool.jobs == NULL) {
        pool.jobs = job;
    } else {
        Job *last = pool.jobs;
        while (last->following != NULL) {
            last = last->following;
        }
        last->following = job;
    }
    const int mine = claim_share(job);
    atomic_fetch_add_explicit(&pool.published, 1, memory_order_relaxed);
    pthread_mutex_unlock(&pool.lock);
    return mine;
}

/* How many threads should be woken for a job: those that are awake come by themselves. */
static int sleepers_to_wake(const Job *job)
{
    int64_t room = us_parallel_threads() - 1 < job->pieces - 1 ? us_parallel_threads() - 1 : job->pieces - 1;
    int coming = atomic_load_explicit(&job->helpers, memory_order_relaxed) +
                 atomic_load_explicit(&pool.standby, memory_order_relaxed);
    int sleeping = atomic_load_explicit(&pool.sleeping, memory_order_relaxed);
    return room <= coming ? 0 : room - coming < sleeping ? (int)(room - coming) : sleeping;
}

static void wake_sleepers(const Job *job)
{
    Spin grace = {.limit = GRACE_NANOSECONDS};
    int wake = sleepers_to_wake(job);
    while (wake > 0 && may_spin(&grace)) {
        wake = sleepers_to_wake(job);
    }
    for (; wake > 0; wake--) {
        pthread_cond_signal(&pool.work);
    }
}

static void finish(Job *job)
{
    pthread_mutex_lock(&pool.lock);
    withdraw(job);
    pthread_mutex_unlock(&pool.lock);
    Spin spin = {.limit = SPIN_NANOSECONDS};
    while (atomic_load_explicit(&job->helpers, memory_order_acquire) != 0) {
        if (may_spin(&spin)) {
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
    Job job;
    job.body = body;
    job.context = context;
    job.pieces = pieces;
    atomic_init(&job.helpers, 0);
    job.caller_sleeps = false;
    job.following = NULL;
    split(&job);
    const int mine = publish(&job);
    wake_sleepers(&job);
    inside = true;
    run_pieces(&job, mine, NULL, NULL);
    inside = false;
    finish(&job);
}

void us_parallel_alone(bool alone)
{
    inside = alone;
}

int us_parallel_threads(void)
{
    static _Atomic int threads;
    int known = atomic_load_explicit(&threads, memory_order_relaxed);
    if (known == 0) {
        known = (int)us_environment_integer("UNDERSTUDY_THREADS", us_usable_processors(), 1, THREAD_LIMIT);
        atomic_store_explicit(&threads, known, memory_order_relaxed);
    }
    return known;
}
