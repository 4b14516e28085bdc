/* Threads that use streams, events, executable graphs, handles and descriptors which another thread ends at the same
 * moment. Any status is right; nothing may crash or hang. Prints "ok". */
#include "../check.h"

#include <mc_runtime.h>
#include <mcblas/mcblas.h>
#include <mcblas/mcblasLt.h>
#include <mcdnn/mcdnn.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __SANITIZE_THREAD__ /* sees a race by the order of accesses, without the luck that a crash needs */
enum { ROUNDS = 300 };
#else
enum { ROUNDS = 3000 };
#endif
enum { USERS = 3, COUNT = 4 };

static float *memory;
static mcGraph_t graph;
static _Atomic(mcStream_t) shared_stream;
static _Atomic(mcEvent_t) shared_event;
static _Atomic(mcGraphExec_t) shared_exec;
static _Atomic(mcblasHandle_t) shared_blas;
static _Atomic(mcblasLtHandle_t) shared_lt;
static _Atomic(mcblasLtMatmulDesc_t) shared_product;
static _Atomic(mcdnnHandle_t) shared_dnn;
static _Atomic(mcdnnTensorDescriptor_t) shared_tensor;
static _Atomic(mcdnnRNNDataDescriptor_t) shared_sequences;
static atomic_bool over;

/* All record and wait for one event in one stream. The sum waits, so that no queue grows without end. */
static void *use_for_ever(void *unused)
{
    const float one = 1.0f;
    while (!atomic_load(&over)) {
        float sum = 0.0f;
        int lengths[2];
        size_t size = 0;
        int32_t type = 0;
        mcEventRecord(atomic_load(&shared_event), atomic_load(&shared_stream));
        mcStreamWaitEvent(atomic_load(&shared_stream), atomic_load(&shared_event), 0);
        mcGraphLaunch(atomic_load(&shared_exec), atomic_load(&shared_stream));
        mcblasSasum(atomic_load(&shared_blas), COUNT, memory, 1, &sum);
        mcblasLtMatmulDescGetAttribute(atomic_load(&shared_product), MCBLASLT_MATMUL_DESC_COMPUTE_TYPE, &type,
                                       sizeof type, &size);
        mcblasLtMatmul(atomic_load(&shared_lt), atomic_load(&shared_product), &one, memory, NULL, memory, NULL, &one,
                       memory, NULL, memory, NULL, NULL, NULL, 0, NULL);
        mcdnnScaleTensor(atomic_load(&shared_dnn), atomic_load(&shared_tensor), memory, &one);
        mcdnnGetRNNDataDescriptor(atomic_load(&shared_sequences), NULL, NULL, NULL, NULL, NULL, 2, lengths, NULL);
    }
    return unused;
}

static void do_nothing(void *unused)
{
    (void)unused;
}

static void replace_runtime_objects(void)
{
    mcStream_t stream = NULL;
    mcEvent_t event = NULL;
    mcGraphExec_t exec = NULL;
    CHECK(mcStreamCreate(&stream) == mcSuccess && mcEventCreate(&event) == mcSuccess);
    CHECK(mcGraphInstantiate(&exec, graph, NULL, NULL, 0) == mcSuccess);
    mcEventDestroy(atomic_exchange(&shared_event, event));
    mcStreamDestroy(atomic_exchange(&shared_stream, stream));
    mcGraphExecDestroy(atomic_exchange(&shared_exec, exec));
}

static void replace_library_objects(void)
{
    const int lengths[] = {2, 1};
    mcblasHandle_t blas = NULL;
    mcblasLtHandle_t lt = NULL;
    mcblasLtMatmulDesc_t product = NULL;
    mcdnnHandle_t dnn = NULL;
    mcdnnTensorDescriptor_t tensor = NULL;
    mcdnnRNNDataDescriptor_t sequences = NULL;
    CHECK(mcblasCreate(&blas) == MCBLAS_STATUS_SUCCESS && mcblasLtCreate(&lt) == MCBLAS_STATUS_SUCCESS);
    CHECK(mcblasLtMatmulDescCreate(&product, MCBLAS_COMPUTE_32F, MACA_R_32F) == MCBLAS_STATUS_SUCCESS);
    CHECK(mcdnnCreate(&dnn) == MCDNN_STATUS_SUCCESS && mcdnnCreateTensorDescriptor(&tensor) == MCDNN_STATUS_SUCCESS);
    CHECK(mcdnnSetTensor4dDescriptor(tensor, MCDNN_TENSOR_NCHW, MCDNN_DATA_FLOAT, 1, 1, 1, COUNT) == MCDNN_STATUS_SUCCESS);
    CHECK(mcdnnCreateRNNDataDescriptor(&sequences) == MCDNN_STATUS_SUCCESS);
    CHECK(mcdnnSetRNNDataDescriptor(sequences, MCDNN_DATA_FLOAT, MCDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, 2, 2, 3, lengths,
                                    NULL) == MCDNN_STATUS_SUCCESS);
    mcblasDestroy(atomic_exchange(&shared_blas, blas));
    mcblasLtDestroy(atomic_exchange(&shared_lt, lt));
    mcblasLtMatmulDescDestroy(atomic_exchange(&shared_product, product));
    mcdnnDestroy(atomic_exchange(&shared_dnn, dnn));
    mcdnnDestroyTensorDescriptor(atomic_exchange(&shared_tensor, tensor));
    mcdnnDestroyRNNDataDescriptor(atomic_exchange(&shared_sequences, sequences));
}

int main(void)
{
    mcStream_t recorder = NULL;
    pthread_t users[USERS];
    CHECK(mcMalloc((void **)&memory, COUNT * sizeof *memory) == mcSuccess);
    CHECK(mcStreamCreate(&recorder) == mcSuccess);
    CHECK(mcStreamBeginCapture(recorder, mcStreamCaptureModeRelaxed) == mcSuccess);
    CHECK(mcLaunchHostFunc(recorder, do_nothing, NULL) == mcSuccess);
    CHECK(mcStreamEndCapture(recorder, &graph) == mcSuccess);
    for (int i = 0; i < USERS; i++) {
        CHECK(pthread_create(&users[i], NULL, use_for_ever, NULL) == 0);
    }
    for (int round = 0; round < ROUNDS; round++) {
        replace_library_objects();
        if (round % 8 == 0) {
            replace_runtime_objects();
        }
    }
    atomic_store(&over, true);
    for (int i = 0; i < USERS; i++) {
        CHECK(pthread_join(users[i], NULL) == 0);
    }
    CHECK(mcDeviceSynchronize() == mcSuccess);
    printf("ok\n");
    return 0;
}
