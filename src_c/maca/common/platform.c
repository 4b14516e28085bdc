#include "maca/common/platform.h"

static const LeakKind leak_kinds[] = {
    {HANDLE_MEMORY_POOL, "memory pools"},
    {HANDLE_DNN, "mcDNN handles"},
    {HANDLE_TENSOR, "tensor descriptors"},
    {HANDLE_ACTIVATION, "activation descriptors"},
    {HANDLE_POOLING, "pooling descriptors"},
    {HANDLE_DROPOUT, "dropout descriptors"},
    {HANDLE_LRN, "LRN descriptors"},
    {HANDLE_SPATIAL_TRANSFORMER, "spatial transformer descriptors"},
    {HANDLE_OP_TENSOR, "operation descriptors"},
    {HANDLE_REDUCE_TENSOR, "reduction descriptors"},
    {HANDLE_FILTER, "filter descriptors"},
    {HANDLE_ALGORITHM, "algorithm descriptors"},
    {HANDLE_ALGORITHM_PERFORMANCE, "algorithm performances"},
    {HANDLE_TENSOR_TRANSFORM, "tensor transform descriptors"},
    {HANDLE_CONVOLUTION, "convolution descriptors"},
    {HANDLE_FUSED_CONSTANTS, "packs of constants"},
    {HANDLE_FUSED_VARIANTS, "packs of variants"},
    {HANDLE_FUSED_PLAN, "plans of fused operations"},
    {HANDLE_GRAPH_EXEC, "executable graphs"},
    {HANDLE_RNN, "RNN descriptors"},
    {HANDLE_RNN_DATA, "RNN data descriptors"},
    {HANDLE_CTC_LOSS, "CTC loss descriptors"},
    {HANDLE_BLAS, "mcBLAS handles"},
    {HANDLE_BLAS_LT, "mcBLASLt handles"},
    {HANDLE_LT_MATMUL, "descriptions of products"},
    {HANDLE_LT_LAYOUT, "matrix layouts"},
    {HANDLE_LT_PREFERENCE, "preferences of products"},
    {HANDLE_LT_TRANSFORM, "descriptions of transforms"},
};

/* 64 GiB and CUDA-like address rules: maca-runtime 2.1 and 5. */
static const PlatformProfile profile = {
    .name = "MACA",
    .memory_bytes = (size_t)64 << 30,
    .kernels_see_pinned = true,
    .faults_are_sticky_on_device = true,
    .leak_kinds = leak_kinds,
    .leak_kind_count = sizeof leak_kinds / sizeof *leak_kinds,
};

Platform *maca_platform(void)
{
    return us_platform(1, &profile);
}

/* The thread's integer in libunderstudy holds three things: last error, device, and "inside a host function". */
enum { ERROR_MASK = 0xffff, ORDINAL_SHIFT = 16, ORDINAL_MASK = 0xff << ORDINAL_SHIFT, INSIDE_BIT = 1 << 24 };
_Static_assert((int)mcErrorMax <= (int)ERROR_MASK && (int)DEVICE_LIMIT <= 256, "the fields hold their values");

static int32_t thread_bits(void)
{
    Platform *platform = maca_platform();
    return platform == NULL ? 0 : *us_thread_status(platform);
}

static void set_thread_bits(int32_t mask, int32_t bits)
{
    Platform *platform = maca_platform();
    if (platform != NULL) {
        int32_t *status = us_thread_status(platform);
        *status = (*status & ~mask) | bits;
    }
}

int maca_device_ordinal(void)
{
    return (thread_bits() & ORDINAL_MASK) >> ORDINAL_SHIFT;
}

void maca_set_device_ordinal(int ordinal)
{
    set_thread_bits(ORDINAL_MASK, ordinal << ORDINAL_SHIFT);
}

mcError_t maca_last_error(void)
{
    return (mcError_t)(thread_bits() & ERROR_MASK);
}

void maca_set_last_error(mcError_t error)
{
    set_thread_bits(ERROR_MASK, (int32_t)error);
}

bool maca_in_host_function(void)
{
    return (thread_bits() & INSIDE_BIT) != 0;
}

void maca_set_in_host_function(bool inside)
{
    set_thread_bits(INSIDE_BIT, inside ? INSIDE_BIT : 0);
}

Device *maca_device(void)
{
    Platform *platform = maca_platform();
    return platform == NULL ? NULL : us_device(platform, maca_device_ordinal());
}

Context *maca_context(void)
{
    Device *device = maca_device();
    return device == NULL ? NULL : us_context_primary(device);
}

mcError_t maca_error_of_fault(DeviceFault fault)
{
    switch (fault) {
    case DEVICE_FAULT_NONE:
        return mcSuccess;
    case DEVICE_FAULT_ADDRESS:
    case DEVICE_FAULT_COPY:
        return mcErrorIllegalAddress;
    case DEVICE_FAULT_NO_MEMORY:
        return mcErrorMemoryAllocation;
    default:
        return mcErrorLaunchFailure;
    }
}

void maca_relax_pinned_side(const void *address, Side *side)
{
    Allocation block;
    if (*side == SIDE_DEVICE && us_memory_find(maca_platform(), address, &block) && block.kind == MEMORY_PINNED) {
        *side = SIDE_ANY;
    }
}

bool maca_is_device_memory(const void *pointer)
{
    Allocation found;
    return us_memory_find(maca_platform(), pointer, &found) && found.kind == MEMORY_DEVICE;
}
