#include "device/team.h"

#include "report/descriptor.h"
#include "report/report.h"
#include "understudy/understudy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef struct Barrier {
    _Atomic uint32_t arrived; /* processes inside */
    _Atomic uint32_t passed;  /* times that all have reached it */
} Barrier;

/* The first bytes of the file. Zero bytes are its initial state, so that nobody has to be first. */
typedef struct Control {
    _Atomic uint32_t joined;           /* bit i: process i has begun */
    _Atomic uint8_t ended[TEAM_LIMIT]; /* written by who watches the processes: i has ended, begun or not */
    _Atomic uint8_t watched;           /* somebody writes `ended` */
    Barrier barriers[1 << TEAM_LIMIT]; /* one for every set of members */
} Control;

enum { CONTROL_SIZE = 64 << 10 /* a page of any host */, LOOK_NANOSECONDS = 100000000, LOOKS_BEFORE_WORD = 100 };
_Static_assert(offsetof(Control, ended) == 4 && offsetof(Control, watched) == 12, "python/understudy/ft_run.py writes there");
_Static_assert(sizeof(Control) <= CONTROL_SIZE, "the control bytes hold a barrier for every set of processes");

static Team team = {0, 1, -1, CONTROL_SIZE};
static Control *control;

/* A lock on a byte of the file: the kernel frees it when the process that has it ends, however it ends. */
static struct flock byte_lock(short type, off_t byte)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
}

static off_t life_byte(int rank) /* locked as long as the process lives */
{
    return 1 + rank;
}

static Control *map_control(int file)
{
    struct flock lock = byte_lock(F_WRLCK, 0);
    fcntl(file, F_SETLKW, &lock); /* nobody may shorten what another has extended */
    const bool extended = lseek(file, 0, SEEK_END) >= CONTROL_SIZE || ftruncate(file, CONTROL_SIZE) == 0;
    lock = byte_lock(F_UNLCK, 0);
    fcntl(file, F_SETLK, &lock);
    void *page = extended ? mmap(NULL, CONTROL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    return page == MAP_FAILED ? NULL : page;
}

static void announce(int file, int rank)
{
    struct flock lock = byte_lock(F_WRLCK, life_byte(rank));
    if (fcntl(file, F_SETLK, &lock) != 0) {
        us_log(LOG_LEVEL_ERROR, "UNDERSTUDY_FT_CORE=%d: another process is this core", rank);
    }
    atomic_fetch_or(&control->joined, 1u << rank);
}

static void join_team(void)
{
    const char *path = us_environment_text("UNDERSTUDY_FT_MEMORY", "");
    const int size = (int)us_environment_integer("UNDERSTUDY_FT_CORES", 1, 1, TEAM_LIMIT);
    team.rank = (int)us_environment_integer("UNDERSTUDY_FT_CORE", 0, 0, size - 1);
    if (path[0] == '\0') {
        return;
    }
    const int file = us_descriptor(open(path, O_RDWR | O_CLOEXEC));
    control = file < 0 ? NULL : map_control(file);
    if (!control) {
        us_log(LOG_LEVEL_ERROR, "cannot use UNDERSTUDY_FT_MEMORY=%s: %s; this process is alone", path, strerror(errno));
        if (file >= 0) {
            close(file);
        }
        return;
    }
    announce(file, team.rank);
    team.size = size;
    team.file = file;
}

const Team *us_team(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, join_team);
    return &team;
}

/* Whether a core whose life lock is free has ended. It may not have begun yet; and the command of a core that is watched may
 * run several programs in turn, between which nobody has the lock. */
static bool has_ended_if_free(int rank)
{
    const bool joined = (atomic_load(&control->joined) >> rank & 1) != 0;
    return atomic_load(&control->watched) != 0 ? atomic_load(&control->ended[rank]) != 0 : joined;
}

/* The lowest of `members` that has ended; -1: none. */
static int ended_member(uint32_t members)
{
    for (int rank = 0; rank < team.size; rank++) {
        struct flock lock = byte_lock(F_WRLCK, life_byte(rank));
        const bool is_other = rank != team.rank && (members >> rank & 1) != 0;
        if (is_other && has_ended_if_free(rank) && fcntl(team.file, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK) {
            return rank;
        }
    }
    return -1;
}

static bool has_passed(const Barrier *barrier, uint32_t before)
{
    return atomic_load(&barrier->passed) != before;
}

/* Sleeps until the barrier is passed. Looks now and then whether those it waits for are still there. */
static void wait_for(Barrier *barrier, uint32_t before, uint32_t members)
{
    const struct timespec look = {0, LOOK_NANOSECONDS};
    for (int looks = 0; !has_passed(barrier, before);) {
        if (syscall(SYS_futex, &barrier->passed, FUTEX_WAIT, before, &look, NULL, 0) == 0 || errno != ETIMEDOUT) {
            continue;
        }
        const int ended = ended_member(members);
        if (ended >= 0 && !has_passed(barrier, before)) {
            us_log(LOG_LEVEL_ERROR, "core %d waits at a barrier of the cores 0x%02x, but core %d has ended", team.rank,
                   (unsigned)members, ended);
            exit(EXIT_FAILURE);
        }
        if (++looks == LOOKS_BEFORE_WORD) {
            us_log(LOG_LEVEL_ERROR, "core %d has been waiting for 10 s at a barrier of the cores 0x%02x", team.rank,
                   (unsigned)members);
        }
    }
}

void us_team_barrier(uint32_t members)
{
    if (us_team()->file < 0 || (members & (members - 1)) == 0) { /* nobody else */
        return;
    }
    Barrier *barrier = &control->barriers[members];
    const uint32_t before = atomic_load(&barrier->passed);
    if (atomic_fetch_add(&barrier->arrived, 1) + 1 == (uint32_t)__builtin_popcount(members)) {
        atomic_store(&barrier->arrived, 0);
        atomic_fetch_add(&barrier->passed, 1);
        syscall(SYS_futex, &barrier->passed, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        return;
    }
    wait_for(barrier, before, members);
}

int32_t understudy_core(void)
{
    return us_team()->rank;
}

int32_t understudy_core_count(void)
{
    return us_team()->size;
}

void understudy_barrier(void)
{
    us_team_barrier((1u << us_team()->size) - 1);
}
