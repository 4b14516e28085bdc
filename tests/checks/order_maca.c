/* What ends in a stream's order, or with its device; vendor API only. The first argument is what main does. */
#include "../check.h"

#include "mcr/mc_runtime_api.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 4096 };

static mcStream_t first, second;

/* The free comes behind the fill, or nothing orders the two: then the fill may fail, and nobody waits for it. */
static void free_in_order(int is_ordered)
{
    void *block;
    CHECK(mcMallocAsync(&block, BYTES, first) == mcSuccess && mcStreamSynchronize(first) == mcSuccess);
    CHECK(mcMemsetAsync(block, 1, BYTES, is_ordered ? first : second) == mcSuccess);
    CHECK(mcFreeAsync(block, first) == mcSuccess);
    if (!is_ordered) {
        puts("done");
        fflush(stdout);
        _exit(0);
    }
    CHECK(mcDeviceSynchronize() == mcSuccess);
}

/* What is allocated in a stream's order is another stream's once that waits for it. */
static void allocate_in_order(int is_ordered)
{
    void *block;
    mcEvent_t allocated;
    CHECK(mcEventCreate(&allocated) == mcSuccess && mcMallocAsync(&block, BYTES, first) == mcSuccess);
    if (is_ordered) {
        CHECK(mcEventRecord(allocated, first) == mcSuccess && mcStreamWaitEvent(second, allocated, 0) == mcSuccess);
    }
    CHECK(mcMemsetAsync(block, 1, BYTES, second) == mcSuccess && mcDeviceSynchronize() == mcSuccess);
    CHECK(mcFree(block) == mcSuccess && mcEventDestroy(allocated) == mcSuccess);
}

static mcGraphExec_t record_fill(void *block)
{
    mcGraph_t graph;
    mcGraphExec_t run;
    CHECK(mcStreamBeginCapture(first, mcStreamCaptureModeGlobal) == mcSuccess);
    CHECK(mcMemsetAsync(block, 1, BYTES, first) == mcSuccess);
    CHECK(mcStreamEndCapture(first, &graph) == mcSuccess);
    CHECK(mcGraphInstantiate(&run, graph, NULL, NULL, 0) == mcSuccess && mcGraphDestroy(graph) == mcSuccess);
    return run;
}

/* Launches of one graph come one after the other, on whichever streams; those of two do not. */
static void launch_twice(int is_one)
{
    void *block;
    CHECK(mcMalloc(&block, BYTES) == mcSuccess);
    mcGraphExec_t runs[2] = {record_fill(block), record_fill(block)};
    CHECK(mcGraphLaunch(runs[0], first) == mcSuccess && mcGraphLaunch(runs[is_one ? 0 : 1], second) == mcSuccess);
    CHECK(mcDeviceSynchronize() == mcSuccess);
    CHECK(mcGraphExecDestroy(runs[0]) == mcSuccess && mcGraphExecDestroy(runs[1]) == mcSuccess);
    CHECK(mcFree(block) == mcSuccess);
}

/* Two branches of one graph that fill the same bytes; the second waits for the first at its end, or only at its beginning. */
static void branch(int is_ordered)
{
    void *block;
    mcEvent_t fork, join;
    mcGraph_t graph;
    mcGraphExec_t run;
    CHECK(mcMalloc(&block, BYTES) == mcSuccess && mcEventCreate(&fork) == mcSuccess && mcEventCreate(&join) == mcSuccess);
    CHECK(mcStreamBeginCapture(first, mcStreamCaptureModeGlobal) == mcSuccess);
    if (!is_ordered) {
        CHECK(mcEventRecord(fork, first) == mcSuccess && mcStreamWaitEvent(second, fork, 0) == mcSuccess);
    }
    CHECK(mcMemsetAsync(block, 1, BYTES, first) == mcSuccess);
    if (is_ordered) {
        CHECK(mcEventRecord(fork, first) == mcSuccess && mcStreamWaitEvent(second, fork, 0) == mcSuccess);
    }
    CHECK(mcMemsetAsync(block, 2, BYTES / 2, second) == mcSuccess);
    CHECK(mcEventRecord(join, second) == mcSuccess && mcStreamWaitEvent(first, join, 0) == mcSuccess);
    CHECK(mcMemsetAsync(block, 3, BYTES, first) == mcSuccess);
    CHECK(mcStreamEndCapture(first, &graph) == mcSuccess);
    CHECK(mcGraphInstantiate(&run, graph, NULL, NULL, 0) == mcSuccess);
    for (int k = 0; k < 2; k++) { /* told once */
        CHECK(mcGraphLaunch(run, first) == mcSuccess && mcStreamSynchronize(first) == mcSuccess);
    }
    CHECK(mcGraphExecDestroy(run) == mcSuccess && mcGraphDestroy(graph) == mcSuccess);
    CHECK(mcEventDestroy(fork) == mcSuccess && mcEventDestroy(join) == mcSuccess && mcFree(block) == mcSuccess);
}

static atomic_bool gate_is_open;

static void wait_at_gate(void *unused)
{
    (void)unused;
    while (!atomic_load(&gate_is_open)) {
        usleep(100);
    }
}

/* Two streams fill the same bytes, and neither waits for the other: not by the default stream's wait for the first, which that
 * begins while it still works, and not by a question to the default stream, which arranges nothing. */
static void fill_beside_default_stream(int is_asked)
{
    mcStream_t blocking, other = second;
    void *block, *apart;
    CHECK(mcMalloc(&block, BYTES) == mcSuccess && mcMalloc(&apart, BYTES) == mcSuccess);
    CHECK(mcStreamCreate(&blocking) == mcSuccess && (!is_asked || mcStreamCreate(&other) == mcSuccess));
    if (is_asked) {
        CHECK(mcMemsetAsync(apart, 1, BYTES, NULL) == mcSuccess); /* the other stream is going to wait for that */
    }
    CHECK(mcLaunchHostFunc(blocking, wait_at_gate, NULL) == mcSuccess);
    CHECK(mcMemsetAsync(block, 1, BYTES, blocking) == mcSuccess);
    if (!is_asked) {
        CHECK(mcMemsetAsync(apart, 1, BYTES, NULL) == mcSuccess);
    }
    CHECK(mcStreamQuery(NULL) == mcErrorNotReady); /* a deferred stream runs from now on */
    usleep(20000);
    CHECK(mcMemsetAsync(block, 2, BYTES, other) == mcSuccess);
    atomic_store(&gate_is_open, true);
    CHECK(mcDeviceSynchronize() == mcSuccess && mcStreamDestroy(blocking) == mcSuccess);
    CHECK(!is_asked || mcStreamDestroy(other) == mcSuccess);
    CHECK(mcFree(block) == mcSuccess && mcFree(apart) == mcSuccess);
}

/* Neither the thread's stream nor an event that ended with its device can be destroyed. */
static void leave_what_cannot_be_destroyed(void)
{
    mcEvent_t event;
    CHECK(mcMemsetAsync(NULL, 0, 0, mcStreamPerThread) == mcSuccess && mcStreamSynchronize(mcStreamPerThread) == mcSuccess);
    CHECK(mcEventCreate(&event) == mcSuccess && mcDeviceReset() == mcSuccess);
    CHECK(mcEventDestroy(event) == mcErrorInvalidResourceHandle);
}

int main(int count, char **arguments)
{
    CHECK(count == 2);
    const char *what = arguments[1];
    CHECK(mcStreamCreateWithFlags(&first, mcStreamNonBlocking) == mcSuccess);
    CHECK(mcStreamCreateWithFlags(&second, mcStreamNonBlocking) == mcSuccess);
    if (strstr(what, "free") != NULL) {
        free_in_order(strcmp(what, "free") == 0);
    } else if (strstr(what, "allocation") != NULL) {
        allocate_in_order(strcmp(what, "allocation") == 0);
    } else if (strstr(what, "launch") != NULL) {
        launch_twice(strcmp(what, "launch") == 0);
    } else if (strstr(what, "branches") != NULL) {
        branch(strcmp(what, "branches") == 0);
    } else if (strstr(what, "default") != NULL) {
        fill_beside_default_stream(strcmp(what, "default-asked") == 0);
    }
    CHECK(mcStreamDestroy(first) == mcSuccess && mcStreamDestroy(second) == mcSuccess);
    if (strcmp(what, "reset") == 0) {
        leave_what_cannot_be_destroyed();
    }
    puts("done");
    return 0;
}
