/* Algorithms of convolutions: workspace sizes, how many there are, which to take, and their measured times
 * (mcdnn-cnn 8.3, 9). The three directions differ in names only. */
#include "convolution.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The layout that the vendor's three structures have in common. */
typedef mcdnnConvolutionFwdAlgoPerf_t Result;
_Static_assert(sizeof(Result) == sizeof(mcdnnConvolutionBwdDataAlgoPerf_t) &&
                   sizeof(Result) == sizeof(mcdnnConvolutionBwdFilterAlgoPerf_t),
               "the three structures have one layout");

enum { MOST_ALGORITHMS = 8 };

/* ---- workspace and counts ---- */

static mcdnnStatus_t give_workspace_size(mcdnnHandle_t handle, ConvCall of, int algorithm, size_t *size)
{
    ConvCall *conv = &of;
    conv_open(conv, handle);
    check_given(&conv->call, "sizeInBytes", size);
    check_range(&conv->call, "algo", algorithm, 0, conv_algorithms(conv->direction) - 1);
    conv_check(conv);
    conv_check_algorithm(conv, algorithm);
    if (conv->call.status == 0)
        *size = 0;
    return us_call_end(&conv->call);
}

static mcdnnStatus_t give_count(const char *function, mcdnnHandle_t handle, int *count, ConvDirection direction)
{
    Call call = us_call_begin(function);
    check_handle(&call, handle);
    check_given(&call, "count", count);
    if (call.status == 0)
        *count = conv_algorithms(direction);
    return us_call_end(&call);
}

/* ---- results ---- */

/* Sums with groups of few channels aside, the product over columns is expected to be faster than rows. */
static int expected_rank(const ConvCall *conv, ConvMethod method)
{
    int64_t positions = conv->y->sizes[0];
    for (int axis = 0; axis < conv->conv->axes; axis++)
        positions *= conv->y->sizes[2 + axis];
    if (method == CONV_WINOGRAD) {
        const int64_t results = conv->w.sizes[0] / conv->conv->groups;
        const bool slopes = conv->direction == CONV_FILTER;
        return us_conv_winograd_pays(type_dtype(conv->x->type), slopes, conv->w.sizes[1], results, positions) ? 0 : 4;
    }
    return method == CONV_PLAIN ? 1 : method == CONV_PRODUCT ? 2 : 3;
}

static void run_here(void *context, const Launch *launch)
{
    KernelStatus *status = context;
    if (*status == KERNEL_OK)
        *status = launch->kernel(launch->views, launch->attributes);
}

/* Milliseconds of one run on data of our own. */
static mcdnnStatus_t measure(const ConvCall *conv, const ConvData *data, float *milliseconds)
{
    struct timespec begin, end;
    KernelStatus status = KERNEL_OK;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    conv_launch(conv, data, run_here, &status);
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    *milliseconds = (float)(1e3 * seconds);
    return status == KERNEL_OK ? MCDNN_STATUS_SUCCESS : MCDNN_STATUS_ALLOC_FAILED;
}

/* Every number with what is known of it; sort keys are expected ranks, or measured times. */
static void describe(const ConvCall *conv, const ConvData *data, Result *results)
{
    for (int number = 0; number < conv_algorithms(conv->direction); number++) {
        ConvData own_data = data != NULL ? *data : (ConvData){0};
        bool own;
        Result *result = &results[number];
        memset(result, 0, sizeof *result);
        result->algo = (mcdnnConvolutionFwdAlgo_t)number;
        result->time = -1;
        result->determinism = MCDNN_DETERMINISTIC;
        result->mathType = conv->conv->math;
        result->status = conv_method(conv, number, &own_data.method, &own) && own ? MCDNN_STATUS_SUCCESS
                                                                                  : MCDNN_STATUS_NOT_SUPPORTED;
        if (result->status == MCDNN_STATUS_SUCCESS)
            result->status = data != NULL ? measure(conv, &own_data, &result->time) : MCDNN_STATUS_SUCCESS;
    }
}

/* Successes first, by time or expectation; equal ones and the rest in the order of their numbers. */
static bool comes_before(const ConvCall *conv, const Result *a, const Result *b)
{
    const bool a_runs = a->status == MCDNN_STATUS_SUCCESS, b_runs = b->status == MCDNN_STATUS_SUCCESS;
    if (!a_runs || !b_runs)
        return a_runs && !b_runs;
    ConvMethod method_a, method_b;
    bool own;
    conv_method(conv, (int)a->algo, &method_a, &own);
    conv_method(conv, (int)b->algo, &method_b, &own);
    return a->time >= 0 ? a->time < b->time : expected_rank(conv, method_a) < expected_rank(conv, method_b);
}

static void sort(const ConvCall *conv, int count, Result *results)
{
    for (int i = 1; i < count; i++) {
        const Result moved = results[i];
        int place = i;
        for (; place > 0 && comes_before(conv, &moved, &results[place - 1]); place--)
            results[place] = results[place - 1];
        results[place] = moved;
    }
}

/* Host memory in place of the three operands. It is touched here, not by the first algorithm that is measured. */
static char *make_data(const ConvCall *conv, ConvData *data)
{
    const size_t x = tensor_bytes(conv->x), w = tensor_bytes(&conv->w), y = tensor_bytes(conv->y);
    char *memory = malloc(x + w + y + 3 * 64);
    if (memory == NULL)
        return NULL;
    memset(memory, 0, x + w + y + 3 * 64);
    *data = (ConvData){.x = memory, .w = memory + (x + 63) / 64 * 64, .alpha = 1};
    data->y = memory + (x + 63) / 64 * 64 + (w + 63) / 64 * 64;
    return memory;
}

typedef struct Search {
    ConvCall conv;
    int requested;
    int *returned;
    void *results;
    bool measures;
    struct {
        const char *name;
        const void *data;
    } given[3]; /* pointers that have to be there: measuring takes memory of its own */
} Search;

static mcdnnStatus_t search(mcdnnHandle_t handle, Search *search)
{
    ConvCall *conv = &search->conv;
    Call *call = &conv->call;
    conv_open(conv, handle);
    for (int i = 0; i < 3 && search->given[i].name != NULL; i++)
        check_given(call, search->given[i].name, search->given[i].data);
    check_given(call, "returnedAlgoCount", search->returned);
    check_given(call, "perfResults", search->results);
    check_range(call, "requestedAlgoCount", search->requested, 1, INT32_MAX);
    conv_check(conv);
    if (call->status != 0)
        return us_call_end(call);
    Result results[MOST_ALGORITHMS];
    ConvData data;
    char *memory = search->measures ? make_data(conv, &data) : NULL;
    us_require(call, !search->measures || memory != NULL, "perfResults", "memory", MCDNN_STATUS_ALLOC_FAILED,
               "no host memory to measure the algorithms on");
    if (call->status == 0) {
        const int all = conv_algorithms(conv->direction);
        describe(conv, search->measures ? &data : NULL, results);
        sort(conv, all, results);
        *search->returned = search->requested < all ? search->requested : all;
        memcpy(search->results, results, (size_t)*search->returned * sizeof *results);
    }
    free(memory);
    return us_call_end(call);
}

/* ---- forward ---- */

mcdnnStatus_t mcdnnGetConvolutionForwardAlgorithmMaxCount(mcdnnHandle_t handle, int *count)
{
    return give_count("mcdnnGetConvolutionForwardAlgorithmMaxCount", handle, count, CONV_FORWARD);
}

mcdnnStatus_t mcdnnGetConvolutionForwardWorkspaceSize(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t xDesc, const mcdnnFilterDescriptor_t wDesc,
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnTensorDescriptor_t yDesc,
    mcdnnConvolutionFwdAlgo_t algo, size_t *sizeInBytes)
{
    return give_workspace_size(handle, conv_of("mcdnnGetConvolutionForwardWorkspaceSize", CONV_FORWARD,
                                               "xDesc", xDesc, "wDesc", wDesc, "yDesc", yDesc, convDesc),
                               (int)algo, sizeInBytes);
}

mcdnnStatus_t mcdnnGetConvolutionForwardAlgorithm_v7(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t srcDesc, const mcdnnFilterDescriptor_t filterDesc,
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnTensorDescriptor_t destDesc,
    const int requestedAlgoCount, int *returnedAlgoCount, mcdnnConvolutionFwdAlgoPerf_t *perfResults)
{
    return search(handle, &(Search){
        .conv = conv_of("mcdnnGetConvolutionForwardAlgorithm_v7", CONV_FORWARD,
                        "srcDesc", srcDesc, "filterDesc", filterDesc, "destDesc", destDesc, convDesc),
        .requested = requestedAlgoCount, .returned = returnedAlgoCount, .results = perfResults});
}

mcdnnStatus_t mcdnnFindConvolutionForwardAlgorithm(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t xDesc, const mcdnnFilterDescriptor_t wDesc,
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnTensorDescriptor_t yDesc,
    const int requestedAlgoCount, int *returnedAlgoCount, mcdnnConvolutionFwdAlgoPerf_t *perfResults)
{
    return search(handle, &(Search){
        .conv = conv_of("mcdnnFindConvolutionForwardAlgorithm", CONV_FORWARD,
                        "xDesc", xDesc, "wDesc", wDesc, "yDesc", yDesc, convDesc),
        .requested = requestedAlgoCount, .returned = returnedAlgoCount, .results = perfResults,
        .measures = true});
}

mcdnnStatus_t mcdnnFindConvolutionForwardAlgorithmEx(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t xDesc, const void *x,
    const mcdnnFilterDescriptor_t wDesc, const void *w, const mcdnnConvolutionDescriptor_t convDesc,
    const mcdnnTensorDescriptor_t yDesc, void *y, const int requestedAlgoCount, int *returnedAlgoCount,
    mcdnnConvolutionFwdAlgoPerf_t *perfResults, void *workSpace, size_t workSpaceSizeInBytes)
{
    (void)workSpace;
    (void)workSpaceSizeInBytes;
    return search(handle, &(Search){
        .conv = conv_of("mcdnnFindConvolutionForwardAlgorithmEx", CONV_FORWARD,
                        "xDesc", xDesc, "wDesc", wDesc, "yDesc", yDesc, convDesc),
        .requested = requestedAlgoCount, .returned = returnedAlgoCount, .results = perfResults,
        .measures = true, .given = {{"x", x}, {"w", w}, {"y", y}}});
}

/* ---- backward to the data ---- */

mcdnnStatus_t mcdnnGetConvolutionBackwardDataAlgorithmMaxCount(mcdnnHandle_t handle, int *count)
{
    return give_count("mcdnnGetConvolutionBackwardDataAlgorithmMaxCount", handle, count, CONV_DATA);
}

mcdnnStatus_t mcdnnGetConvolutionBackwardDataWorkspaceSize(
    mcdnnHandle_t handle, const mcdnnFilterDescriptor_t wDesc, const mcdnnTensorDescriptor_t dyDesc,
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnTensorDescriptor_t dxDesc,
    mcdnnConvolutionBwdDataAlgo_t algo, size_t *sizeInBytes)
{
    return give_workspace_size(handle, conv_of("mcdnnGetConvolutionBackwardDataWorkspaceSize", CONV_DATA,
                                               "dxDesc", dxDesc, "wDesc", wDesc, "dyDesc", dyDesc, convDesc),
                               (int)algo, sizeInBytes);
}

mcdnnStatus_t mcdnnGetConvolutionBackwardDataAlgorithm_v7(
    mcdnnHandle_t handle, const mcdnnFilterDescriptor_t filterDesc, const mcdnnTensorDescriptor_t diffDesc,
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnTensorDescriptor_t gradDesc,
    const int requestedAlgoCount, int *returnedAlgoCount, mcdnnConvolutionBwdDataAlgoPerf_t *perfResults)
{
    return search(handle, &(Search){
        .conv = conv_of("mcdnnGetConvolutionBackwardDataAlgorithm_v7", CONV_DATA,
                        "gradDesc", gradDesc, "filterDesc", filterDesc, "diffDesc", diffDesc, convDesc),
        .requested = requestedAlgoCount, .returned = returnedAlgoCount, .results = perfResults});
}

mcdnnStatus_t mcdnnFindConvolutionBackwardDataAlgorithm(
    mcdnnHandle_t handle, const mcdnnFilterDescriptor_t wDesc, const mcdnnTensorDescriptor_t dyDesc,
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnTensorDescriptor_t dxDesc,
    const int requestedAlgoCount, int *returnedAlgoCount, mcdnnConvolutionBwdDataAlgoPerf_t *perfResults)
{
    return search(handle, &(Search){
        .conv = conv_of("mcdnnFindConvolutionBackwardDataAlgorithm", CONV_DATA,
                        "dxDesc", dxDesc, "wDesc", wDesc, "dyDesc", dyDesc, convDesc),
        .requested = requestedAlgoCount, .returned = returnedAlgoCount, .results = perfResults,
        .measures = true});
}

mcdnnStatus_t mcdnnFindConvolutionBackwardDataAlgorithmEx(
    mcdnnHandle_t handle, const mcdnnFilterDescriptor_t wDesc, const void *w,
    const mcdnnTensorDescriptor_t dyDesc, const void *dy, const mcdnnConvolutionDescriptor_t convDesc,
    const mcdnnTensorDescriptor_t dxDesc, void *dx, const int requestedAlgoCount, int *returnedAlgoCount,
    mcdnnConvolutionBwdDataAlgoPerf_t *perfResults, void *workSpace, size_t workSpaceSizeInBytes)
{
    (void)workSpace;
    (void)workSpaceSizeInBytes;
    return search(handle, &(Search){
        .conv = conv_of("mcdnnFindConvolutionBackwardDataAlgorithmEx", CONV_DATA,
                        "dxDesc", dxDesc, "wDesc", wDesc, "dyDesc", dyDesc, convDesc),
        .requested = requestedAlgoCount, .returned = returnedAlgoCount, .results = perfResults,
        .measures = true, .given = {{"w", w}, {"dy", dy}, {"dx", dx}}});
}

/* ---- backward to the filter ---- */

mcdnnStatus_t mcdnnGetConvolutionBackwardFilterAlgorithmMaxCount(mcdnnHandle_t handle, int *count)
{
    return give_count("mcdnnGetConvolutionBackwardFilterAlgorithmMaxCount", handle, count, CONV_FILTER);
}

mcdnnStatus_t mcdnnGetConvolutionBackwardFilterWorkspaceSize(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t xDesc, const mcdnnTensorDescriptor_t dyDesc,
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnFilterDescriptor_t gradDesc,
    mcdnnConvolutionBwdFilterAlgo_t algo, size_t *sizeInBytes)
{
    return give_workspace_size(handle, conv_of("mcdnnGetConvolutionBackwardFilterWorkspaceSize", CONV_FILTER,
                                               "xDesc", xDesc, "gradDesc", gradDesc, "dyDesc", dyDesc, convDesc),
                               (int)algo, sizeInBytes);
}

mcdnnStatus_t mcdnnGetConvolutionBackwardFilterAlgorithm_v7(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t srcDesc, const mcdnnTensorDescriptor_t diffDesc,
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnFilterDescriptor_t gradDesc,
    const int requestedAlgoCount, int *returnedAlgoCount, mcdnnConvolutionBwdFilterAlgoPerf_t *perfResults)
{
    return search(handle, &(Search){
        .conv = conv_of("mcdnnGetConvolutionBackwardFilterAlgorithm_v7", CONV_FILTER,
                        "srcDesc", srcDesc, "gradDesc", gradDesc, "diffDesc", diffDesc, convDesc),
        .requested = requestedAlgoCount, .returned = returnedAlgoCount, .results = perfResults});
}

mcdnnStatus_t mcdnnFindConvolutionBackwardFilterAlgorithm(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t xDesc, const mcdnnTensorDescriptor_t dyDesc,
    const mcdnnConvolutionDescriptor_t convDesc, const mcdnnFilterDescriptor_t dwDesc,
    const int requestedAlgoCount, int *returnedAlgoCount, mcdnnConvolutionBwdFilterAlgoPerf_t *perfResults)
{
    return search(handle, &(Search){
        .conv = conv_of("mcdnnFindConvolutionBackwardFilterAlgorithm", CONV_FILTER,
                        "xDesc", xDesc, "dwDesc", dwDesc, "dyDesc", dyDesc, convDesc),
        .requested = requestedAlgoCount, .returned = returnedAlgoCount, .results = perfResults,
        .measures = true});
}

mcdnnStatus_t mcdnnFindConvolutionBackwardFilterAlgorithmEx(
    mcdnnHandle_t handle, const mcdnnTensorDescriptor_t xDesc, const void *x,
    const mcdnnTensorDescriptor_t dyDesc, const void *y, const mcdnnConvolutionDescriptor_t convDesc,
    const mcdnnFilterDescriptor_t dwDesc, void *dw, const int requestedAlgoCount, int *returnedAlgoCount,
    mcdnnConvolutionBwdFilterAlgoPerf_t *perfResults, void *workSpace, size_t workSpaceSizeInBytes)
{
    (void)workSpace;
    (void)workSpaceSizeInBytes;
    return search(handle, &(Search){
        .conv = conv_of("mcdnnFindConvolutionBackwardFilterAlgorithmEx", CONV_FILTER,
                        "xDesc", xDesc, "dwDesc", dwDesc, "dyDesc", dyDesc, convDesc),
        .requested = requestedAlgoCount, .returned = returnedAlgoCount, .results = perfResults,
        .measures = true, .given = {{"x", x}, {"y", y}, {"dw", dw}}});
}
