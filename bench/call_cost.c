/* What a call costs when there is nearly nothing to compute: phase 1, phase 2 and the wait on a 4 KiB tensor.
 * Prints microseconds per call. Uses only the vendor's interface; UNDERSTUDY_STREAM chooses how streams run. */
#include <acl/acl.h>
#include <aclnnop/aclnn_soft_margin_loss_backward.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { COUNT = 1024, CALLS = 20000, ROUNDS = 7 };

static void check(int status, const char *what)
{
    if (status != 0) {
        fprintf(stderr, "call_cost: %s gives %d\n", what, status);
        exit(1);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

int main(void)
{
    enum { GRAD, SELF, TARGET, OUT, TENSORS };
    static float host[COUNT];
    const int64_t shape[] = {COUNT};
    aclTensor *tensors[TENSORS];
    aclrtStream stream;
    check(aclInit(NULL), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    check(aclrtCreateStream(&stream), "aclrtCreateStream");
    for (int k = 0; k < TENSORS; k++) {
        void *device;
        check(aclrtMalloc(&device, sizeof host, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
        check(aclrtMemcpy(device, sizeof host, host, sizeof host, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
        tensors[k] = aclCreateTensor(shape, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, shape, 1, device);
        check(tensors[k] == NULL, "aclCreateTensor");
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
    return 0;
}
