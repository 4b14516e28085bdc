/* One thread captures a stream again and again, while another records an event on it, multiplies vectors there and waits for
 * both; one begins captures of streams that another destroys. Prints "ok". */
#include "meeting.h"

#include <mc_runtime.h>
#include <mcblas/mcblas.h>

#include <stdbool.h>

enum { ROUNDS = 20000, CAPTURES = 4000, STREAMS = 20000, COUNT = 100 };

static mcStream_t stream;
static atomic_bool over;
static mcGraph_t graphs[CAPTURES]; /* kept: what is in one by mistake does not come to an end by the graph's end */

static void *capture(void *unused)
{
    (void)unused;
    for (int i = 0; i < CAPTURES && !atomic_load(&over); i++) {
        CHECK(mcStreamBeginCapture(stream, mcStreamCaptureModeRelaxed) == mcSuccess);
        mcStreamEndCapture(stream, &graphs[i]); /* fails where a wait for a captured event has spoiled the capture */
    }
    return NULL;
}

static void work(void)
{
    mcEvent_t event;
    mcblasHandle_t blas;
    float host[COUNT], *ones;
    for (int i = 0; i < COUNT; i++) {
        host[i] = 1;
    }
    CHECK(mcEventCreate(&event) == mcSuccess && mcMalloc((void **)&ones, sizeof host) == mcSuccess);
    CHECK(mcMemcpy(ones, host, sizeof host, mcMemcpyHostToDevice) == mcSuccess);
    CHECK(mcblasCreate(&blas) == MCBLAS_STATUS_SUCCESS && mcblasSetStream(blas, stream) == MCBLAS_STATUS_SUCCESS);
    for (int i = 0; i < ROUNDS; i++) {
        float dot = -1;
        const mcblasStatus_t status = mcblasSdot(blas, COUNT, ones, 1, ones, 1, &dot);
        CHECK(status == MCBLAS_STATUS_SUCCESS ? dot == COUNT : dot == -1);
        if (mcEventRecord(event, stream) == mcSuccess) {
            mcEventSynchronize(event); /* comes back, whatever it says */
        }
    }
    CHECK(mcblasDestroy(blas) == MCBLAS_STATUS_SUCCESS && mcEventDestroy(event) == mcSuccess && mcFree(ones) == mcSuccess);
}

static void work_while_captured(void)
{
    pthread_t thread;
    CHECK(mcStreamCreateWithFlags(&stream, mcStreamNonBlocking) == mcSuccess);
    CHECK(pthread_create(&thread, NULL, capture, NULL) == 0);
    work();
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    for (int i = 0; i < CAPTURES; i++) {
        CHECK(graphs[i] == NULL || mcGraphDestroy(graphs[i]) == mcSuccess);
    }
    CHECK(mcStreamDestroy(stream) == mcSuccess);
}

static _Atomic(mcStream_t) ending;

static void *capture_what_ends(void *unused)
{
    (void)unused;
    for (int i = 1; i <= STREAMS; i++) {
        mcGraph_t graph;
        wait_for_round(i);
        mcStream_t found = atomic_load(&ending);
        mcStreamBeginCapture(found, mcStreamCaptureModeRelaxed);
        if (mcStreamEndCapture(found, &graph) == mcSuccess) {
            CHECK(mcGraphDestroy(graph) == mcSuccess);
        }
        end_round(i);
    }
    return NULL;
}

static void end_what_is_captured(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, capture_what_ends, NULL) == 0);
    for (int i = 1; i <= STREAMS; i++) {
        mcStream_t made;
        CHECK(mcStreamCreateWithFlags(&made, mcStreamNonBlocking) == mcSuccess);
        atomic_store(&ending, made);
        let_go_on(i);
        CHECK(mcStreamDestroy(made) == mcSuccess);
        wait_for_end(i);
        CHECK(mcDeviceSynchronize() == mcSuccess);
    }
    pthread_join(thread, NULL);
}

int main(void)
{
    work_while_captured();
    end_what_is_captured();
    puts("ok");
    return 0;
}
