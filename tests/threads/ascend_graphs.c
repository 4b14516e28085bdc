/* Many threads capture, launch and destroy models at once; one model, its event and a stream are everybody's. Prints "ok". */
#include "../check.h"

#include <acl/acl.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 12, BYTES = 256 };

static aclmdlRI shared_model;
static void *shared_bytes;
static aclrtEvent released; /* recorded by every shared run */
static aclrtStream shared_stream;
static _Atomic int notes;

static void note(void *argument)
{
    (void)argument;
    notes++;
}

static void *allocate(void)
{
    void *bytes = NULL;
    CHECK(aclrtMalloc(&bytes, BYTES, ACL_MEM_MALLOC_HUGE_FIRST) == 0);
    return bytes;
}

/* Two streams joined by events; the second fills, the first copies. */
static aclmdlRI capture(aclrtStream first, aclrtStream second, aclrtEvent fork, aclrtEvent join, void *from, void *to,
                        int value)
{
    aclmdlRI model = NULL;
    CHECK(aclmdlRICaptureBegin(first, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL) == 0);
    CHECK(aclrtRecordEvent(fork, first) == 0);
    CHECK(aclrtStreamWaitEvent(second, fork) == 0);
    CHECK(aclrtMemsetAsync(from, BYTES, value, BYTES, second) == 0);
    CHECK(aclrtLaunchHostFunc(second, note, NULL) == 0);
    CHECK(aclrtRecordEvent(join, second) == 0);
    CHECK(aclrtStreamWaitEvent(first, join) == 0);
    CHECK(aclrtMemcpyAsync(to, BYTES, from, BYTES, ACL_MEMCPY_DEVICE_TO_DEVICE, first) == 0);
    CHECK(aclmdlRICaptureEnd(first, &model) == 0);
    return model;
}

static void *work(void *argument)
{
    const int number = (int)(intptr_t)argument;
    aclrtStream first, second;
    aclrtEvent fork, join;
    CHECK(aclrtSetDevice(0) == 0);
    CHECK(aclrtCreateStream(&first) == 0 && aclrtCreateStream(&second) == 0);
    CHECK(aclrtCreateEventExWithFlag(&fork, ACL_EVENT_SYNC) == 0);
    CHECK(aclrtCreateEventExWithFlag(&join, ACL_EVENT_SYNC) == 0);
    void *from = allocate(), *to = allocate();
    for (int round = 0; round < ROUNDS; round++) {
        const int value = (number * ROUNDS + round) & 0x7f;
        unsigned char host[BYTES];
        aclmdlRI model = capture(first, second, fork, join, from, to, value);
        for (int run = 0; run < 3; run++) {
            CHECK(aclmdlRIExecuteAsync(model, run % 2 == 0 ? first : second) == 0);
            CHECK(aclmdlRIExecuteAsync(shared_model, second) == 0);
            CHECK(aclmdlRIExecuteAsync(shared_model, shared_stream) == 0);
            CHECK(aclrtStreamWaitEvent(first, released) == 0);
        }
        CHECK(aclrtSynchronizeStream(first) == 0 && aclrtSynchronizeStream(second) == 0);
        CHECK(aclrtMemcpy(host, BYTES, to, BYTES, ACL_MEMCPY_DEVICE_TO_HOST) == 0);
        CHECK(host[0] == value && host[BYTES - 1] == value);
        CHECK(aclmdlRIDestroy(model) == 0);
        /* A capture that fails, and one whose stream ends meanwhile. */
        aclrtStream lost;
        aclmdlRI none = NULL;
        CHECK(aclrtCreateStream(&lost) == 0);
        CHECK(aclmdlRICaptureBegin(first, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL) == 0);
        CHECK(aclrtRecordEvent(fork, first) == 0);
        CHECK(aclrtStreamWaitEvent(lost, fork) == 0);
        CHECK(aclrtDestroyStream(lost) == 0);
        CHECK(aclmdlRICaptureEnd(first, &none) != 0 && none == NULL);
    }
    CHECK(aclrtFree(from) == 0 && aclrtFree(to) == 0);
    CHECK(aclrtDestroyEvent(fork) == 0 && aclrtDestroyEvent(join) == 0);
    CHECK(aclrtDestroyStream(first) == 0 && aclrtDestroyStream(second) == 0);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    aclrtStream stream;
    CHECK(aclInit(NULL) == 0 && aclrtSetDevice(0) == 0);
    CHECK(aclrtCreateStream(&stream) == 0 && aclrtCreateStream(&shared_stream) == 0);
    CHECK(aclrtCreateEventExWithFlag(&released, ACL_EVENT_SYNC) == 0);
    shared_bytes = allocate();
    CHECK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) == 0);
    CHECK(aclrtMemsetAsync(shared_bytes, BYTES, 1, BYTES, stream) == 0);
    CHECK(aclrtValueWrite(shared_bytes, 7, 0, stream) == 0);
    CHECK(aclrtValueWait(shared_bytes, 7, 1, stream) == 0);
    CHECK(aclrtRecordEventWithFlag(released, stream, ACL_EVENT_RECORD_EXTERNAL) == 0);
    CHECK(aclmdlRICaptureEnd(stream, &shared_model) == 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(notes == THREADS * ROUNDS * 3);
    CHECK(aclrtSynchronizeStream(shared_stream) == 0);
    CHECK(aclmdlRIDestroy(shared_model) == 0 && aclrtFree(shared_bytes) == 0);
    puts("ok");
    return 0;
}
