/* Programs that each make one mistake, chosen by the first argument; "none" makes none. Vendor API only. */
#include "../check.h"

#include "acl/acl.h"
#include "aclnnop/aclnn_soft_margin_loss_backward.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 3000 };

static aclrtStream stream;

static void *device_memory(int initialised)
{
    static float zeros[COUNT];
    void *address = NULL;
    CHECK(aclrtMalloc(&address, sizeof zeros, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    if (initialised) {
        CHECK(aclrtMemcpy(address, sizeof zeros, zeros, sizeof zeros, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
    }
    return address;
}

static aclTensor *vector(void *address)
{
    const int64_t count = COUNT;
    return aclCreateTensor(&count, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &count, 1, address);
}

static void launch(aclTensor *input, aclTensor *output)
{
    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    CHECK(aclnnSoftMarginLossBackwardGetWorkspaceSize(input, input, input, 0, output, &size, &executor) == 0);
    CHECK(aclnnSoftMarginLossBackward(NULL, 0, executor, stream) == 0);
}

int main(int argument_count, char **arguments)
{
    const char *mistake = argument_count > 1 ? arguments[1] : "none";
    float host[COUNT];
    CHECK(aclInit(NULL) == ACL_SUCCESS && aclrtSetDevice(0) == ACL_SUCCESS);
    CHECK(aclrtCreateStream(&stream) == ACL_SUCCESS);
    void *input_address = device_memory(strcmp(mistake, "init") != 0);
    void *output_address = device_memory(1);
    aclTensor *input = vector(input_address);
    aclTensor *output = vector(output_address);
    launch(input, output);
    if (strcmp(mistake, "sync") != 0 && strcmp(mistake, "early-free") != 0) {
        CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
    }
    if (strcmp(mistake, "early-free") == 0) {
        CHECK(aclrtFree(input_address) == ACL_SUCCESS);
        input_address = NULL;
        aclrtSynchronizeStream(stream);
    } else {
        CHECK(aclrtMemcpy(host, sizeof host, output_address, sizeof host, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS);
        CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS); /* too late for "sync" */
    }
    if (strcmp(mistake, "overflow") == 0) {
        char *pinned = NULL;
        CHECK(aclrtMallocHost((void **)&pinned, 100) == ACL_SUCCESS);
        memset(pinned, 0, 102); /* two bytes too many */
        CHECK(aclrtFreeHost(pinned) == ACL_SUCCESS);
    }
    if (strcmp(mistake, "beyond") == 0) {
        static char bytes[sizeof host + 8];
        void *block = device_memory(1);
        aclrtMemcpy(block, sizeof bytes, bytes, sizeof bytes, ACL_MEMCPY_HOST_TO_DEVICE); /* in the page, but not asked for */
        CHECK(aclrtFree(block) == ACL_SUCCESS);
        block = NULL;
        CHECK(aclrtMalloc(&block, 16, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
        aclrtMemcpy(block, 64, bytes, 64, ACL_MEMCPY_HOST_TO_DEVICE);
        CHECK(aclrtFree(block) == ACL_SUCCESS);
    }
    if (strcmp(mistake, "leak") != 0) {
        CHECK(aclDestroyTensor(input) == 0);
        CHECK(aclrtFree(output_address) == ACL_SUCCESS);
        CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
    }
    CHECK(aclDestroyTensor(output) == 0);
    CHECK(input_address == NULL || aclrtFree(input_address) == ACL_SUCCESS);
    if (strcmp(mistake, "leak") != 0) {
        CHECK(aclrtResetDevice(0) == ACL_SUCCESS);
    }
    CHECK(aclFinalize() == ACL_SUCCESS);
    puts(host[0] == 0.0f || strcmp(mistake, "none") != 0 ? "done" : "wrong");
    return 0;
}
