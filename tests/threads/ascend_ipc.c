/* Two processes, each with several threads, share memory, events and notifies while streams work on them. Prints "ok". */
#include "../check.h"

#include <acl/acl.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 6, BYTES = 1 << 20, KEY = 65 };

/* What the owner tells the other process. */
typedef struct Offer {
    char memory[KEY], notify[KEY];
    aclrtIpcEventHandle event;
    int value;
} Offer;

static int to_other[THREADS][2], to_owner[THREADS][2];

static void check_bytes(const unsigned char *bytes, int value)
{
    for (int i = 0; i < BYTES; i += 511) {
        CHECK(bytes[i] == value);
    }
}

static void *own(void *argument)
{
    const int number = (int)(intptr_t)argument;
    unsigned char *host = malloc(BYTES);
    aclrtStream stream;
    aclrtNotify answered;
    aclrtEvent written;
    Offer offer;
    char done = 0;
    CHECK(aclrtSetDevice(0) == 0 && aclrtCreateStream(&stream) == 0 && aclrtCreateNotify(&answered, 0) == 0);
    memset(&offer, 0, sizeof offer);
    CHECK(aclrtNotifyGetExportKey(answered, offer.notify, KEY, ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        void *block;
        CHECK(aclrtMalloc(&block, BYTES, ACL_MEM_MALLOC_HUGE_FIRST) == 0);
        CHECK(aclrtCreateEventExWithFlag(&written, ACL_EVENT_IPC) == 0);
        offer.value = 1 + number * ROUNDS + round;
        /* The export meets a kernel that writes. */
        CHECK(aclrtMemsetAsync(block, BYTES, offer.value, BYTES, stream) == 0);
        CHECK(aclrtRecordEvent(written, stream) == 0);
        CHECK(aclrtIpcMemGetExportKey(block, BYTES, offer.memory, KEY, ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION) == 0);
        CHECK(aclrtIpcGetEventHandle(written, &offer.event) == 0);
        CHECK(write(to_other[number][1], &offer, sizeof offer) == sizeof offer);
        CHECK(aclrtWaitAndResetNotify(answered, stream, 0) == 0);
        CHECK(aclrtMemcpyAsync(host, BYTES, block, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, stream) == 0);
        CHECK(aclrtSynchronizeStream(stream) == 0);
        check_bytes(host, offer.value + 100);
        CHECK(read(to_owner[number][0], &done, 1) == 1);
        CHECK(aclrtIpcMemClose(offer.memory) == 0 && aclrtFree(block) == 0 && aclrtDestroyEvent(written) == 0);
    }
    CHECK(aclrtDestroyNotify(answered) == 0 && aclrtDestroyStream(stream) == 0);
    free(host);
    return NULL;
}

static void *use(void *argument)
{
    const int number = (int)(intptr_t)argument;
    unsigned char *host = malloc(BYTES);
    aclrtStream stream;
    aclrtNotify answer = NULL;
    Offer offer;
    CHECK(aclrtSetDevice(1) == 0 && aclrtCreateStream(&stream) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        void *block;
        aclrtEvent written;
        CHECK(read(to_other[number][0], &offer, sizeof offer) == sizeof offer);
        if (answer == NULL) {
            CHECK(aclrtNotifyImportByKey(&answer, offer.notify, 0) == 0);
        }
        CHECK(aclrtIpcMemImportByKey(&block, offer.memory, ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS) == 0);
        CHECK(aclrtIpcOpenEventHandle(offer.event, &written) == 0);
        CHECK(aclrtStreamWaitEvent(stream, written) == 0);
        CHECK(aclrtMemcpyAsync(host, BYTES, block, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, stream) == 0);
        CHECK(aclrtSynchronizeStream(stream) == 0);
        check_bytes(host, offer.value);
        CHECK(aclrtMemsetAsync(block, BYTES, offer.value + 100, BYTES, stream) == 0);
        CHECK(aclrtRecordNotify(answer, stream) == 0);
        CHECK(aclrtSynchronizeStream(stream) == 0);
        CHECK(aclrtDestroyEvent(written) == 0 && aclrtIpcMemClose(offer.memory) == 0);
        CHECK(write(to_owner[number][1], "d", 1) == 1);
    }
    CHECK(aclrtDestroyNotify(answer) == 0 && aclrtDestroyStream(stream) == 0);
    free(host);
    return NULL;
}

static void run(void *(*work)(void *))
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
}

int main(void)
{
    setenv("UNDERSTUDY_DEVICES", "2", 1); /* read when the libraries are loaded: by the processes that main starts */
    if (getenv("STARTED") == NULL) {
        setenv("STARTED", "1", 1);
        execl("/proc/self/exe", "ascend_ipc", (char *)NULL);
        return 1;
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pipe(to_other[i]) == 0 && pipe(to_owner[i]) == 0);
    }
    pid_t other = fork(); /* before anything is used */
    CHECK(other >= 0);
    run(other == 0 ? use : own);
    if (other != 0) {
        int status = 0;
        CHECK(waitpid(other, &status, 0) == other && status == 0);
        puts("ok");
    }
    return 0;
}
