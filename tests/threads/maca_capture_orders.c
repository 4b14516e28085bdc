/* One thread begins, or ends, the capture of a stream that another one gives work to or destroys. The work is a part of the
 * graph, or it is done; which of both, only the order decides. Prints "ok". */
#include "halts.h"

#include <mc_runtime.h>
#include <mcblas/mcblas.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 100 };

static mcStream_t stream;
static mcEvent_t event;
static mcGraph_t graph;
static mcblasHandle_t blas;
static float *ones;
static int *number;

static void nothing(void)
{
}

static void begin(void)
{
    CHECK(mcStreamBeginCapture(stream, mcStreamCaptureModeRelaxed) == mcSuccess);
}

static void end(void)
{
    CHECK(mcStreamEndCapture(stream, &graph) == mcSuccess);
}

static void record(void)
{
    CHECK(mcEventRecord(event, stream) == mcSuccess);
}

static void check_record_is_made(void)
{
    for (int i = 0; i < 2000 && mcEventQuery(event) == mcErrorNotReady; i++) {
        usleep(1000);
    }
    CHECK(mcEventQuery(event) == mcSuccess); /* also of an event that has only been captured */
    CHECK(mcGraphDestroy(graph) == mcSuccess);
}

static void end_and_check_record(void)
{
    end();
    check_record_is_made();
}

static void begin_with_record(void)
{
    begin();
    record();
}

static void wait_for_event(void)
{
    CHECK(mcStreamWaitEvent(stream, event, mcEventWaitDefault) == mcSuccess);
}

/* ---- what cannot be a part of a graph ---- */

static mcblasStatus_t dot_status;
static float dot;

static void forget_dot(void)
{
    dot = -1;
}

static void multiply(void)
{
    dot_status = mcblasSdot(blas, COUNT, ones, 1, ones, 1, &dot);
}

static void check_dot(void)
{
    CHECK(dot_status == MCBLAS_STATUS_SUCCESS ? dot == COUNT : dot == -1);
    end();
    CHECK(mcGraphDestroy(graph) == mcSuccess);
}

static void *block;
static size_t room;
static mcError_t free_status;

static size_t free_bytes(void)
{
    size_t free = 0, total = 0;
    CHECK(mcMemGetInfo(&free, &total) == mcSuccess);
    return free;
}

static void take_block(void)
{
    room = free_bytes();
    CHECK(mcMalloc(&block, 1 << 20) == mcSuccess);
}

static void free_block(void)
{
    free_status = mcFreeAsync(block, stream);
}

static void check_block(void)
{
    const mcError_t status = mcStreamEndCapture(stream, &graph); /* a free that is refused spoils it */
    CHECK(status == (free_status == mcSuccess ? mcSuccess : mcErrorStreamCaptureInvalidated));
    CHECK(mcStreamSynchronize(stream) == mcSuccess);
    CHECK(free_status == mcSuccess || mcFree(block) == mcSuccess);
    CHECK(free_bytes() == room);
    CHECK(graph == NULL || mcGraphDestroy(graph) == mcSuccess);
}

/* ---- a copy of ordinary memory: read at the call, or when the graph runs ---- */

static int source;

static void set_numbers(void)
{
    source = 0;
    CHECK(mcMemcpy(number, &source, sizeof source, mcMemcpyHostToDevice) == mcSuccess);
    source = 1;
}

static void copy(void)
{
    CHECK(mcMemcpyAsync(number, &source, sizeof source, mcMemcpyHostToDevice, stream) == mcSuccess);
}

static void launch_graph(void)
{
    mcGraphExec_t exec;
    CHECK(mcGraphInstantiate(&exec, graph, NULL, NULL, 0) == mcSuccess);
    CHECK(mcGraphLaunch(exec, stream) == mcSuccess && mcStreamSynchronize(stream) == mcSuccess);
    CHECK(mcGraphExecDestroy(exec) == mcSuccess);
}

static void check_number(void)
{
    size_t nodes = 0;
    int copied = -1;
    CHECK(mcGraphGetNodes(graph, NULL, &nodes) == mcSuccess);
    CHECK(mcStreamSynchronize(stream) == mcSuccess);
    source = 2;
    if (nodes > 0) {
        launch_graph();
    }
    CHECK(mcMemcpy(&copied, number, sizeof copied, mcMemcpyDeviceToHost) == mcSuccess);
    CHECK(copied == (nodes > 0 ? 2 : 1));
    CHECK(mcGraphDestroy(graph) == mcSuccess);
}

static void end_and_check_number(void)
{
    end();
    check_number();
}

static void set_numbers_and_begin(void)
{
    set_numbers();
    begin();
}

/* ---- a stream that ends ---- */

static mcStream_t ending;

static void make_stream(void)
{
    CHECK(mcStreamCreateWithFlags(&ending, mcStreamNonBlocking) == mcSuccess);
}

static void begin_ending(void)
{
    mcStreamBeginCapture(ending, mcStreamCaptureModeRelaxed);
}

static void destroy_ending(void)
{
    CHECK(mcStreamDestroy(ending) == mcSuccess);
}

static void check_device_is_usable(void)
{
    CHECK(mcDeviceSynchronize() == mcSuccess);
}

static const Race races[] = {
    {"record-begin", nothing, record, begin, end_and_check_record},
    {"record-end", begin, record, end, check_record_is_made},
    {"wait-end", begin_with_record, wait_for_event, end, check_record_is_made},
    {"result-begin", forget_dot, multiply, begin, check_dot},
    {"free-begin", take_block, free_block, begin, check_block},
    {"copy-begin", set_numbers, copy, begin, end_and_check_number},
    {"copy-end", set_numbers_and_begin, copy, end, check_number},
    {"begin-destroy", make_stream, begin_ending, destroy_ending, check_device_is_usable},
    {"destroy-begin", make_stream, destroy_ending, begin_ending, check_device_is_usable},
};

int main(int argc, char **argv)
{
    float host[COUNT];
    for (int i = 0; i < COUNT; i++) {
        host[i] = 1;
    }
    CHECK(mcStreamCreateWithFlags(&stream, mcStreamNonBlocking) == mcSuccess && mcEventCreate(&event) == mcSuccess);
    CHECK(mcblasCreate(&blas) == MCBLAS_STATUS_SUCCESS && mcblasSetStream(blas, stream) == MCBLAS_STATUS_SUCCESS);
    CHECK(mcMalloc((void **)&ones, sizeof host) == mcSuccess && mcMalloc((void **)&number, sizeof *number) == mcSuccess);
    CHECK(mcMemcpy(ones, host, sizeof host, mcMemcpyHostToDevice) == mcSuccess);
    try_all_orders_of(races, sizeof races / sizeof races[0], argc > 1 ? argv[1] : NULL);
    printf("ok\n");
    return 0;
}
