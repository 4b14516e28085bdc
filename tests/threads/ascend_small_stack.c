/* A thread with the smallest usual stack queues operators whose kernels need more, and waits for them: kernels run where
 * there is room. */
#include "acl/acl.h"
#include "aclnnop/aclnn_soft_margin_loss_backward.h"

#include <pthread.h>
#include <stdio.h>

enum { ROWS = 512, COLUMNS = 1024, REPEATS = 20, STACK = 64 * 1024 };

static aclrtContext context;
static int failures;

static aclTensor *transposed(void)
{
    const int64_t shape[] = {ROWS, COLUMNS}, strides[] = {1, ROWS}, storage[] = {ROWS * COLUMNS};
    void *memory = NULL;
    failures += aclrtMalloc(&memory, sizeof(float) * ROWS * COLUMNS, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS;
    return aclCreateTensor(shape, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, storage, 1, memory);
}

static void *work(void *unused)
{
    failures += aclrtSetCurrentContext(context) != ACL_SUCCESS;
    aclTensor *grad = transposed(), *self = transposed(), *target = transposed(), *out = transposed();
    for (int i = 0; i < REPEATS; i++) {
        uint64_t size = 0;
        aclOpExecutor *executor = NULL;
        failures += aclnnSoftMarginLossBackwardGetWorkspaceSize(grad, self, target, 1, out, &size, &executor) != OK;
        failures += aclnnSoftMarginLossBackward(NULL, 0, executor, NULL) != OK;
        failures += aclrtSynchronizeStream(NULL) != ACL_SUCCESS;
    }
    return unused;
}

int main(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    failures += aclInit(NULL) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS;
    failures += aclrtGetCurrentContext(&context) != ACL_SUCCESS;
    failures += pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, STACK) != 0;
    failures += pthread_create(&thread, &attributes, work, NULL) != 0 || pthread_join(thread, NULL) != 0;
    pthread_attr_destroy(&attributes);
    puts(failures == 0 ? "ok" : "failed");
    return failures != 0;
}
