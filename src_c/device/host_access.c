/* A host program that touches device memory stops, as on a real card, but with a message first. */
#include "device/device_internal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct sigaction previous_handlers[NSIG];

/* Writes what is known about the address; false when it is not device memory. Runs in a signal handler: the registry is
 * only looked at when nobody is changing it. */
static bool describe_access(const void *address)
{
    for (int id = 0; id < PLATFORM_LIMIT; id++) {
        Platform *platform = us_platform_at(id);
        for (int32_t i = 0; platform != NULL && i < platform->device_count; i++) {
            Device *device = __atomic_load_n(&platform->devices[i], __ATOMIC_ACQUIRE);
            if (device == NULL || !us_arena_holds(&device_state(device)->arena, (uintptr_t)address)) {
                continue;
            }
            char block_text[160] = "";
            PlatformState *state = platform_state(platform);
            if (pthread_mutex_trylock(&state->memory_lock) == 0) {
                const Allocation *block = us_arena_find(&device_state(device)->arena, (uintptr_t)address);
                if (block != NULL) {
                    snprintf(block_text, sizeof block_text, ", %zu bytes into block #%llu (%zu bytes from %s%s)",
                             (uintptr_t)address - block->address, (unsigned long long)block->serial, block->size,
                             block->function, block->freed ? ", freed" : "");
                }
                pthread_mutex_unlock(&state->memory_lock);
            }
            char line[512];
            int length = snprintf(line, sizeof line,
                                  "understudy: error: host code touched %p, memory of %s device %d%s. Copy it to the "
                                  "host first; UNDERSTUDY_DEVICE_ACCESS=host opens device memory to a debugger.\n",
                                  address, platform->profile.name, (int)device->ordinal, block_text);
            ssize_t written = write(STDERR_FILENO, line, (size_t)length);
            (void)written;
            return true;
        }
    }
    return false;
}

static void on_access(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    /* Only faults the processor reports carry an address; a signal somebody sent does not. */
    if (info->si_code > 0) {
        describe_access(info->si_addr);
    }
    /* Back to whatever was there: returning repeats the access, which then ends the ordinary way. */
    sigaction(signal_number, &previous_handlers[signal_number], NULL);
    if (info->si_code <= 0) {
        raise(signal_number);
    }
}

static void install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_access;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &previous_handlers[SIGSEGV]);
}

void us_host_access_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
}
