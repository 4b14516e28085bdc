/* Programs that do not come to an end by themselves. First argument:
 * reset    a host function never returns, with work queued behind it, and the device is reset by force: prints "ok"
 * ending   host functions of many streams never return, and the process ends: prints "ok"
 * parting  the first thread ends, the library's threads stay: prints "ready" and waits for a signal
 * waiting  SIGTERM is blocked in all threads of the program, which takes it with sigwait: prints "ready", then "taken" */
#include "../check.h"

#include "acl/acl.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic int entered;

static void never_return(void *unused)
{
    (void)unused;
    atomic_store(&entered, 1);
    for (;;) {
        pause();
    }
}

static void nothing(void *unused)
{
    (void)unused;
}

static void reset_by_force(void)
{
    void *stream = NULL;
    void *memory = NULL;
    CHECK(aclrtCreateStream(&stream) == ACL_SUCCESS && aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    CHECK(aclrtLaunchHostFunc(stream, never_return, NULL) == ACL_SUCCESS);
    CHECK(aclrtLaunchHostFunc(stream, nothing, NULL) == ACL_SUCCESS);
    CHECK(aclrtMemsetAsync(memory, 64, 0, 64, stream) == ACL_SUCCESS);
    while (!atomic_load(&entered)) {
        usleep(1000);
    }
    CHECK(aclrtResetDeviceForce(0) == ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(stream) != ACL_SUCCESS);
    CHECK(aclrtSetDevice(0) == ACL_SUCCESS && aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    CHECK(aclrtMemset(memory, 64, 0, 64) == ACL_SUCCESS);
    puts("ok");
}

static void end_with_many(void)
{
    enum { STREAMS = 30 };
    for (int i = 0; i < STREAMS; i++) {
        void *stream = NULL;
        CHECK(aclrtCreateStream(&stream) == ACL_SUCCESS);
        CHECK(aclrtLaunchHostFunc(stream, never_return, NULL) == ACL_SUCCESS);
    }
    puts("ok");
}

int main(int argument_count, char **arguments)
{
    const char *wanted = argument_count > 1 ? arguments[1] : "";
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    if (strcmp(wanted, "waiting") == 0) {
        CHECK(pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0);
    }
    CHECK(aclInit(NULL) == ACL_SUCCESS && aclrtSetDevice(0) == ACL_SUCCESS);
    if (strcmp(wanted, "reset") == 0) {
        reset_by_force();
        return 0;
    }
    if (strcmp(wanted, "ending") == 0) {
        end_with_many();
        return 0;
    }
    CHECK(aclrtLaunchHostFunc(NULL, nothing, NULL) == ACL_SUCCESS && aclrtSynchronizeStream(NULL) == ACL_SUCCESS);
    puts("ready");
    fflush(stdout);
    if (strcmp(wanted, "parting") == 0) {
        pthread_exit(NULL);
    }
    int taken = 0;
    CHECK(sigwait(&signals, &taken) == 0 && taken == SIGTERM);
    puts("taken");
    return 0;
}
