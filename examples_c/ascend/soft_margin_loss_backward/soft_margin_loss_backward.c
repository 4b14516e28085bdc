/* gcc soft_margin_loss_backward.c -I$ASCEND_HOME_PATH/include -I$ASCEND_HOME_PATH/include/aclnn -L$ASCEND_HOME_PATH/lib64 -lopapi_nn -lopapi_math -lascendcl -lnnopbase -o soft_margin_loss_backward
 *
 * Gradient of the soft margin loss for a 2x3 batch, with reduction none and mean. */
#include "acl/acl.h"
#include "aclnnop/aclnn_soft_margin_loss_backward.h"

#include <stdio.h>

enum { ROWS = 2, COLUMNS = 3, COUNT = ROWS * COLUMNS };

/* Ends the example at the first failing call, with the library's own words. */
#define EXPECT_SUCCESS(call)                                                                          \
    do {                                                                                              \
        int code = (int)(call);                                                                       \
        if (code != ACL_SUCCESS) {                                                                    \
            const char *message = aclGetRecentErrMsg();                                               \
            printf("%s failed with %d: %s\n", #call, code, message != NULL ? message : "no message"); \
            return 1;                                                                                 \
        }                                                                                             \
    } while (0)

/* A device tensor with the given values (NULL: uninitialised). */
static aclTensor *device_tensor(const float *values, void **device_address)
{
    const int64_t shape[] = {ROWS, COLUMNS};
    const int64_t strides[] = {COLUMNS, 1};
    const size_t bytes = COUNT * sizeof(float);
    if (aclrtMalloc(device_address, bytes, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) {
        return NULL;
    }
    if (values != NULL &&
        aclrtMemcpy(*device_address, bytes, values, bytes, ACL_MEMCPY_HOST_TO_DEVICE) != ACL_SUCCESS) {
        return NULL;
    }
    return aclCreateTensor(shape, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, shape, 2, *device_address);
}

static int run(const char *name, int64_t reduction, const aclTensor *grad_output, const aclTensor *self,
               const aclTensor *target, aclTensor *out, const void *out_address, aclrtStream stream)
{
    uint64_t workspace_size = 0;
    aclOpExecutor *executor = NULL;
    EXPECT_SUCCESS(aclnnSoftMarginLossBackwardGetWorkspaceSize(grad_output, self, target, reduction, out,
                                                               &workspace_size, &executor));
    void *workspace = NULL;
    if (workspace_size > 0) {
        EXPECT_SUCCESS(aclrtMalloc(&workspace, workspace_size, ACL_MEM_MALLOC_HUGE_FIRST));
    }
    EXPECT_SUCCESS(aclnnSoftMarginLossBackward(workspace, workspace_size, executor, stream));
    EXPECT_SUCCESS(aclrtSynchronizeStream(stream));
    float result[COUNT];
    EXPECT_SUCCESS(aclrtMemcpy(result, sizeof result, out_address, sizeof result, ACL_MEMCPY_DEVICE_TO_HOST));
    printf("%s:", name);
    for (int i = 0; i < COUNT; i++) {
        printf(" %.9g", result[i]);
    }
    printf("\n");
    if (workspace != NULL) {
        EXPECT_SUCCESS(aclrtFree(workspace));
    }
    return 0;
}

int main(void)
{
    const float grad_output[COUNT] = {1.0f, 2.0f, 3.0f, 4.0f, -0.5f, 0.25f};
    const float self[COUNT] = {0.0f, 1.0f, -2.0f, 3.0f, 0.5f, -7.0f};
    const float target[COUNT] = {1.0f, -1.0f, 1.0f, 1.0f, 1.0f, -1.0f};
    aclrtStream stream = NULL;
    EXPECT_SUCCESS(aclInit(NULL));
    EXPECT_SUCCESS(aclrtSetDevice(0));
    EXPECT_SUCCESS(aclrtCreateStream(&stream));

    void *addresses[4] = {NULL, NULL, NULL, NULL};
    aclTensor *tensors[4];
    tensors[0] = device_tensor(grad_output, &addresses[0]);
    tensors[1] = device_tensor(self, &addresses[1]);
    tensors[2] = device_tensor(target, &addresses[2]);
    tensors[3] = device_tensor(NULL, &addresses[3]);
    for (int i = 0; i < 4; i++) {
        if (tensors[i] == NULL) {
            printf("tensor %d could not be made\n", i);
            return 1;
        }
    }
    if (run("none", 0, tensors[0], tensors[1], tensors[2], tensors[3], addresses[3], stream) != 0 ||
        run("mean", 1, tensors[0], tensors[1], tensors[2], tensors[3], addresses[3], stream) != 0) {
        return 1;
    }
    for (int i = 0; i < 4; i++) {
        EXPECT_SUCCESS(aclDestroyTensor(tensors[i]));
        EXPECT_SUCCESS(aclrtFree(addresses[i]));
    }
    EXPECT_SUCCESS(aclrtDestroyStream(stream));
    EXPECT_SUCCESS(aclrtResetDevice(0));
    EXPECT_SUCCESS(aclFinalize());
    return 0;
}
