/* What an operator on a list costs beside the same work tensor by tensor: x += y for the tensors of a model, by one call of
 * aclnnForeachAddListV2 and by a loop of aclnnAdd, each with both phases and one wait at the end.
 * Prints, for float32 and float16, microseconds of the list and of the loop. Uses only the vendor's interface. */
#include "measure.h"

#include <acl/acl.h>
#include <aclnnop/aclnn_add.h>
#include <aclnnop/aclnn_foreach_add_list_v2.h>

enum { TENSORS = 300, ROUNDS = 300 };

static aclTensor *tensor_of(int64_t elements, aclDataType dtype, size_t size)
{
    void *device;
    check(aclrtMalloc(&device, (size_t)elements * size, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    check(aclrtMemset(device, (size_t)elements * size, 0, (size_t)elements * size), "aclrtMemset");
    aclTensor *tensor = aclCreateTensor(&elements, 1, dtype, NULL, 0, ACL_FORMAT_ND, &elements, 1, device);
    check(tensor == NULL, "aclCreateTensor");
    return tensor;
}

static double list_call(const aclTensorList *x, const aclTensorList *y, const aclScalar *one, aclTensorList *out,
                        aclrtStream stream)
{
    uint64_t size;
    aclOpExecutor *executor;
    const double start = now();
    check(aclnnForeachAddListV2GetWorkspaceSize(x, y, one, out, &size, &executor), "phase 1");
    check(aclnnForeachAddListV2(NULL, size, executor, stream), "phase 2");
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
    return now() - start;
}

static double single_calls(const aclTensor *const *x, const aclTensor *const *y, const aclScalar *one, aclrtStream stream)
{
    const double start = now();
    for (int i = 0; i < TENSORS; i++) {
        uint64_t size;
        aclOpExecutor *executor;
        check(aclnnAddGetWorkspaceSize(x[i], y[i], one, (aclTensor *)x[i], &size, &executor), "phase 1");
        check(aclnnAdd(NULL, size, executor, stream), "phase 2");
    }
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
    return now() - start;
}

static void measure(aclDataType dtype, size_t element, aclrtStream stream)
{
    static const aclTensor *x[TENSORS], *y[TENSORS];
    int64_t whole = 1;
    for (int i = 0; i < TENSORS; i++) {
        const int64_t elements = 16 + 37 * i % 4096;
        x[i] = tensor_of(elements, dtype, element);
        y[i] = tensor_of(elements, dtype, element);
    }
    const aclTensorList *list_x = aclCreateTensorList(x, TENSORS), *list_y = aclCreateTensorList(y, TENSORS);
    aclTensorList *out = aclCreateTensorList(x, TENSORS);
    const aclScalar *one = aclCreateScalar(&whole, ACL_INT64);
    double list = 1e30, loop = 1e30;
    for (int round = 0; round < ROUNDS; round++) {
        list = least(list, list_call(list_x, list_y, one, out, stream));
        loop = least(loop, single_calls(x, y, one, stream));
    }
    printf("%.3f %.3f\n", list, loop);
}

int main(void)
{
    aclrtStream stream;
    check(aclInit(NULL), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    check(aclrtCreateStream(&stream), "aclrtCreateStream");
    measure(ACL_FLOAT, 4, stream);
    measure(ACL_FLOAT16, 2, stream);
    return 0;
}
