/* Algorithm descriptors and measurements hold values for programs that search convolution algorithms (mcdnn 5.1).
 * Saved algorithms are bytes in host memory. */
#include "check.h"

#include <string.h>

typedef struct AlgorithmDescriptor {
    bool set;
    mcdnnAlgorithm_t algorithm;
} AlgorithmDescriptor;

typedef struct Performance {
    mcdnnAlgorithmDescriptor_t algorithm;
    mcdnnStatus_t status;
    float time;
    size_t memory;
} Performance;

/* What mcdnnSaveAlgorithm writes. */
typedef struct SavedAlgorithm {
    char mark[8];
    uint64_t version;
    mcdnnAlgorithm_t algorithm;
} SavedAlgorithm;

static const char saved_mark[8] = {'m', 'c', 'd', 'n', 'n', 'A', 'l', 'g'};

static AlgorithmDescriptor *descriptor(Call *call, const char *parameter, mcdnnAlgorithmDescriptor_t handle)
{
    return descriptor_of(call, parameter, handle, HANDLE_ALGORITHM, "an algorithm descriptor");
}

static const AlgorithmDescriptor *check_set(Call *call, const char *parameter, mcdnnAlgorithmDescriptor_t handle)
{
    const AlgorithmDescriptor *source = descriptor(call, parameter, handle);
    us_require(call, source->set, parameter, "set", MCDNN_STATUS_BAD_PARAM, "%s was given no algorithm", parameter);
    return source;
}

mcdnnStatus_t mcdnnCreateAlgorithmDescriptor(mcdnnAlgorithmDescriptor_t *algoDesc)
{
    return descriptor_make("mcdnnCreateAlgorithmDescriptor", HANDLE_ALGORITHM, "algoDesc", algoDesc,
                           &(const AlgorithmDescriptor){0}, sizeof(AlgorithmDescriptor));
}

mcdnnStatus_t mcdnnDestroyAlgorithmDescriptor(mcdnnAlgorithmDescriptor_t algoDesc)
{
    return descriptor_end("mcdnnDestroyAlgorithmDescriptor", HANDLE_ALGORITHM, "algoDesc", algoDesc);
}

mcdnnStatus_t mcdnnSetAlgorithmDescriptor(
    mcdnnAlgorithmDescriptor_t algoDesc, mcdnnAlgorithm_t algorithm)
{
    Call call = us_call_begin("mcdnnSetAlgorithmDescriptor");
    AlgorithmDescriptor *target = descriptor(&call, "algoDesc", algoDesc);
    if (call.status == 0)
        *target = (AlgorithmDescriptor){true, algorithm};
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetAlgorithmDescriptor(
    const mcdnnAlgorithmDescriptor_t algoDesc, mcdnnAlgorithm_t *algorithm)
{
    Call call = us_call_begin("mcdnnGetAlgorithmDescriptor");
    const AlgorithmDescriptor *source = descriptor(&call, "algoDesc", algoDesc);
    check_given(&call, "algorithm", algorithm);
    if (call.status == 0)
        *algorithm = source->algorithm;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnCopyAlgorithmDescriptor(
    const mcdnnAlgorithmDescriptor_t src, mcdnnAlgorithmDescriptor_t dest)
{
    Call call = us_call_begin("mcdnnCopyAlgorithmDescriptor");
    const AlgorithmDescriptor *source = descriptor(&call, "src", src);
    AlgorithmDescriptor *target = descriptor(&call, "dest", dest);
    if (call.status == 0)
        *target = *source;
    return us_call_end(&call);
}

static void check_number(Call *call, const char *parameter, int number)
{
    us_require(call, number > 0, parameter, "positive", MCDNN_STATUS_BAD_PARAM, "%s is %d, it must be positive",
               parameter, number);
}

/* All of them, or none: what was made before memory ran out is destroyed again. */
mcdnnStatus_t mcdnnCreateAlgorithmPerformance(
    mcdnnAlgorithmPerformance_t *algoPerf, int numberToCreate)
{
    Call call = us_call_begin("mcdnnCreateAlgorithmPerformance");
    check_given(&call, "algoPerf", algoPerf);
    check_number(&call, "numberToCreate", numberToCreate);
    Performance initial = {0};
    for (int i = 0; call.status == 0 && i < numberToCreate; i++) {
        algoPerf[i] =
            descriptor_create(&call, "algoPerf", algoPerf, HANDLE_ALGORITHM_PERFORMANCE, &initial, sizeof initial);
        for (int made = i - 1; call.status != 0 && made >= 0; made--) {
            Call undo = us_call_begin(call.function);
            descriptor_destroy(&undo, "algoPerf", algoPerf[made], HANDLE_ALGORITHM_PERFORMANCE);
            algoPerf[made] = NULL;
        }
    }
    return us_call_end(&call);
}

/* Every live one is destroyed, also when another one is refused. */
mcdnnStatus_t mcdnnDestroyAlgorithmPerformance(
    mcdnnAlgorithmPerformance_t *algoPerf, int numberToDestroy)
{
    Call call = us_call_begin("mcdnnDestroyAlgorithmPerformance");
    check_given(&call, "algoPerf", algoPerf);
    check_number(&call, "numberToDestroy", numberToDestroy);
    const bool refused = call.status != 0;
    for (int i = 0; !refused && i < numberToDestroy; i++)
        descriptor_destroy(&call, "algoPerf", algoPerf[i], HANDLE_ALGORITHM_PERFORMANCE);
    return us_call_end(&call);
}

static Performance *performance(Call *call, mcdnnAlgorithmPerformance_t algoPerf)
{
    return descriptor_of(call, "algoPerf", algoPerf, HANDLE_ALGORITHM_PERFORMANCE, "a measurement of an algorithm");
}

mcdnnStatus_t mcdnnSetAlgorithmPerformance(
    mcdnnAlgorithmPerformance_t algoPerf, mcdnnAlgorithmDescriptor_t algoDesc,
    mcdnnStatus_t status, float time, size_t memory)
{
    Call call = us_call_begin("mcdnnSetAlgorithmPerformance");
    Performance *target = performance(&call, algoPerf);
    descriptor(&call, "algoDesc", algoDesc);
    if (call.status == 0)
        *target = (Performance){algoDesc, status, time, memory};
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetAlgorithmPerformance(
    const mcdnnAlgorithmPerformance_t algoPerf, mcdnnAlgorithmDescriptor_t *algoDesc,
    mcdnnStatus_t *status, float *time, size_t *memory)
{
    Call call = us_call_begin("mcdnnGetAlgorithmPerformance");
    const Performance *source = performance(&call, algoPerf);
    if (call.status == 0) {
        GIVE(algoDesc, source->algorithm);
        GIVE(status, source->status);
        GIVE(time, source->time);
        GIVE(memory, source->memory);
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetAlgorithmSpaceSize(
    mcdnnHandle_t handle, mcdnnAlgorithmDescriptor_t algoDesc, size_t *algoSpaceSizeInBytes)
{
    Call call = us_call_begin("mcdnnGetAlgorithmSpaceSize");
    check_handle(&call, handle);
    descriptor(&call, "algoDesc", algoDesc);
    check_given(&call, "algoSpaceSizeInBytes", algoSpaceSizeInBytes);
    if (call.status == 0)
        *algoSpaceSizeInBytes = sizeof(SavedAlgorithm);
    return us_call_end(&call);
}

static void check_space(Call *call, const void *space, size_t bytes)
{
    check_given(call, "algoSpace", space);
    us_require(call, bytes >= sizeof(SavedAlgorithm), "algoSpaceSizeInBytes", "minimum", MCDNN_STATUS_BAD_PARAM,
               "algoSpaceSizeInBytes is %zu, a saved algorithm takes %zu", bytes, sizeof(SavedAlgorithm));
}

mcdnnStatus_t mcdnnSaveAlgorithm(
    mcdnnHandle_t handle, mcdnnAlgorithmDescriptor_t algoDesc, void *algoSpace,
    size_t algoSpaceSizeInBytes)
{
    Call call = us_call_begin("mcdnnSaveAlgorithm");
    check_handle(&call, handle);
    const AlgorithmDescriptor *source = check_set(&call, "algoDesc", algoDesc);
    check_space(&call, algoSpace, algoSpaceSizeInBytes);
    if (call.status == 0) {
        SavedAlgorithm saved = {.version = MCDNN_VERSION, .algorithm = source->algorithm};
        memcpy(saved.mark, saved_mark, sizeof saved.mark);
        memcpy(algoSpace, &saved, sizeof saved);
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnRestoreAlgorithm(
    mcdnnHandle_t handle, void *algoSpace, size_t algoSpaceSizeInBytes,
    mcdnnAlgorithmDescriptor_t algoDesc)
{
    Call call = us_call_begin("mcdnnRestoreAlgorithm");
    check_handle(&call, handle);
    AlgorithmDescriptor *target = descriptor(&call, "algoDesc", algoDesc);
    check_space(&call, algoSpace, algoSpaceSizeInBytes);
    if (call.status != 0)
        return us_call_end(&call);
    SavedAlgorithm saved;
    memcpy(&saved, algoSpace, sizeof saved);
    bool known = memcmp(saved.mark, saved_mark, sizeof saved.mark) == 0 && saved.version == MCDNN_VERSION;
    us_require(&call, known, "algoSpace", "version", MCDNN_STATUS_NOT_SUPPORTED,
               "the space does not hold an algorithm that this version saved");
    if (call.status == 0)
        *target = (AlgorithmDescriptor){true, saved.algorithm};
    return us_call_end(&call);
}
