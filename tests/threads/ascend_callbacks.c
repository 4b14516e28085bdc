/* Two threads serve a stream's callbacks and host functions, as programs of the vendor's users do; work is stopped while
 * other threads give more. */
#include "acl/acl.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 3, TURNS = 20 };

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        int status_ = (call);                                                                                          \
        if (status_ != 0) {                                                                                            \
            fprintf(stderr, "line %d: %d\n", __LINE__, status_);                                                       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static atomic_int begun, ended, told, ran;
static atomic_bool stopping;

static void on_stream(aclrtStream stream, aclrtStreamState state, void *arguments)
{
    (void)stream;
    (void)arguments;
    atomic_fetch_add(state == ACL_RT_STREAM_STATE_CREATE_POST ? &begun : &ended, 1);
}

static void on_exception(aclrtExceptionInfo *info)
{
    if (aclrtGetErrorCodeFromExceptionInfo(info) != 0 && aclrtGetDeviceIdFromExceptionInfo(info) == 0) {
        atomic_fetch_add(&told, 1);
    }
}

static void count(void *arguments)
{
    (void)arguments;
    atomic_fetch_add(&ran, 1);
}

static void *serve(void *process)
{
    OK(aclrtSetDevice(0));
    while (!atomic_load(&stopping)) {
        ((aclError(*)(int32_t))process)(100);
    }
    OK(aclrtResetDevice(0));
    return NULL;
}

/* Callbacks and host functions on one stream, by two threads. */
static void be_served(void)
{
    pthread_t reports, functions;
    aclrtStream stream;
    OK(aclrtCreateStream(&stream));
    pthread_create(&reports, NULL, serve, (void *)aclrtProcessReport);
    pthread_create(&functions, NULL, serve, (void *)aclrtProcessHostFunc);
    OK(aclrtSubscribeReport((uint64_t)reports, stream));
    OK(aclrtSubscribeHostFunc((uint64_t)functions, stream));
    for (int i = 0; i < TURNS; i++) {
        OK(aclrtLaunchCallback(count, NULL, ACL_CALLBACK_BLOCK, stream));
        OK(aclrtLaunchHostFunc(stream, count, NULL));
    }
    OK(aclrtSynchronizeStream(stream));
    atomic_store(&stopping, true);
    OK(aclrtUnSubscribeReport((uint64_t)reports, stream));
    OK(aclrtUnSubscribeHostFunc((uint64_t)functions, stream));
    pthread_join(reports, NULL);
    pthread_join(functions, NULL);
    OK(aclrtDestroyStream(stream));
}

/* Gives work that never ends by itself, for another thread to stop. */
static void *work(void *argument)
{
    (void)argument;
    OK(aclrtSetDevice(0));
    aclrtStream stream;
    aclrtEvent never;
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateEventWithFlag(&never, ACL_EVENT_SYNC));
    for (int i = 0; i < TURNS; i++) {
        aclError status = aclrtStreamWaitEvent(stream, never);
        if (status != 0 && status != 107022) {
            fprintf(stderr, "wait: %d\n", status);
            exit(1);
        }
        if (i % 2 == 0) {
            OK(aclrtStreamStop(stream));
        }
        OK(aclrtStreamAbort(stream));
    }
    OK(aclrtDestroyStreamForce(stream));
    OK(aclrtDestroyEvent(never));
    OK(aclrtResetDevice(0));
    return NULL;
}

static void stop_each_other(void)
{
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) {
        pthread_create(&threads[t], NULL, work, NULL);
    }
    for (int i = 0; i < TURNS; i++) {
        OK(aclrtDeviceTaskAbort(0, 0));
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
}

static void fail_once(void)
{
    aclrtStream stream;
    char *memory;
    OK(aclrtCreateStream(&stream));
    OK(aclrtMalloc((void **)&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtExceptionInfoCallbackRegister(on_exception));
    OK(aclrtValueWrite(memory + 4096, 1, 0, stream));
    if (aclrtSynchronizeStream(stream) == 0) {
        exit(2);
    }
    OK(aclrtExceptionInfoCallbackUnregister(on_exception));
    OK(aclrtFree(memory));
    OK(aclrtDestroyStream(stream));
}

int main(void)
{
    OK(aclInit(NULL));
    OK(aclrtRegStreamStateCallback("here", on_stream, NULL));
    OK(aclrtSetDevice(0));
    be_served();
    stop_each_other();
    fail_once();
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    if (atomic_load(&ran) != 2 * TURNS || atomic_load(&told) != 1 || atomic_load(&begun) != atomic_load(&ended)) {
        fprintf(stderr, "ran %d, told %d, begun %d, ended %d\n", ran, told, begun, ended);
        return 3;
    }
    puts("ok");
    return 0;
}
