/* Models hold operations of a communicator, which is used between and behind them, without a wait of the host: in one stream, in
 * several that events order or nothing does, in branches and loops of one model. All ranks call the same in the same
 * order, so all must get on, with the numbers of that order. The two ranks are threads, or processes (argument "processes").
 * Prints "ok". */
#include "acl/acl.h"
#include "hccl/hccl.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 2, COUNT = 3, ROUNDS = 6, LONG_MS = 60000, DELAY_US = 20000 };

static HcclRootInfo root;

static void must(int status, int line, const char *what)
{
    if (status != 0) {
        const char *text = aclGetRecentErrMsg();
        printf("line %d: %s: %d, %s\n", line, what, status, text != NULL ? text : "");
        fflush(stdout);
        _exit(1);
    }
}
#define MUST(call) must((int)(call), __LINE__, #call)

typedef struct Rank {
    int number;
    HcclComm comm;
    aclrtStream s, t;
    aclrtEvent forth, back;
    int64_t *x, *y; /* COUNT numbers each */
} Rank;

static void put(void *address, int64_t value)
{
    int64_t host[COUNT];
    for (int i = 0; i < COUNT; i++) {
        host[i] = value + i;
    }
    MUST(aclrtMemcpy(address, sizeof host, host, sizeof host, ACL_MEMCPY_HOST_TO_DEVICE));
}

static void finish(const Rank *rank)
{
    MUST(aclrtSynchronizeStreamWithTimeout(rank->s, LONG_MS));
    MUST(aclrtSynchronizeStreamWithTimeout(rank->t, LONG_MS));
}

/* What becomes of numbers that begin with `first` on rank 0 and `second` on rank 1 and are reduced in place by these operations:
 * s(um), p(roduct). Their order shows. */
static void expect(const Rank *rank, const void *address, int64_t first, int64_t second, const char *operations)
{
    int64_t host[COUNT];
    finish(rank);
    MUST(aclrtMemcpy(host, sizeof host, address, sizeof host, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 0; i < COUNT; i++) {
        int64_t a = first + i, b = second + i;
        for (const char *c = operations; *c != '\0'; c++) {
            a = b = *c == 's' ? a + b : a * b;
        }
        const int64_t wanted = *operations == '\0' && rank->number == 1 ? b : a;
        if (host[i] != wanted) {
            printf("rank %d, %s: element %d is %lld, not %lld\n", rank->number, operations, i, (long long)host[i],
                   (long long)wanted);
            fflush(stdout);
            _exit(1);
        }
    }
}

static void reduce(const Rank *rank, char operation, void *address, aclrtStream stream)
{
    const HcclReduceOp op = operation == 's' ? HCCL_REDUCE_SUM : HCCL_REDUCE_PROD;
    MUST(HcclAllReduce(address, address, COUNT, HCCL_DATA_TYPE_INT64, op, rank->comm, stream));
}

static void begin(aclrtStream stream)
{
    MUST(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
}

static aclmdlRI end(aclrtStream stream)
{
    aclmdlRI model;
    MUST(aclmdlRICaptureEnd(stream, &model));
    return model;
}

static aclmdlRI reducing(const Rank *rank, char operation, void *address)
{
    begin(rank->s);
    reduce(rank, operation, address, rank->s);
    return end(rank->s);
}

static void go_on_in(aclrtEvent event, aclrtStream from, aclrtStream to)
{
    MUST(aclrtRecordEvent(event, from));
    MUST(aclrtStreamWaitEvent(to, event));
}

static void be_late(void *argument)
{
    (void)argument;
    usleep(DELAY_US);
}

static void delay(aclrtStream stream)
{
    MUST(aclrtLaunchHostFunc(stream, be_late, NULL));
}

static void put_both(const Rank *rank)
{
    put(rank->x, 1 + rank->number);
    put(rank->y, 3 + 4 * rank->number);
}

/* ---- what is queued ---- */

static void one_stream(const Rank *rank, aclmdlRI sum, aclmdlRI product)
{
    put_both(rank);
    MUST(aclmdlRIExecuteAsync(sum, rank->s));
    reduce(rank, 'p', rank->x, rank->s);
    MUST(aclmdlRIExecuteAsync(sum, rank->s));
    MUST(aclmdlRIExecuteAsync(sum, rank->s));
    reduce(rank, 'p', rank->x, rank->s);
    MUST(aclmdlRIExecuteAsync(product, rank->s));
    reduce(rank, 's', rank->y, rank->s);
    expect(rank, rank->x, 1, 2, "spssp");
    expect(rank, rank->y, 3, 7, "ps");
}

static void ordered_streams(const Rank *rank, aclmdlRI sum)
{
    put_both(rank);
    MUST(aclmdlRIExecuteAsync(sum, rank->s));
    go_on_in(rank->forth, rank->s, rank->t);
    reduce(rank, 'p', rank->x, rank->t);
    MUST(aclmdlRIExecuteAsync(sum, rank->t));
    go_on_in(rank->back, rank->t, rank->s);
    MUST(aclmdlRIExecuteAsync(sum, rank->s));
    reduce(rank, 'p', rank->x, rank->s);
    expect(rank, rank->x, 1, 2, "spssp");
}

/* Each rank is late in another stream: the order of the calls counts, not that of the streams. */
static void streams_without_order(const Rank *rank, aclmdlRI sum, aclmdlRI product)
{
    put_both(rank);
    delay(rank->number == 0 ? rank->s : rank->t);
    MUST(aclmdlRIExecuteAsync(sum, rank->s));
    MUST(aclmdlRIExecuteAsync(product, rank->t));
    reduce(rank, 's', rank->x, rank->s);
    MUST(aclmdlRIExecuteAsync(product, rank->t));
    expect(rank, rank->x, 1, 2, "ss");
    expect(rank, rank->y, 3, 7, "pp");
}

static void one_model_in_two_streams(const Rank *rank, aclmdlRI sum, aclmdlRI product)
{
    put_both(rank);
    delay(rank->number == 0 ? rank->s : rank->t);
    MUST(aclmdlRIExecuteAsync(sum, rank->s));
    MUST(aclmdlRIExecuteAsync(sum, rank->t));
    reduce(rank, 's', rank->y, rank->t);
    MUST(aclmdlRIExecuteAsync(product, rank->t));
    expect(rank, rank->x, 1, 2, "ss");
    expect(rank, rank->y, 3, 7, "sp");
}

static void branches(const Rank *rank)
{
    begin(rank->s);
    go_on_in(rank->forth, rank->s, rank->t);
    reduce(rank, 's', rank->y, rank->t); /* before those of the first branch */
    reduce(rank, 's', rank->x, rank->s);
    reduce(rank, 'p', rank->y, rank->t);
    reduce(rank, 'p', rank->x, rank->s);
    go_on_in(rank->back, rank->t, rank->s);
    aclmdlRI model = end(rank->s);
    put_both(rank);
    MUST(aclmdlRIExecuteAsync(model, rank->s));
    reduce(rank, 's', rank->x, rank->s);
    MUST(aclmdlRIExecuteAsync(model, rank->t));
    expect(rank, rank->x, 1, 2, "spssp");
    expect(rank, rank->y, 3, 7, "spsp");
    MUST(aclmdlRIDestroy(model));
}

static void message(const Rank *rank, void *address)
{
    if (rank->number == 0) {
        MUST(HcclSend(address, COUNT, HCCL_DATA_TYPE_INT64, 1, rank->comm, rank->s));
    } else {
        MUST(HcclRecv(address, COUNT, HCCL_DATA_TYPE_INT64, 0, rank->comm, rank->s));
    }
}

/* Rank 1 gets what rank 0 had at that time: x, and y as it was before the sum. */
static void messages(const Rank *rank, aclmdlRI sum)
{
    begin(rank->s);
    message(rank, rank->x);
    aclmdlRI model = end(rank->s);
    put_both(rank);
    MUST(aclmdlRIExecuteAsync(model, rank->s));
    message(rank, rank->y);
    MUST(aclmdlRIExecuteAsync(sum, rank->s));
    MUST(aclmdlRIExecuteAsync(model, rank->s));
    message(rank, rank->y);
    expect(rank, rank->x, 1, 1, "s");
    expect(rank, rank->y, 3, 3, "");
    MUST(aclmdlRIDestroy(model));
}

/* A stream with a model that is built by hand, which runs more than once. */
static void built_model(const Rank *rank)
{
    aclmdlRI model;
    aclrtStream bound;
    MUST(aclrtCreateStreamWithConfig(&bound, 0, ACL_STREAM_PERSISTENT));
    MUST(aclmdlRIBuildBegin(&model, 0));
    MUST(aclmdlRIBindStream(model, bound, ACL_MODEL_STREAM_FLAG_HEAD));
    reduce(rank, 's', rank->x, bound);
    MUST(aclmdlRIEndTask(model, bound));
    MUST(aclmdlRIBuildEnd(model, NULL));
    put_both(rank);
    MUST(aclmdlRIExecuteAsync(model, rank->s));
    reduce(rank, 'p', rank->x, rank->s);
    MUST(aclmdlRIExecuteAsync(model, rank->s));
    expect(rank, rank->x, 1, 2, "sps");
    MUST(aclmdlRIUnbindStream(model, bound));
    MUST(aclmdlRIDestroy(model));
    MUST(aclrtDestroyStream(bound));
}

/* Updates in the order of the stream: launches that are queued behind one run what it has brought, in their own turns. */
static void updated_model(const Rank *rank)
{
    aclrtTaskGrp groups[2];
    begin(rank->s);
    MUST(aclmdlRICaptureTaskGrpBegin(rank->s));
    reduce(rank, 's', rank->x, rank->s);
    MUST(aclmdlRICaptureTaskGrpEnd(rank->s, &groups[0]));
    MUST(aclmdlRICaptureTaskGrpBegin(rank->s));
    message(rank, rank->x);
    MUST(aclmdlRICaptureTaskGrpEnd(rank->s, &groups[1]));
    aclmdlRI model = end(rank->s);
    put_both(rank);
    MUST(aclmdlRIExecuteAsync(model, rank->s));
    delay(rank->s);
    for (int group = 0; group < 2; group++) {
        MUST(aclmdlRICaptureTaskUpdateBegin(rank->s, groups[group]));
        if (group == 0) {
            reduce(rank, 's', rank->y, rank->s);
        } else {
            message(rank, rank->y);
        }
        MUST(aclmdlRICaptureTaskUpdateEnd(rank->s));
    }
    MUST(aclmdlRIExecuteAsync(model, rank->s));
    reduce(rank, 'p', rank->y, rank->s);
    message(rank, rank->x);
    MUST(aclmdlRIExecuteAsync(model, rank->s));
    expect(rank, rank->x, 1, 2, "s");
    expect(rank, rank->y, 3, 7, "sps");
    MUST(aclmdlRIDestroy(model));
}

/* How often the operation in the loop runs is known only in the run. */
static void model_with_a_loop(const Rank *rank)
{
    aclmdlRICaptureStatus status;
    aclmdlRI parent, child;
    aclmdlRICondHandle handle;
    uint64_t *goes_on;
    begin(rank->s);
    MUST(aclmdlRICaptureGetInfo(rank->s, &status, &parent));
    MUST(aclmdlRICondHandleCreate(parent, 1, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &handle));
    MUST(aclmdlRICondHandleGetCondPtr(handle, &goes_on));
    reduce(rank, 's', rank->x, rank->s);
    MUST(aclmdlRIAddCondTask((aclmdlRICondTaskParams){handle, ACL_MODEL_RI_COND_TYPE_WHILE, 1, &child}, rank->s, 0));
    reduce(rank, 's', rank->x, rank->s);
    MUST(aclmdlRICaptureToModelRIBegin(rank->t, child, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    reduce(rank, 'p', rank->x, rank->t);
    MUST(aclrtValueWrite(goes_on, 0, 0, rank->t));
    end(rank->t);
    aclmdlRI model = end(rank->s);
    put_both(rank);
    MUST(aclmdlRIExecuteAsync(model, rank->s));
    reduce(rank, 'p', rank->x, rank->s);
    MUST(aclmdlRIExecuteAsync(model, rank->s));
    reduce(rank, 's', rank->x, rank->s);
    expect(rank, rank->x, 1, 2, "spspspss");
    MUST(aclmdlRIDestroy(model));
}

/* Operations of a model count as queued from the launch on. */
static void busy(const Rank *rank, aclmdlRI sum)
{
    put_both(rank);
    delay(rank->s);
    MUST(aclmdlRIExecuteAsync(sum, rank->s));
    const bool may_run_at_once = getenv("UNDERSTUDY_STREAM") != NULL && strcmp(getenv("UNDERSTUDY_STREAM"), "inline") == 0;
    if (!may_run_at_once) {
        MUST(HcclCommDestroy(rank->comm) != HCCL_E_AGAIN);
    }
    expect(rank, rank->x, 1, 2, "s");
}

/* The last thing: the model of rank 0 fails before its operation, so nothing of what follows may be taken for that. */
static void fail_half_way(const Rank *rank)
{
    void *gone;
    MUST(aclrtMalloc(&gone, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    begin(rank->s);
    MUST(aclrtMemsetAsync(gone, 64, 1, 64, rank->s));
    reduce(rank, 's', rank->x, rank->s);
    aclmdlRI model = end(rank->s);
    put_both(rank);
    MUST(HcclBarrier(rank->comm, rank->s)); /* once a rank has failed the other one can record no more operations */
    finish(rank);
    if (rank->number == 0) {
        MUST(aclrtFree(gone));
    }
    MUST(aclmdlRIExecuteAsync(model, rank->s));
    /* Refused if the failure is known by now. */
    const HcclResult queued = HcclAllReduce(rank->y, rank->y, COUNT, HCCL_DATA_TYPE_INT64, HCCL_REDUCE_SUM, rank->comm,
                                            rank->t);
    MUST(queued != HCCL_SUCCESS && queued != HCCL_E_REMOTE);
    const aclError of_model = aclrtSynchronizeStreamWithTimeout(rank->s, LONG_MS);
    const aclError of_next = aclrtSynchronizeStreamWithTimeout(rank->t, LONG_MS);
    MUST(of_model == 0 || of_model == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    MUST(queued == HCCL_SUCCESS && (of_next == 0 || of_next == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT));
    MUST(aclmdlRIDestroy(model));
    if (rank->number == 1) {
        MUST(aclrtFree(gone));
    }
}

static void *run(void *argument)
{
    Rank rank = {.number = (int)(intptr_t)argument};
    MUST(aclrtSetDevice(0));
    MUST(HcclCommInitRootInfo(RANKS, &root, (uint32_t)rank.number, &rank.comm));
    MUST(aclrtCreateStream(&rank.s));
    MUST(aclrtCreateStream(&rank.t));
    MUST(aclrtCreateEventExWithFlag(&rank.forth, ACL_EVENT_SYNC));
    MUST(aclrtCreateEventExWithFlag(&rank.back, ACL_EVENT_SYNC));
    MUST(aclrtMalloc((void **)&rank.x, COUNT * sizeof *rank.x, ACL_MEM_MALLOC_HUGE_FIRST));
    MUST(aclrtMalloc((void **)&rank.y, COUNT * sizeof *rank.y, ACL_MEM_MALLOC_HUGE_FIRST));
    aclmdlRI sum = reducing(&rank, 's', rank.x), product = reducing(&rank, 'p', rank.y);
    for (int round = 0; round < ROUNDS; round++) {
        one_stream(&rank, sum, product);
        ordered_streams(&rank, sum);
        streams_without_order(&rank, sum, product);
        one_model_in_two_streams(&rank, sum, product);
        branches(&rank);
        messages(&rank, sum);
        built_model(&rank);
        updated_model(&rank);
        model_with_a_loop(&rank);
    }
    busy(&rank, sum);
    fail_half_way(&rank);
    MUST(aclmdlRIDestroy(sum));
    MUST(aclmdlRIDestroy(product));
    MUST(HcclCommDestroy(rank.comm));
    MUST(aclrtFree(rank.x));
    MUST(aclrtFree(rank.y));
    MUST(aclrtDestroyEvent(rank.forth));
    MUST(aclrtDestroyEvent(rank.back));
    MUST(aclrtDestroyStream(rank.s));
    MUST(aclrtDestroyStream(rank.t));
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[RANKS];
    MUST(aclInit(NULL));
    MUST(aclrtSetDevice(0));
    MUST(HcclGetRootInfo(&root));
    for (int rank = 0; rank < RANKS; rank++) {
        MUST(pthread_create(&threads[rank], NULL, run, (void *)(intptr_t)rank));
    }
    for (int rank = 0; rank < RANKS; rank++) {
        MUST(pthread_join(threads[rank], NULL));
    }
}

/* Rank 0 tells the other one where they meet. */
static void run_processes(void)
{
    int ends[2], status = 0;
    MUST(pipe(ends));
    const pid_t child = fork();
    MUST(aclInit(NULL));
    MUST(aclrtSetDevice(0));
    if (child != 0) {
        MUST(HcclGetRootInfo(&root));
        MUST(write(ends[1], &root, sizeof root) != (ssize_t)sizeof root);
    } else {
        MUST(read(ends[0], &root, sizeof root) != (ssize_t)sizeof root);
    }
    run((void *)(intptr_t)(child == 0));
    if (child == 0) {
        exit(0);
    }
    MUST(waitpid(child, &status, 0) != child || status != 0);
}

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "processes") == 0) {
        run_processes();
    } else {
        run_threads();
    }
    puts("ok");
    return 0;
}
