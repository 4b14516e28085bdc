/* One thread captures a stream again and again, while another gives it copies, events and operations that take turns, and waits
 * for them; one begins captures of streams that another destroys. Prints "ok". */
#include "meeting.h"

#include <acl/acl.h>
#include <hccl/hccl.h>

#include <stdbool.h>

enum { ROUNDS = 20000, CAPTURES = 4000, STREAMS = 20000 };

static aclrtContext context;
static aclrtStream stream;
static atomic_bool over;
static aclmdlRI models[CAPTURES]; /* kept: what is in one by mistake does not come to an end by the model's end */

static void *capture(void *unused)
{
    (void)unused;
    CHECK(aclrtSetCurrentContext(context) == ACL_SUCCESS);
    for (int i = 0; i < CAPTURES && !atomic_load(&over); i++) {
        CHECK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED) == ACL_SUCCESS);
        aclmdlRICaptureEnd(stream, &models[i]); /* fails where a call that cannot be captured has spoiled the capture */
    }
    return NULL;
}

static void work(void)
{
    int32_t device = 0, set = 0, *number = NULL, *sum = NULL;
    aclrtEvent event;
    HcclComm communicator;
    CHECK(HcclCommInitAll(1, &device, &communicator) == HCCL_SUCCESS && aclrtCreateEvent(&event) == ACL_SUCCESS);
    CHECK(aclrtMalloc((void **)&number, 64, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    CHECK(aclrtMalloc((void **)&sum, 64, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    CHECK(aclrtMemcpy(number, sizeof set, &set, sizeof set, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
    for (int32_t i = 0; i < ROUNDS; i++) {
        int32_t copied = -1;
        const aclError status =
            aclrtMemcpyAsync(&copied, sizeof copied, number, sizeof copied, ACL_MEMCPY_DEVICE_TO_HOST, stream);
        CHECK(copied == (status == ACL_SUCCESS ? 0 : -1));
        CHECK(HcclAllReduce(number, sum, 1, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, communicator, stream) == HCCL_SUCCESS);
        if (aclrtRecordEvent(event, stream) == ACL_SUCCESS) {
            aclrtSynchronizeEvent(event); /* comes back, whatever it says */
        }
    }
    CHECK(HcclCommDestroy(communicator) == HCCL_SUCCESS && aclrtDestroyEvent(event) == ACL_SUCCESS);
    CHECK(aclrtFree(number) == ACL_SUCCESS && aclrtFree(sum) == ACL_SUCCESS);
}

static void work_while_captured(void)
{
    pthread_t thread;
    CHECK(aclrtCreateStream(&stream) == ACL_SUCCESS);
    CHECK(pthread_create(&thread, NULL, capture, NULL) == 0);
    work();
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    for (int i = 0; i < CAPTURES; i++) {
        CHECK(models[i] == NULL || aclmdlRIDestroy(models[i]) == ACL_SUCCESS);
    }
    CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
}

static _Atomic(aclrtStream) ending;

static void *capture_what_ends(void *unused)
{
    (void)unused;
    CHECK(aclrtSetCurrentContext(context) == ACL_SUCCESS);
    for (int i = 1; i <= STREAMS; i++) {
        aclmdlRI model;
        wait_for_round(i);
        aclrtStream found = atomic_load(&ending);
        aclmdlRICaptureBegin(found, ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
        if (aclmdlRICaptureEnd(found, &model) == ACL_SUCCESS) {
            CHECK(aclmdlRIDestroy(model) == ACL_SUCCESS);
        }
        end_round(i);
    }
    return NULL;
}

static void end_what_is_captured(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, capture_what_ends, NULL) == 0);
    for (int i = 1; i <= STREAMS; i++) {
        aclrtStream made;
        CHECK(aclrtCreateStream(&made) == ACL_SUCCESS);
        atomic_store(&ending, made);
        let_go_on(i);
        CHECK(aclrtDestroyStream(made) == ACL_SUCCESS);
        wait_for_end(i);
        CHECK(aclrtSynchronizeDevice() == ACL_SUCCESS);
    }
    pthread_join(thread, NULL);
}

int main(void)
{
    CHECK(aclInit(NULL) == ACL_SUCCESS && aclrtSetDevice(0) == ACL_SUCCESS);
    CHECK(aclrtGetCurrentContext(&context) == ACL_SUCCESS);
    work_while_captured();
    end_what_is_captured();
    CHECK(aclFinalize() == ACL_SUCCESS);
    puts("ok");
    return 0;
}
