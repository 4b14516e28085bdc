/* Many threads on one device: streams of all sorts, events across streams, queued memory, host functions, wrong calls.
 * Public API only. Prints "ok". */
#include "../check.h"

#include <mc_runtime.h>

#include <pthread.h>
#include <stdint.h>

enum { THREADS = 4, ROUNDS = 60, BYTES = 999 };

static mcEvent_t shared_event;

static void count(void *argument)
{
    ++*(int *)argument;
}

static void check_bytes(const unsigned char *bytes, int value)
{
    for (int i = 0; i < BYTES; i++) {
        CHECK(bytes[i] == value);
    }
}

/* Memory that lives between two places of a stream, and its content on the way through. */
static void queued_memory(mcStream_t stream, unsigned char *pinned, int value)
{
    void *memory = NULL;
    int calls = 0;
    CHECK(mcMallocAsync(&memory, BYTES, stream) == mcSuccess);
    CHECK(mcMemsetAsync(memory, value, BYTES, stream) == mcSuccess);
    CHECK(mcLaunchHostFunc(stream, count, &calls) == mcSuccess);
    CHECK(mcMemcpyAsync(pinned, memory, BYTES, mcMemcpyDeviceToHost, stream) == mcSuccess);
    CHECK(mcFreeAsync(memory, stream) == mcSuccess);
    CHECK(mcStreamSynchronize(stream) == mcSuccess);
    CHECK(calls == 1);
    check_bytes(pinned, value);
}

/* One stream writes, another reads behind an event. */
static void two_streams(mcStream_t writer, mcStream_t reader, void *memory, unsigned char *pinned, int value)
{
    mcEvent_t written;
    CHECK(mcEventCreateWithFlags(&written, mcEventDisableTiming) == mcSuccess);
    CHECK(mcMemsetAsync(memory, value, BYTES, writer) == mcSuccess);
    CHECK(mcEventRecord(written, writer) == mcSuccess);
    CHECK(mcStreamWaitEvent(reader, written, 0) == mcSuccess);
    CHECK(mcMemcpyAsync(pinned, memory, BYTES, mcMemcpyDeviceToHost, reader) == mcSuccess);
    CHECK(mcEventDestroy(written) == mcSuccess);
    CHECK(mcStreamSynchronize(reader) == mcSuccess);
    check_bytes(pinned, value);
}

static void shared_things(mcStream_t stream)
{
    float milliseconds = 0.0f;
    CHECK(mcEventRecord(shared_event, stream) == mcSuccess);
    CHECK(mcStreamWaitEvent(mcStreamPerThread, shared_event, 0) == mcSuccess);
    mcError_t error = mcEventElapsedTime(&milliseconds, shared_event, shared_event);
    CHECK(error == mcSuccess || error == mcErrorNotReady);
    error = mcStreamQuery(NULL);
    CHECK(error == mcSuccess || error == mcErrorNotReady);
}

static void wrong_calls(void *memory)
{
    mcGetLastError();
    CHECK(mcMemset(memory, 0, BYTES + 1) == mcErrorInvalidValue);
    CHECK(mcFree((char *)memory + 1) == mcErrorInvalidValue);
    CHECK(mcEventQuery((mcEvent_t)memory) == mcErrorInvalidResourceHandle);
    CHECK(mcGetLastError() == mcErrorInvalidResourceHandle && mcGetLastError() == mcSuccess);
}

static void *work(void *argument)
{
    int seed = (int)(intptr_t)argument;
    void *memory = NULL;
    void *pinned = NULL;
    CHECK(mcMalloc(&memory, BYTES) == mcSuccess);
    CHECK(mcMallocHost(&pinned, BYTES, mcMallocHostDefault) == mcSuccess);
    for (int round = 0; round < ROUNDS; round++) {
        int value = (seed * ROUNDS + round) % 256;
        unsigned char ordinary[BYTES];
        mcStream_t blocking, free_running;
        CHECK(mcStreamCreate(&blocking) == mcSuccess);
        CHECK(mcStreamCreateWithFlags(&free_running, mcStreamNonBlocking) == mcSuccess);
        queued_memory(round % 2 == 0 ? blocking : free_running, (unsigned char *)pinned, value);
        queued_memory(mcStreamPerThread, (unsigned char *)pinned, value ^ 1);
        two_streams(blocking, free_running, memory, (unsigned char *)pinned, value ^ 2);
        two_streams(free_running, NULL, memory, (unsigned char *)pinned, value ^ 3);
        shared_things(blocking);
        memset(ordinary, value, sizeof ordinary);
        CHECK(mcMemcpyAsync(memory, ordinary, BYTES, mcMemcpyHostToDevice, blocking) == mcSuccess);
        memset(ordinary, 0, sizeof ordinary);
        CHECK(mcMemcpy(ordinary, memory, BYTES, mcMemcpyDeviceToHost) == mcSuccess);
        check_bytes(ordinary, value);
        wrong_calls(memory);
        CHECK(mcStreamDestroy(blocking) == mcSuccess);
        CHECK(mcStreamDestroy(free_running) == mcSuccess);
    }
    CHECK(mcFree(memory) == mcSuccess);
    CHECK(mcFreeHost(pinned) == mcSuccess);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    CHECK(mcEventCreate(&shared_event) == mcSuccess);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(mcDeviceSynchronize() == mcSuccess);
    CHECK(mcEventDestroy(shared_event) == mcSuccess);
    CHECK(mcDeviceReset() == mcSuccess);
    printf("ok\n");
    return 0;
}
