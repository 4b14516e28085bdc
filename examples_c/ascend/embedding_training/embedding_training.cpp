/* g++ embedding_training.cpp -I$ASCEND_HOME_PATH/include -I$ASCEND_HOME_PATH/include/aclnn -L$ASCEND_HOME_PATH/lib64 -lopapi_nn -lopapi_math -lascendcl -lnnopbase -o embedding_training
 *
 * Trains an embedding table by gradient descent: look-up, soft margin loss, its gradient, and the gradient of the
 * table. Prints the loss of each step and the table that was learned. */
#include "acl/acl.h"
#include "aclnnop/aclnn_embedding.h"
#include "aclnnop/aclnn_embedding_dense_backward.h"
#include "aclnnop/aclnn_soft_margin_loss.h"
#include "aclnnop/aclnn_soft_margin_loss_backward.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace {

constexpr int64_t kRows = 5;
constexpr int64_t kFeatures = 4;
constexpr int64_t kTokens = 8;
constexpr int64_t kMean = 1;
constexpr int kSteps = 6;
constexpr float kLearningRate = 8.0f;

/* Ends the example at the first failing call, with the library's own words. */
void Check(int code, const char *what)
{
    if (code != ACL_SUCCESS) {
        const char *message = aclGetRecentErrMsg();
        std::printf("%s failed with %d: %s\n", what, code, message != nullptr ? message : "no message");
        std::exit(1);
    }
}

using Memory = std::unique_ptr<void, aclError (*)(void *)>;
using Tensor = std::unique_ptr<aclTensor, aclnnStatus (*)(const aclTensor *)>;

Memory Allocate(uint64_t bytes)
{
    void *address = nullptr;
    if (bytes > 0) {
        Check(aclrtMalloc(&address, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    }
    return Memory(address, aclrtFree);
}

/* A contiguous device tensor and the memory behind it. */
template <typename Element>
struct DeviceTensor {
    std::vector<Element> host;
    Memory memory;
    Tensor tensor;

    DeviceTensor(const std::vector<int64_t> &shape, aclDataType type, const std::vector<Element> &values)
        : host(values), memory(Allocate(values.size() * sizeof(Element))), tensor(nullptr, aclDestroyTensor)
    {
        std::vector<int64_t> strides(shape.size(), 1);
        for (size_t i = shape.size(); i-- > 1;) {
            strides[i - 1] = strides[i] * shape[i];
        }
        tensor.reset(aclCreateTensor(shape.data(), shape.size(), type, strides.data(), 0, ACL_FORMAT_ND, shape.data(),
                                     shape.size(), memory.get()));
        Upload();
    }

    uint64_t Bytes() const { return host.size() * sizeof(Element); }

    void Upload()
    {
        Check(aclrtMemcpy(memory.get(), Bytes(), host.data(), Bytes(), ACL_MEMCPY_HOST_TO_DEVICE), "copy to the device");
    }

    void Download()
    {
        Check(aclrtMemcpy(host.data(), Bytes(), memory.get(), Bytes(), ACL_MEMCPY_DEVICE_TO_HOST), "copy to the host");
    }
};

/* The first function of an operator has given size and executor; this runs the second. */
using SecondPhase = aclnnStatus (*)(void *, uint64_t, aclOpExecutor *, aclrtStream);

void Run(SecondPhase function, uint64_t size, aclOpExecutor *executor, aclrtStream stream, const char *name)
{
    Memory workspace = Allocate(size);
    Check(function(workspace.get(), size, executor, stream), name);
    Check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
}

void Train(aclrtStream stream)
{
    std::vector<float> table(kRows * kFeatures);
    for (size_t i = 0; i < table.size(); i++) {
        table[i] = static_cast<float>(i * 7 % 11) / 8.0f - 0.5f;
    }
    std::vector<float> sign(kTokens * kFeatures);
    for (size_t i = 0; i < sign.size(); i++) {
        sign[i] = i * 5 % 8 < 4 ? 1.0f : -1.0f;
    }
    const std::vector<float> zeros(kTokens * kFeatures, 0.0f);
    DeviceTensor<float> weight({kRows, kFeatures}, ACL_FLOAT, table);
    DeviceTensor<int64_t> indices({kTokens}, ACL_INT64, {0, 3, 1, 3, 4, 0, 3, 1}); /* row 2 is not used */
    DeviceTensor<float> target({kTokens, kFeatures}, ACL_FLOAT, sign);
    DeviceTensor<float> output({kTokens, kFeatures}, ACL_FLOAT, zeros);
    DeviceTensor<float> loss({}, ACL_FLOAT, {0.0f});
    DeviceTensor<float> one({}, ACL_FLOAT, {1.0f});
    DeviceTensor<float> output_gradient({kTokens, kFeatures}, ACL_FLOAT, zeros);
    DeviceTensor<float> weight_gradient({kRows, kFeatures}, ACL_FLOAT, table);

    std::printf("loss:");
    for (int step = 0; step < kSteps; step++) {
        uint64_t size = 0;
        aclOpExecutor *executor = nullptr;
        Check(aclnnEmbeddingGetWorkspaceSize(weight.tensor.get(), indices.tensor.get(), output.tensor.get(), &size,
                                             &executor),
              "aclnnEmbeddingGetWorkspaceSize");
        Run(aclnnEmbedding, size, executor, stream, "aclnnEmbedding");

        Check(aclnnSoftMarginLossGetWorkspaceSize(output.tensor.get(), target.tensor.get(), kMean, loss.tensor.get(),
                                                  &size, &executor),
              "aclnnSoftMarginLossGetWorkspaceSize");
        Run(aclnnSoftMarginLoss, size, executor, stream, "aclnnSoftMarginLoss");

        Check(aclnnSoftMarginLossBackwardGetWorkspaceSize(one.tensor.get(), output.tensor.get(), target.tensor.get(),
                                                          kMean, output_gradient.tensor.get(), &size, &executor),
              "aclnnSoftMarginLossBackwardGetWorkspaceSize");
        Run(aclnnSoftMarginLossBackward, size, executor, stream, "aclnnSoftMarginLossBackward");

        const uint64_t no_padding = UINT64_MAX;
        Check(aclnnEmbeddingDenseBackwardGetWorkspaceSize(output_gradient.tensor.get(), indices.tensor.get(), kRows,
                                                          no_padding, false, weight_gradient.tensor.get(), &size,
                                                          &executor),
              "aclnnEmbeddingDenseBackwardGetWorkspaceSize");
        Run(aclnnEmbeddingDenseBackward, size, executor, stream, "aclnnEmbeddingDenseBackward");

        loss.Download();
        weight_gradient.Download();
        for (size_t i = 0; i < weight.host.size(); i++) {
            weight.host[i] -= kLearningRate * weight_gradient.host[i];
        }
        weight.Upload();
        std::printf(" %.6f", loss.host[0]);
    }
    std::printf("\nlearned table\n");
    for (int64_t row = 0; row < kRows; row++) {
        for (int64_t k = 0; k < kFeatures; k++) {
            std::printf(" %.6f", weight.host[row * kFeatures + k]);
        }
        std::printf("\n");
    }
}

} // namespace

int main()
{
    aclrtStream stream = nullptr;
    Check(aclInit(nullptr), "aclInit");
    Check(aclrtSetDevice(0), "aclrtSetDevice");
    Check(aclrtCreateStream(&stream), "aclrtCreateStream");
    Train(stream);
    Check(aclrtDestroyStream(stream), "aclrtDestroyStream");
    Check(aclrtResetDevice(0), "aclrtResetDevice");
    Check(aclFinalize(), "aclFinalize");
    return 0;
}
