/* What an operator on a list costs beside the same work tensor by tensor: x += y for the tensors of a model, by one call of
 * aclnnForeachAddListV2 and by a loop of aclnnAdd, each with both phases and one wait at the end, and by a plain loop over as
 * many host arrays of the same sizes: what moving the bytes takes, so that the rest is what the call costs.
 * Prints a line for each size (biases and norms' weights; tensors of up to 4096 elements) and type: microseconds of the list,
 * of the loop of calls and of the plain loop. Uses only the vendor's interface. */
#include "measure.h"

#include <acl/acl.h>
#include <aclnnop/aclnn_add.h>
#include <aclnnop/aclnn_foreach_add_list_v2.h>

enum { TENSORS = 300, ROUNDS = 300 };

typedef struct Lists {
    aclDataType dtype;
    int64_t elements[TENSORS];
    void *host_x[TENSORS], *host_y[TENSORS]; /* device memory is not the program's to touch */
    const aclTensor *x[TENSORS], *y[TENSORS];
    const aclTensorList *list_x, *list_y;
    aclTensorList *out;
    const aclScalar *one;
} Lists;

/* A tensor of zeros, and a host array of its size. */
static aclTensor *tensor_of(int64_t elements, aclDataType dtype, void **host)
{
    const size_t size = (size_t)elements * (dtype == ACL_FLOAT ? 4 : 2);
    void *device;
    check(aclrtMalloc(&device, size, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    check(aclrtMemset(device, size, 0, size), "aclrtMemset");
    aclTensor *tensor = aclCreateTensor(&elements, 1, dtype, NULL, 0, ACL_FORMAT_ND, &elements, 1, device);
    check(tensor == NULL, "aclCreateTensor");
    *host = calloc(1, size);
    check(*host == NULL, "calloc");
    return tensor;
}

static double list_call(const Lists *lists, aclrtStream stream)
{
    uint64_t size;
    aclOpExecutor *executor;
    const double start = now();
    check(aclnnForeachAddListV2GetWorkspaceSize(lists->list_x, lists->list_y, lists->one, lists->out, &size, &executor),
          "phase 1");
    check(aclnnForeachAddListV2(NULL, size, executor, stream), "phase 2");
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
    return now() - start;
}

static double single_calls(const Lists *lists, aclrtStream stream)
{
    const double start = now();
    for (int i = 0; i < TENSORS; i++) {
        uint64_t size;
        aclOpExecutor *executor;
        aclTensor *x = (aclTensor *)lists->x[i];
        check(aclnnAddGetWorkspaceSize(x, lists->y[i], lists->one, x, &size, &executor), "phase 1");
        check(aclnnAdd(NULL, size, executor, stream), "phase 2");
    }
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
    return now() - start;
}

/* The words are added as integers, by one thread: no type takes conversions. */
static double plain_loop(const Lists *lists)
{
    const double start = now();
    for (int i = 0; i < TENSORS; i++) {
        const size_t words = (size_t)lists->elements[i] / (lists->dtype == ACL_FLOAT ? 1 : 2);
        unsigned *restrict x = lists->host_x[i];
        const unsigned *restrict y = lists->host_y[i];
        for (size_t word = 0; word < words; word++) {
            x[word] += y[word];
        }
    }
    return now() - start;
}

static void measure(int64_t largest, aclDataType dtype, aclrtStream stream)
{
    static Lists lists;
    int64_t whole = 1;
    lists.dtype = dtype;
    for (int i = 0; i < TENSORS; i++) {
        lists.elements[i] = 16 + 37 * i % largest;
        lists.x[i] = tensor_of(lists.elements[i], dtype, &lists.host_x[i]);
        lists.y[i] = tensor_of(lists.elements[i], dtype, &lists.host_y[i]);
    }
    lists.list_x = aclCreateTensorList(lists.x, TENSORS);
    lists.list_y = aclCreateTensorList(lists.y, TENSORS);
    lists.out = aclCreateTensorList(lists.x, TENSORS);
    lists.one = aclCreateScalar(&whole, ACL_INT64);
    double list = 1e30, loop = 1e30, plain = 1e30;
    for (int round = 0; round < ROUNDS; round++) {
        list = least(list, list_call(&lists, stream));
        loop = least(loop, single_calls(&lists, stream));
        plain = least(plain, plain_loop(&lists));
    }
    printf("%.3f %.3f %.3f\n", list, loop, plain);
}

int main(void)
{
    aclrtStream stream;
    check(aclInit(NULL), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    check(aclrtCreateStream(&stream), "aclrtCreateStream");
    for (int64_t largest = 512; largest <= 4096; largest *= 8) {
        measure(largest, ACL_FLOAT, stream);
        measure(largest, ACL_FLOAT16, stream);
    }
    return 0;
}
