/* One thread begins, or ends, the capture of a stream that another one gives work to or destroys. The work is a part of the
 * model, or it is done; which of both, only the order decides. Prints "ok". */
#include "halts.h"

#include <acl/acl.h>
#include <acl/acl_rt_memory_soma.h>
#include <hccl/hccl.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 2000, BYTES = 1 << 20 };

static aclrtContext context;
static aclrtStream stream, other_stream;
static aclrtEvent event;
static aclmdlRI model;

static void nothing(void)
{
}

static void begin(void)
{
    CHECK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED) == ACL_SUCCESS);
}

static void end(void)
{
    CHECK(aclmdlRICaptureEnd(stream, &model) == ACL_SUCCESS);
}

/* When a call that cannot be captured was made in it and refused, the capture fails. */
static void end_after(aclError status)
{
    CHECK((aclmdlRICaptureEnd(stream, &model) == ACL_SUCCESS) == (status == ACL_SUCCESS));
}

static void destroy_model(void)
{
    CHECK(model == NULL || aclmdlRIDestroy(model) == ACL_SUCCESS);
    model = NULL;
}

static void record(void)
{
    CHECK(aclrtSetCurrentContext(context) == ACL_SUCCESS && aclrtRecordEvent(event, stream) == ACL_SUCCESS);
}

static void reset(void)
{
    CHECK(aclrtSetCurrentContext(context) == ACL_SUCCESS && aclrtResetEvent(event, stream) == ACL_SUCCESS);
}

static aclError status;

static void wait_for_event(void)
{
    CHECK(aclrtSetCurrentContext(context) == ACL_SUCCESS);
    status = aclrtStreamWaitEvent(stream, event);
}

static void check_stream(void)
{
    CHECK(aclrtSynchronizeStreamWithTimeout(stream, PATIENCE_MS) == ACL_SUCCESS);
    destroy_model();
}

/* A capture cannot wait for what was recorded outside. */
static void end_and_check_wait(void)
{
    end_after(status);
    check_stream();
}

static void check_wait(void)
{
    CHECK(status == ACL_SUCCESS);
    check_stream();
}

static void end_and_check_record(void)
{
    end();
    const aclError status = aclrtSynchronizeEventWithTimeout(event, PATIENCE_MS);
    CHECK(status == ACL_SUCCESS);
    destroy_model();
}

static void record_outside(void)
{
    CHECK(aclrtRecordEvent(event, other_stream) == ACL_SUCCESS);
}

static void record_in_both(void)
{
    record_outside();
    begin();
    record();
}

/* ---- what cannot be a part of a model ---- */

static int source;
static void *number;

static void set_numbers(void)
{
    source = 0;
    CHECK(aclrtMemcpy(number, sizeof source, &source, sizeof source, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
    source = 1;
}

static void copy(void)
{
    CHECK(aclrtSetCurrentContext(context) == ACL_SUCCESS);
    status = aclrtMemcpyAsync(number, sizeof source, &source, sizeof source, ACL_MEMCPY_HOST_TO_DEVICE, stream);
}

static void check_number(void)
{
    int copied = -1;
    end_after(status);
    CHECK(aclrtMemcpy(&copied, sizeof copied, number, sizeof copied, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS);
    CHECK(copied == (status == ACL_SUCCESS));
    destroy_model();
}

static aclrtMemPool pool;
static void *block;

static void take_block(void)
{
    CHECK(aclrtMemPoolMallocAsync(&block, BYTES, pool, stream) == ACL_SUCCESS);
}

static void free_block(void)
{
    CHECK(aclrtSetCurrentContext(context) == ACL_SUCCESS);
    status = aclrtMemPoolFreeAsync(block, stream);
}

static void check_block(void)
{
    uint64_t left = 1;
    end_after(status);
    CHECK(status == ACL_SUCCESS || aclrtMemPoolFreeAsync(block, stream) == ACL_SUCCESS);
    CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS && aclrtMemPoolTrimTo(pool, 0) == ACL_SUCCESS);
    CHECK(aclrtMemPoolGetAttr(pool, ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT, &left) == ACL_SUCCESS && left == 0);
    destroy_model();
}

static aclmdlRI ready_model;
static _Atomic int runs;

static void count(void *unused)
{
    (void)unused;
    runs++;
}

static void make_ready_model(void)
{
    CHECK(aclmdlRICaptureBegin(other_stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED) == ACL_SUCCESS);
    CHECK(aclrtLaunchHostFunc(other_stream, count, NULL) == ACL_SUCCESS);
    CHECK(aclmdlRICaptureEnd(other_stream, &ready_model) == ACL_SUCCESS);
}

static void forget_runs(void)
{
    runs = 0;
}

static void run_model(void)
{
    CHECK(aclrtSetCurrentContext(context) == ACL_SUCCESS);
    status = aclmdlRIExecuteAsync(ready_model, stream);
}

static void check_runs(void)
{
    end();
    CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    CHECK(runs == (status == ACL_SUCCESS));
    destroy_model();
}

/* ---- a callback that the stream waits for ---- */

static pthread_t server;
static _Atomic int serving;

static void *serve(void *unused)
{
    (void)unused;
    CHECK(aclrtSetCurrentContext(context) == ACL_SUCCESS);
    while (serving) {
        aclrtProcessReport(10);
    }
    return NULL;
}

static void start_serving(void)
{
    serving = 1;
    CHECK(pthread_create(&server, NULL, serve, NULL) == 0);
    CHECK(aclrtSubscribeReport((uint64_t)server, stream) == ACL_SUCCESS);
}

static void stop_serving(void)
{
    CHECK(aclrtUnSubscribeReport((uint64_t)server, stream) == ACL_SUCCESS);
    serving = 0;
    pthread_join(server, NULL);
}

static void call_back(void)
{
    CHECK(aclrtSetCurrentContext(context) == ACL_SUCCESS);
    CHECK(aclrtLaunchCallback(count, NULL, ACL_CALLBACK_BLOCK, stream) == ACL_SUCCESS);
}

/* A model whose capture ended before the wait came does not wait for its callback. */
static void wait_for_run(void)
{
    for (int i = 0; i < PATIENCE_MS && runs == 0; i++) {
        usleep(1000);
    }
}

/* Neither stream nor model waits for a callback of the other. */
static void run_and_check_stream(void)
{
    CHECK(aclrtSynchronizeStreamWithTimeout(stream, PATIENCE_MS) == ACL_SUCCESS);
    if (runs == 0) {
        CHECK(aclmdlRIExecuteAsync(model, stream) == ACL_SUCCESS);
    }
    check_stream();
    wait_for_run();
    CHECK(runs == 1);
}

static void end_run_and_check_stream(void)
{
    end();
    run_and_check_stream();
}

static void forget_runs_and_begin(void)
{
    forget_runs();
    begin();
}

/* ---- work that takes turns ---- */

static HcclComm communicator;
static void *sums;

static void reduce_on(aclrtStream chosen)
{
    CHECK(HcclAllReduce(number, sums, 1, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, communicator, chosen) == HCCL_SUCCESS);
}

static void reduce(void)
{
    CHECK(aclrtSetCurrentContext(context) == ACL_SUCCESS);
    reduce_on(stream);
}

/* The turn of what a model has recorded does not keep the next one waiting. */
static void check_turns(void)
{
    reduce_on(other_stream);
    CHECK(aclrtSynchronizeStreamWithTimeout(other_stream, PATIENCE_MS) == ACL_SUCCESS);
    check_stream();
}

static void end_and_check_turns(void)
{
    end();
    check_turns();
}

/* ---- a stream that ends ---- */

static aclrtStream ending;

static void make_stream(void)
{
    CHECK(aclrtCreateStream(&ending) == ACL_SUCCESS);
}

static void begin_ending(void)
{
    CHECK(aclrtSetCurrentContext(context) == ACL_SUCCESS);
    aclmdlRICaptureBegin(ending, ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
}

static void destroy_ending(void)
{
    CHECK(aclrtSetCurrentContext(context) == ACL_SUCCESS && aclrtDestroyStream(ending) == ACL_SUCCESS);
}

static void check_device_is_usable(void)
{
    CHECK(aclrtSynchronizeDevice() == ACL_SUCCESS);
}

static const Race races[] = {
    {"record-begin", nothing, record, begin, end_and_check_record},
    {"record-end", begin, record, end, check_stream},
    {"wait-begin", record_outside, wait_for_event, begin, end_and_check_wait},
    {"wait-end", record_in_both, wait_for_event, end, check_wait},
    {"reset-end", begin, reset, end, check_stream},
    {"copy-begin", set_numbers, copy, begin, check_number},
    {"free-begin", take_block, free_block, begin, check_block},
    {"model-begin", forget_runs, run_model, begin, check_runs},
    {"callback-begin", forget_runs, call_back, begin, end_run_and_check_stream},
    {"callback-end", forget_runs_and_begin, call_back, end, run_and_check_stream},
    {"turns-begin", nothing, reduce, begin, end_and_check_turns},
    {"turns-end", begin, reduce, end, check_turns},
    {"begin-destroy", make_stream, begin_ending, destroy_ending, check_device_is_usable},
    {"destroy-begin", make_stream, destroy_ending, begin_ending, check_device_is_usable},
};

int main(int argc, char **argv)
{
    int32_t device = 0;
    aclrtMemPoolProps properties = {.location = {.type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    CHECK(aclInit(NULL) == ACL_SUCCESS && aclrtSetDevice(device) == ACL_SUCCESS);
    CHECK(aclrtGetCurrentContext(&context) == ACL_SUCCESS);
    CHECK(aclrtCreateStream(&stream) == ACL_SUCCESS && aclrtCreateStream(&other_stream) == ACL_SUCCESS);
    CHECK(aclrtCreateEvent(&event) == ACL_SUCCESS && aclrtMemPoolCreate(&pool, &properties) == ACL_SUCCESS);
    CHECK(aclrtMalloc(&number, 64, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    CHECK(aclrtMalloc(&sums, 64, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    CHECK(HcclCommInitAll(1, &device, &communicator) == HCCL_SUCCESS);
    make_ready_model();
    start_serving();
    try_all_orders_of(races, sizeof races / sizeof races[0], argc > 1 ? argv[1] : NULL);
    stop_serving();
    printf("ok\n");
    return 0;
}
