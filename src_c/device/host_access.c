/* A host program that touches device memory stops, as on a real card, but with a message first. */
#include "device/host_access.h"

#include "device/check.h"
#include "device/device_internal.h"
#include "report/caller.h"

#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static struct sigaction previous_handlers[NSIG];
static atomic_bool passed_on; /* to the handler before: that one may call this one again */
static AccessTeller *_Atomic other_teller;

/* What the registry says about an address. Runs in a signal handler: the registry is only looked at when nobody is
 * changing it. */
static void describe_block(PlatformState *platform, const void *address, char *text, size_t size)
{
    text[0] = '\0';
    if (pthread_mutex_trylock(&platform->memory_lock) != 0) {
        return;
    }
    const Allocation *block = us_memory_block(&platform->public, address);
    if (block != NULL) {
        snprintf(text, size, ", %zu bytes into block #%llu (%zu bytes from %s%s)", (uintptr_t)address - block->address,
                 (unsigned long long)block->serial, block->size, block->function, block->freed ? ", freed" : "");
    }
    pthread_mutex_unlock(&platform->memory_lock);
}

/* The sentence for an address of device memory. */
static void describe_access(PlatformState *platform, const void *address, char *text, size_t size)
{
    char block[160];
    describe_block(platform, address, block, sizeof block);
    snprintf(text, size,
             "host code touched %p, device memory of %s%s. Copy it to the host first; "
             "UNDERSTUDY_DEVICE_ACCESS=host opens device memory to a debugger.",
             address, platform->public.profile.name, block);
}

static bool describe_access_anywhere(const void *address, char *text, size_t size)
{
    for (int id = 0; id < PLATFORM_LIMIT; id++) {
        Platform *platform = us_platform_at(id);
        if (platform != NULL && us_memory_is_closed(platform_state(platform), (uintptr_t)address, 1)) {
            describe_access(platform_state(platform), address, text, size);
            return true;
        }
    }
    AccessTeller *teller = other_teller;
    return teller != NULL && teller(address, text, size);
}

static void tell(const void *address)
{
    char text[480], line[512];
    if (describe_access_anywhere(address, text, sizeof text)) {
        int length = snprintf(line, sizeof line, "understudy: error: %s\n", text);
        ssize_t written = write(STDERR_FILENO, line, (size_t)length);
        (void)written;
    }
}

/* ---- bytes that are being moved ---- */

static _Atomic uint32_t moves; /* that run now */

void us_host_access_begin_move(void)
{
    atomic_fetch_add(&moves, 1);
}

void us_host_access_end_move(void)
{
    if (atomic_fetch_sub(&moves, 1) == 1) {
        syscall(SYS_futex, &moves, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    }
}

/* Memory behind blocks is always open, except while it is moved. */
static bool is_moved(const siginfo_t *info)
{
    bool known = false;
    for (int id = 0; id < PLATFORM_LIMIT && info->si_code == SEGV_ACCERR && !known; id++) {
        Platform *platform = us_platform_at(id);
        known = platform != NULL && us_memory_is_behind_blocks(platform_state(platform), (uintptr_t)info->si_addr);
    }
    return known;
}

static void wait_for_moves(void)
{
    for (uint32_t running = atomic_load(&moves); running > 0; running = atomic_load(&moves)) {
        syscall(SYS_futex, &moves, FUTEX_WAIT, running, NULL, NULL, 0);
    }
}

/* Where the program was. */
static const void *interrupted_at(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (const void *)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const void *)context->uc_mcontext.pc;
#else
    return NULL;
#endif
}

static void on_access(int signal_number, siginfo_t *info, void *context)
{
    if (is_moved(info)) {
        wait_for_moves();
        return; /* repeats the access */
    }
    if (info->si_code > 0 && us_check_host_touch(info->si_addr, interrupted_at(context))) {
        return; /* now it may */
    }
    /* Only faults the processor reports carry an address; a signal somebody sent does not. */
    if (info->si_code > 0) {
        tell(info->si_addr);
    }
    /* Back to whatever was there: returning repeats the access, which then ends the ordinary way. */
    if (atomic_exchange(&passed_on, true)) {
        signal(signal_number, SIG_DFL);
    } else {
        sigaction(signal_number, &previous_handlers[signal_number], NULL);
    }
    if (info->si_code <= 0) {
        raise(signal_number);
    }
}

static void install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_access;
    /* A finding takes more room than the stacks that programs (Python, for one) keep for signals. */
    action.sa_flags = SA_SIGINFO | ((us_checks() & CHECK_SYNC) != 0 ? 0 : SA_ONSTACK);
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &previous_handlers[SIGSEGV]);
    atomic_store(&passed_on, false);
}

void us_host_access_take_back(void)
{
    struct sigaction now;
    if (sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_sigaction != on_access) {
        install();
    }
}

void us_host_access_watch(AccessTeller *teller)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    if (teller != NULL) {
        other_teller = teller;
    }
}
