/* What a second thread that waits for the device, or asks for a stream, and another process must not hide or invent; vendor API
 * only. The first argument is what main does, the second what the thread does. */
#include "../check.h"

#include "acl/acl.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 4096, TURNS = 400 };

static aclrtStream first, second;
static aclrtEvent event;
static void *block;
static char host[BYTES];
static const char *other;
static _Atomic int is_over, is_copied;

static void *watch(void *argument)
{
    aclrtStreamStatus status;
    CHECK(aclrtSetDevice(0) == ACL_SUCCESS);
    while (!atomic_load(&is_over)) {
        if (strcmp(other, "device") == 0) {
            CHECK(aclrtSynchronizeDevice() == ACL_SUCCESS);
        } else {
            CHECK(aclrtStreamQuery(second, &status) == ACL_SUCCESS);
        }
    }
    return argument;
}

/* Holds the first stream back. */
static void await_copy(void *argument)
{
    (void)argument;
    while (!atomic_load(&is_copied)) {
        usleep(10);
    }
}

/* Streams that live for a turn, whose places in the order others take. */
static void use_short_streams(void)
{
    aclrtStream stream;
    void *memory;
    CHECK(aclrtCreateStream(&stream) == ACL_SUCCESS && aclrtMalloc(&memory, BYTES, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    for (int k = 0; k < 3; k++) {
        CHECK(aclrtMemsetAsync(memory, BYTES, k, BYTES, stream) == ACL_SUCCESS);
    }
    CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    CHECK(aclrtMemcpy(host, BYTES, memory, BYTES, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS);
    CHECK(aclrtFree(memory) == ACL_SUCCESS && aclrtDestroyStream(stream) == ACL_SUCCESS);
}

/* The second stream waits for the first one; the host waits for the second, or, wrongly, for none. */
static void wait_by_event(int for_second)
{
    atomic_store(&is_copied, 0);
    if (!for_second) {
        CHECK(aclrtLaunchHostFunc(first, await_copy, NULL) == ACL_SUCCESS); /* so that nobody sees the streams at rest before */
    }
    CHECK(aclrtMemsetAsync(block, BYTES, 1, BYTES, first) == ACL_SUCCESS);
    CHECK(aclrtRecordEvent(event, first) == ACL_SUCCESS && aclrtStreamWaitEvent(second, event) == ACL_SUCCESS);
    if (for_second) {
        CHECK(aclrtMemsetAsync(block, BYTES, 2, BYTES, second) == ACL_SUCCESS);
        CHECK(aclrtSynchronizeStream(second) == ACL_SUCCESS);
    }
    CHECK(aclrtMemcpy(host, BYTES, block, BYTES, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS);
    atomic_store(&is_copied, 1);
    CHECK(aclrtSynchronizeStream(first) == ACL_SUCCESS && aclrtSynchronizeStream(second) == ACL_SUCCESS);
}

/* The child waits for the parent's event and records it again; the parent waits for that. */
static int pass_event_on(void)
{
    int to_child[2], to_parent[2], status = 1;
    char told = 0;
    aclrtIpcEventHandle handle;
    CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
    const pid_t child = fork();
    CHECK(child >= 0 && aclrtSetDevice(0) == ACL_SUCCESS && aclrtCreateStream(&first) == ACL_SUCCESS);
    close(child == 0 ? to_child[1] : to_parent[1]); /* nobody waits for one that has failed */
    if (child == 0) {
        CHECK(read(to_child[0], &handle, sizeof handle) == sizeof handle);
        CHECK(aclrtIpcOpenEventHandle(handle, &event) == ACL_SUCCESS);
        CHECK(aclrtStreamWaitEvent(first, event) == ACL_SUCCESS && aclrtRecordEvent(event, first) == ACL_SUCCESS);
        CHECK(write(to_parent[1], &told, 1) == 1 && aclrtSynchronizeStream(first) == ACL_SUCCESS);
        _exit(0);
    }
    CHECK(aclrtMalloc(&block, BYTES, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    CHECK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC) == ACL_SUCCESS);
    CHECK(aclrtMemsetAsync(block, BYTES, 1, BYTES, first) == ACL_SUCCESS && aclrtRecordEvent(event, first) == ACL_SUCCESS);
    CHECK(aclrtIpcGetEventHandle(event, &handle) == ACL_SUCCESS);
    CHECK(write(to_child[1], &handle, sizeof handle) == sizeof handle && read(to_parent[0], &told, 1) == 1);
    CHECK(aclrtSynchronizeEvent(event) == ACL_SUCCESS);
    CHECK(aclrtMemcpy(host, BYTES, block, BYTES, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS);
    CHECK(aclrtFree(block) == ACL_SUCCESS && aclrtDestroyEvent(event) == ACL_SUCCESS);
    CHECK(aclrtDestroyStream(first) == ACL_SUCCESS && waitpid(child, &status, 0) == child && status == 0);
    puts("done");
    return 0;
}

int main(int count, char **arguments)
{
    CHECK(count == 3);
    if (strcmp(arguments[1], "process") == 0) {
        return pass_event_on();
    }
    other = arguments[2];
    pthread_t thread;
    CHECK(aclInit(NULL) == ACL_SUCCESS && aclrtSetDevice(0) == ACL_SUCCESS);
    CHECK(aclrtCreateStream(&first) == ACL_SUCCESS && aclrtCreateStream(&second) == ACL_SUCCESS);
    CHECK(aclrtCreateEvent(&event) == ACL_SUCCESS);
    CHECK(aclrtMalloc(&block, BYTES, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    CHECK(pthread_create(&thread, NULL, watch, NULL) == 0);
    for (int turn = 0; turn < TURNS; turn++) {
        if (strcmp(arguments[1], "short-streams") == 0) {
            use_short_streams();
        } else {
            wait_by_event(strcmp(arguments[1], "event") == 0);
        }
    }
    atomic_store(&is_over, 1);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(aclrtFree(block) == ACL_SUCCESS && aclrtDestroyEvent(event) == ACL_SUCCESS);
    CHECK(aclrtDestroyStream(first) == ACL_SUCCESS && aclrtDestroyStream(second) == ACL_SUCCESS);
    puts("done");
    return 0;
}
