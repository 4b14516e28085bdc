#include "device/signal.h"

#include "device/process_end.h"
#include "report/descriptor.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int us_signal_create(void)
{
    int file = us_descriptor(memfd_create("understudy", MFD_CLOEXEC));
    if (file >= 0 && ftruncate(file, sizeof(SignalWords)) != 0) {
        close(file);
        file = -1;
    }
    return file;
}

SignalWords *us_signal_open(int file)
{
    void *words = mmap(NULL, sizeof(SignalWords), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return words != MAP_FAILED ? words : NULL;
}

void us_signal_close(SignalWords *words)
{
    munmap(words, sizeof *words);
}

void us_signal_tell(SignalWords *words)
{
    atomic_fetch_add(&words->changes, 1);
    syscall(SYS_futex, &words->changes, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void us_signal_wait(SignalWords *words, uint32_t changes, int64_t nanoseconds)
{
    static const int64_t SECOND = 1000000000;
    struct timespec limit = {.tv_sec = (time_t)(nanoseconds / SECOND), .tv_nsec = (long)(nanoseconds % SECOND)};
    syscall(SYS_futex, &words->changes, FUTEX_WAIT, changes, nanoseconds < 0 ? NULL : &limit, NULL, 0);
}

bool us_signal_is_orphan(const SignalWords *words)
{
    int32_t process = atomic_load(&words->recorder);
    return process > 0 && us_process_has_ended(process);
}
