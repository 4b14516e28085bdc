/* What a call costs when there is nearly nothing to compute: phase 1, phase 2 and the wait on a 4 KiB tensor.
 * Prints microseconds per call, then those of 100 calls in a row on 256 bytes, without waits between them, and of a
 * captured graph of the same 100. Uses only the vendor's interface; UNDERSTUDY_STREAM chooses how streams run. */
#include "measure.h"

#include <acl/acl.h>
#include <aclnnop/aclnn_soft_margin_loss_backward.h>

enum { COUNT = 1024, SMALL_COUNT = 64, CALLS = 20000, ROUNDS = 7, GRAPH_CALLS = 100, GRAPH_LAUNCHES = 200 };

enum { GRAD, SELF, TARGET, OUT, TENSORS };

static void call_in_a_row(aclTensor *const *tensors, aclrtStream stream)
{
    for (int call = 0; call < GRAPH_CALLS; call++) {
        uint64_t size;
        aclOpExecutor *executor;
        check(aclnnSoftMarginLossBackwardGetWorkspaceSize(tensors[GRAD], tensors[SELF], tensors[TARGET], 0,
                                                          tensors[OUT], &size, &executor), "phase 1");
        check(aclnnSoftMarginLossBackward(NULL, size, executor, stream), "phase 2");
    }
}

/* The calls and the graph take turns. */
static void measure_graph(aclTensor *const *tensors, aclrtStream stream)
{
    aclmdlRI graph;
    check(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), "aclmdlRICaptureBegin");
    call_in_a_row(tensors, stream);
    check(aclmdlRICaptureEnd(stream, &graph), "aclmdlRICaptureEnd");
    double calls = 1e30, launch = 1e30;
    for (int round = 0; round < GRAPH_LAUNCHES; round++) {
        const double start = now();
        call_in_a_row(tensors, stream);
        check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
        const double middle = now();
        check(aclmdlRIExecuteAsync(graph, stream), "aclmdlRIExecuteAsync");
        check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
        launch = least(launch, now() - middle);
        calls = least(calls, middle - start);
    }
    check(aclmdlRIDestroy(graph), "aclmdlRIDestroy");
    printf("%.3f %.3f\n", calls, launch);
}

int main(void)
{
    static float host[COUNT];
    const int64_t shape[] = {COUNT}, small_shape[] = {SMALL_COUNT};
    aclTensor *tensors[TENSORS], *small[TENSORS];
    aclrtStream stream;
    check(aclInit(NULL), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    check(aclrtCreateStream(&stream), "aclrtCreateStream");
    for (int k = 0; k < TENSORS; k++) {
        void *device;
        check(aclrtMalloc(&device, sizeof host, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
        check(aclrtMemcpy(device, sizeof host, host, sizeof host, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
        tensors[k] = aclCreateTensor(shape, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, shape, 1, device);
        small[k] = aclCreateTensor(small_shape, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, small_shape, 1, device);
        check(tensors[k] == NULL || small[k] == NULL, "aclCreateTensor");
    }
    double whole = 1e30, first = 1e30;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t size;
        aclOpExecutor *executor;
        const double start = now();
        for (int call = 0; call < CALLS; call++) {
            check(aclnnSoftMarginLossBackwardGetWorkspaceSize(tensors[GRAD], tensors[SELF], tensors[TARGET], 0,
                                                              tensors[OUT], &size, &executor), "phase 1");
            check(aclnnSoftMarginLossBackward(NULL, size, executor, stream), "phase 2");
            check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
        }
        const double middle = now();
        for (int call = 0; call < CALLS; call++) {
            check(aclnnSoftMarginLossBackwardGetWorkspaceSize(tensors[GRAD], tensors[SELF], tensors[TARGET], 0,
                                                              tensors[OUT], &size, &executor), "phase 1");
            check(aclDestroyAclOpExecutor(executor), "aclDestroyAclOpExecutor");
        }
        whole = least(whole, (middle - start) / CALLS);
        first = least(first, (now() - middle) / CALLS);
    }
    printf("%.3f %.3f\n", whole, first);
    measure_graph(small, stream);
    return 0;
}
