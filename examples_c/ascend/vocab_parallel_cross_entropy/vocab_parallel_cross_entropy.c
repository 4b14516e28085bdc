/* gcc vocab_parallel_cross_entropy.c -I$ASCEND_HOME_PATH/include -I$ASCEND_HOME_PATH/include/aclnn -L$ASCEND_HOME_PATH/lib64 -lopapi_nn -lopapi_math -lascendcl -lnnopbase -lm -o vocab_parallel_cross_entropy
 *
 * Cross entropy of a linear layer whose vocabulary is divided between two devices: each computes maximum and sum of its
 * logits, the host reduces them, each computes the loss and its share of the gradients. With one device both shards are
 * on it. */
#include "acl/acl.h"
#include "aclnnop/aclnn_fused_cross_entropy_loss_with_max_sum.h"
#include "aclnnop/aclnn_fused_linear_cross_entropy_loss_grad.h"
#include "aclnnop/aclnn_fused_linear_online_max_sum.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the example at the first failing call, with the library's own words. */
#define CHECK(call)                                                                                       \
    do {                                                                                                  \
        int code = (int)(call);                                                                           \
        if (code != ACL_SUCCESS) {                                                                        \
            const char *message = aclGetRecentErrMsg();                                                   \
            fprintf(stderr, "%s failed with %d: %s\n", #call, code, message != NULL ? message : "no message"); \
            exit(1);                                                                                      \
        }                                                                                                 \
    } while (0)

enum { SHARDS = 2, TOKENS = 4, HIDDEN = 3, VOCABULARY = 10, SHARD = VOCABULARY / SHARDS };

typedef struct {
    aclTensor *tensor;
    void *address;
    size_t bytes;
} Tensor;

/* One device's part: what it needs and what it computes. */
typedef struct {
    int device;
    aclrtStream stream;
    Tensor input, weight, target;
    Tensor max, sum, predicted, mask, masked_target;
    Tensor loss, grad, input_grad, weight_grad;
} Shard;

/* A tensor on the current device; columns 0: one dimension. Values NULL: not set. */
static Tensor tensor(aclDataType type, int64_t rows, int64_t columns, const void *values)
{
    const int64_t shape[] = {rows, columns}, strides[] = {columns != 0 ? columns : 1, 1};
    const uint64_t rank = columns != 0 ? 2 : 1;
    Tensor made;
    made.bytes = (size_t)(rows * strides[0]) * aclDataTypeSize(type);
    CHECK(aclrtMalloc(&made.address, made.bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    if (values != NULL) {
        CHECK(aclrtMemcpy(made.address, made.bytes, values, made.bytes, ACL_MEMCPY_HOST_TO_DEVICE));
    }
    made.tensor = aclCreateTensor(shape, rank, type, strides, 0, ACL_FORMAT_ND, shape, rank, made.address);
    if (made.tensor == NULL) {
        fprintf(stderr, "a tensor could not be made\n");
        exit(1);
    }
    return made;
}

static void release(Tensor used)
{
    CHECK(aclDestroyTensor(used.tensor));
    CHECK(aclrtFree(used.address));
}

static void upload(Tensor to, const void *values)
{
    CHECK(aclrtMemcpy(to.address, to.bytes, values, to.bytes, ACL_MEMCPY_HOST_TO_DEVICE));
}

static void download(void *values, Tensor from)
{
    CHECK(aclrtMemcpy(values, from.bytes, from.address, from.bytes, ACL_MEMCPY_DEVICE_TO_HOST));
}

typedef aclnnStatus (*Launch)(void *, uint64_t, aclOpExecutor *, aclrtStream);

/* The second phase of an operator, with its workspace. */
static void launch(Launch operation, uint64_t workspace_size, aclOpExecutor *executor, aclrtStream stream)
{
    void *workspace = NULL;
    if (workspace_size > 0) {
        CHECK(aclrtMalloc(&workspace, workspace_size, ACL_MEM_MALLOC_HUGE_FIRST));
    }
    CHECK(operation(workspace, workspace_size, executor, stream));
    CHECK(aclrtSynchronizeStream(stream));
    if (workspace != NULL) {
        CHECK(aclrtFree(workspace));
    }
}

static Shard begin(int device, const aclFloat16 *input, const aclFloat16 *weight, const int64_t *target,
                   const float *grad)
{
    Shard shard;
    shard.device = device;
    CHECK(aclrtSetDevice(device));
    CHECK(aclrtCreateStream(&shard.stream));
    shard.input = tensor(ACL_FLOAT16, TOKENS, HIDDEN, input);
    shard.weight = tensor(ACL_FLOAT16, SHARD, HIDDEN, weight);
    shard.target = tensor(ACL_INT64, TOKENS, 0, target);
    shard.max = tensor(ACL_FLOAT, TOKENS, 0, NULL);
    shard.sum = tensor(ACL_FLOAT, TOKENS, 0, NULL);
    shard.predicted = tensor(ACL_FLOAT, TOKENS, 0, NULL);
    shard.mask = tensor(ACL_UINT8, (TOKENS + 7) / 8, 0, NULL);
    shard.masked_target = tensor(ACL_INT64, TOKENS, 0, NULL);
    shard.loss = tensor(ACL_FLOAT, TOKENS, 0, NULL);
    shard.grad = tensor(ACL_FLOAT, TOKENS, 0, grad);
    shard.input_grad = tensor(ACL_FLOAT16, TOKENS, HIDDEN, NULL);
    shard.weight_grad = tensor(ACL_FLOAT16, SHARD, HIDDEN, NULL);
    return shard;
}

static void max_and_sum(const Shard *shard, int64_t first)
{
    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    CHECK(aclrtSetDevice(shard->device));
    CHECK(aclnnFusedLinearOnlineMaxSumGetWorkspaceSize(
        shard->input.tensor, shard->weight.tensor, shard->target.tensor, first, first + SHARD, shard->max.tensor,
        shard->sum.tensor, shard->predicted.tensor, shard->mask.tensor, shard->masked_target.tensor, NULL, &size,
        &executor));
    launch(aclnnFusedLinearOnlineMaxSum, size, executor, shard->stream);
}

/* What a collective operation does between devices: every shard gets the maximum, sum and logit of the whole. */
static void reduce(const Shard *shards)
{
    float max[SHARDS][TOKENS], sum[SHARDS][TOKENS], predicted[SHARDS][TOKENS];
    float whole_max[TOKENS], whole_sum[TOKENS], whole_predicted[TOKENS];
    unsigned char mask[SHARDS][(TOKENS + 7) / 8];
    for (int s = 0; s < SHARDS; s++) {
        CHECK(aclrtSetDevice(shards[s].device));
        download(max[s], shards[s].max);
        download(sum[s], shards[s].sum);
        download(predicted[s], shards[s].predicted);
        download(mask[s], shards[s].mask);
    }
    for (int t = 0; t < TOKENS; t++) {
        double total = 0.0, logit = 0.0;
        whole_max[t] = fmaxf(max[0][t], max[1][t]);
        for (int s = 0; s < SHARDS; s++) {
            double behind = (double)max[s][t] - whole_max[t];
            int masked = mask[s][t / 8] >> (t % 8) & 1;
            total += sum[s][t] * exp(behind);
            logit += masked ? 0.0 : predicted[s][t] + behind;
        }
        whole_sum[t] = (float)total;
        whole_predicted[t] = (float)logit;
    }
    for (int s = 0; s < SHARDS; s++) {
        CHECK(aclrtSetDevice(shards[s].device));
        upload(shards[s].max, whole_max);
        upload(shards[s].sum, whole_sum);
        upload(shards[s].predicted, whole_predicted);
    }
}

static void loss_and_gradients(const Shard *shard)
{
    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    CHECK(aclrtSetDevice(shard->device));
    CHECK(aclnnFusedCrossEntropyLossWithMaxSumGetWorkspaceSize(shard->max.tensor, shard->sum.tensor,
                                                               shard->predicted.tensor, 0.0f, NULL, NULL, NULL,
                                                               shard->loss.tensor, NULL, &size, &executor));
    launch(aclnnFusedCrossEntropyLossWithMaxSum, size, executor, shard->stream);
    CHECK(aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize(
        shard->grad.tensor, shard->input.tensor, shard->weight.tensor, shard->mask.tensor, shard->masked_target.tensor,
        0.0f, shard->max.tensor, shard->sum.tensor, NULL, shard->input_grad.tensor, shard->weight_grad.tensor, &size,
        &executor));
    launch(aclnnFusedLinearCrossEntropyLossGrad, size, executor, shard->stream);
}

static void end(Shard *shard)
{
    CHECK(aclrtSetDevice(shard->device));
    const Tensor all[] = {shard->input,      shard->weight,     shard->target, shard->max,
                          shard->sum,        shard->predicted,  shard->mask,   shard->masked_target,
                          shard->loss,       shard->grad,       shard->input_grad, shard->weight_grad};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        release(all[i]);
    }
    CHECK(aclrtDestroyStream(shard->stream));
}

static void print(const char *name, const float *values, int count)
{
    printf("%s:", name);
    for (int i = 0; i < count; i++) {
        printf(" %.9g", values[i]);
    }
    printf("\n");
}

int main(void)
{
    const int64_t target[TOKENS] = {7, 0, 4, 9};
    const float grad[TOKENS] = {0.25f, 0.25f, 0.25f, 0.25f}; /* the loss is the mean over the tokens */
    aclFloat16 input[TOKENS * HIDDEN], weight[VOCABULARY * HIDDEN];
    for (int i = 0; i < TOKENS * HIDDEN; i++) {
        input[i] = aclFloatToFloat16((float)(i * 7 % 11 - 5) / 4.0f);
    }
    for (int i = 0; i < VOCABULARY * HIDDEN; i++) {
        weight[i] = aclFloatToFloat16((float)(i * 5 % 17 - 8) / 8.0f);
    }

    CHECK(aclInit(NULL));
    uint32_t devices = 0;
    CHECK(aclrtGetDeviceCount(&devices));
    Shard shards[SHARDS];
    for (int s = 0; s < SHARDS; s++) {
        shards[s] = begin(devices < SHARDS ? 0 : s, input, weight + s * SHARD * HIDDEN, target, grad);
        max_and_sum(&shards[s], s * SHARD);
    }
    reduce(shards);

    float loss[TOKENS], input_grad[TOKENS * HIDDEN] = {0.0f}, weight_grad[VOCABULARY * HIDDEN];
    for (int s = 0; s < SHARDS; s++) {
        aclFloat16 part[VOCABULARY * HIDDEN];
        loss_and_gradients(&shards[s]);
        download(loss, shards[s].loss);
        print(s == 0 ? "loss on the first shard" : "loss on the second shard", loss, TOKENS);
        download(part, shards[s].input_grad);
        for (int i = 0; i < TOKENS * HIDDEN; i++) {
            input_grad[i] += aclFloat16ToFloat(part[i]);
        }
        download(part, shards[s].weight_grad);
        for (int i = 0; i < SHARD * HIDDEN; i++) {
            weight_grad[s * SHARD * HIDDEN + i] = aclFloat16ToFloat(part[i]);
        }
    }
    print("gradient of the input", input_grad, TOKENS * HIDDEN);
    print("gradient of the weight", weight_grad, VOCABULARY * HIDDEN);
    for (int s = 0; s < SHARDS; s++) {
        end(&shards[s]);
    }
    CHECK(aclFinalize());
    return 0;
}
