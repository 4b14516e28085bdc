#include "device/team.h"

#include "report/report.h"
#include "understudy/understudy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The first page of the file. Zero bytes are its initial state, so that nobody has to be first. */
typedef struct Control {
    _Atomic uint32_t arrived; /* processes inside the current barrier */
    _Atomic uint32_t passed;  /* barriers that all have reached */
} Control;

enum { CONTROL_SIZE = 4096 };

static Team team = {0, 1, -1, CONTROL_SIZE};
static Control *control;

static Control *map_control(int file)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    fcntl(file, F_SETLKW, &lock); /* nobody may shorten what another has extended */
    const bool extended = lseek(file, 0, SEEK_END) >= CONTROL_SIZE || ftruncate(file, CONTROL_SIZE) == 0;
    lock.l_type = F_UNLCK;
    fcntl(file, F_SETLK, &lock);
    void *page = extended ? mmap(NULL, CONTROL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    return page == MAP_FAILED ? NULL : page;
}

static void join_team(void)
{
    const char *path = us_environment_text("UNDERSTUDY_FT_MEMORY", "");
    const int size = (int)us_environment_integer("UNDERSTUDY_FT_CORES", 1, 1, TEAM_LIMIT);
    team.rank = (int)us_environment_integer("UNDERSTUDY_FT_CORE", 0, 0, size - 1);
    if (path[0] == '\0') {
        return;
    }
    const int file = open(path, O_RDWR | O_CLOEXEC);
    control = file < 0 ? NULL : map_control(file);
    if (!control) {
        us_log(LOG_LEVEL_ERROR, "cannot use UNDERSTUDY_FT_MEMORY=%s: %s; this process is alone", path, strerror(errno));
        if (file >= 0) {
            close(file);
        }
        return;
    }
    team.size = size;
    team.file = file;
}

const Team *us_team(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, join_team);
    return &team;
}

void us_team_barrier(void)
{
    if (us_team()->size == 1) {
        return;
    }
    const uint32_t passed = atomic_load(&control->passed);
    if (atomic_fetch_add(&control->arrived, 1) + 1 == (uint32_t)team.size) {
        atomic_store(&control->arrived, 0);
        atomic_fetch_add(&control->passed, 1);
        syscall(SYS_futex, &control->passed, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        return;
    }
    while (atomic_load(&control->passed) == passed) {
        syscall(SYS_futex, &control->passed, FUTEX_WAIT, passed, NULL, NULL, 0);
    }
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
    us_team_barrier();
}
