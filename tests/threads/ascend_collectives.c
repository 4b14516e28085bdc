/* The ranks of a communicator are threads: they make communicators that have the same names as the last ones, and end them;
 * they reduce on two streams, send round a ring in groups, and do so with a communicator of half of them, while another thread
 * asks about the first one. Prints "ok". */
#define _GNU_SOURCE /* memfd_create */
#include "acl/acl.h"
#include "hccl/hccl.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 4, ROUNDS = 12, COUNT = 40009 };

static HcclRootInfo root;
static char table[32];
static HcclComm asked;
static atomic_int ended;

static void must(int status, const char *what)
{
    if (status != 0) {
        const char *text = aclGetRecentErrMsg();
        printf("%s: %d, %s\n", what, status, text != NULL ? text : "");
        exit(1);
    }
}
#define MUST(call) must((int)(call), #call)

static void *device_array(int32_t value)
{
    void *made;
    int32_t *host = malloc(COUNT * sizeof *host);
    for (int i = 0; i < COUNT; i++) {
        host[i] = value + i;
    }
    MUST(aclrtMalloc(&made, COUNT * sizeof *host, ACL_MEM_MALLOC_HUGE_FIRST));
    MUST(aclrtMemcpy(made, COUNT * sizeof *host, host, COUNT * sizeof *host, ACL_MEMCPY_HOST_TO_DEVICE));
    free(host);
    return made;
}

/* Element i is factor * i + value. */
static void expect(const void *address, int32_t factor, int32_t value, const char *what)
{
    int32_t *host = malloc(COUNT * sizeof *host);
    MUST(aclrtMemcpy(host, COUNT * sizeof *host, address, COUNT * sizeof *host, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 0; i < COUNT; i++) {
        if (host[i] != factor * i + value) {
            printf("%s: element %d is %d\n", what, i, (int)host[i]);
            exit(1);
        }
    }
    free(host);
}

/* Of the ranks that are as even as this one; both halves have the same number. */
static HcclComm make_half(HcclComm whole, uint32_t rank, uint64_t number)
{
    uint32_t ids[RANKS / 2];
    HcclCommConfig config;
    HcclComm half;
    HcclCommConfigInit(&config);
    for (uint32_t i = 0; i < RANKS / 2; i++) {
        ids[i] = 2 * i + rank % 2;
    }
    MUST(HcclCreateSubCommConfig(&whole, RANKS / 2, ids, number, rank / 2, &config, &half));
    return half;
}

/* Nothing keeps a rank from being a communicator ahead of the others. */
static void use_names_again(HcclComm whole, uint32_t rank)
{
    for (int round = 0; round < ROUNDS; round++) {
        HcclComm made;
        MUST(HcclCommInitClusterInfo(table, rank, &made));
        MUST(HcclCommDestroy(made));
    }
    for (int round = 0; round < 10 * ROUNDS; round++) {
        MUST(HcclCommDestroy(make_half(whole, rank, 0)));
    }
}

static void run_half(HcclComm whole, uint32_t rank, int round, void *x, void *y, aclrtStream stream)
{
    const HcclComm half = make_half(whole, rank, (uint64_t)round);
    MUST(HcclAllReduce(x, y, COUNT, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_MAX, half, stream));
    MUST(aclrtSynchronizeStream(stream));
    expect(y, 1, 100 * (RANKS - 2 + (int)(rank % 2)), "half");
    MUST(HcclCommDestroy(half));
}

static void run_ring(HcclComm whole, uint32_t rank, void *x, void *y, aclrtStream stream)
{
    const uint32_t before = (rank + RANKS - 1) % RANKS;
    MUST(HcclGroupStart());
    MUST(HcclSend(x, COUNT, HCCL_DATA_TYPE_INT32, (rank + 1) % RANKS, whole, stream));
    MUST(HcclRecv(y, COUNT, HCCL_DATA_TYPE_INT32, before, whole, stream));
    MUST(HcclGroupEnd());
    MUST(aclrtSynchronizeStream(stream));
    expect(y, 1, 100 * (int)before, "ring");
}

static void *run(void *argument)
{
    const uint32_t rank = (uint32_t)(uintptr_t)argument;
    HcclComm whole;
    aclrtStream streams[2];
    MUST(aclrtSetDevice(0));
    MUST(HcclCommInitRootInfo(RANKS, &root, rank, &whole));
    if (rank == 0) {
        __atomic_store_n(&asked, whole, __ATOMIC_RELEASE);
    }
    void *x = device_array(100 * (int32_t)rank), *sums[2] = {device_array(0), device_array(0)}, *y = device_array(0);
    for (int i = 0; i < 2; i++) {
        MUST(aclrtCreateStream(&streams[i]));
    }
    use_names_again(whole, rank);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++) {
            MUST(HcclAllReduce(x, sums[i], COUNT, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, whole, streams[i]));
        }
        run_ring(whole, rank, x, y, streams[0]);
        run_half(whole, rank, round, x, y, streams[1]);
        for (int i = 0; i < 2; i++) {
            MUST(aclrtSynchronizeStream(streams[i]));
            expect(sums[i], RANKS, 100 * RANKS * (RANKS - 1) / 2, "sum");
        }
    }
    MUST(HcclBarrier(whole, streams[0]));
    MUST(aclrtSynchronizeStream(streams[0]));
    atomic_fetch_add(&ended, 1);
    MUST(HcclCommDestroy(whole));
    for (int i = 0; i < 2; i++) {
        MUST(aclrtDestroyStream(streams[i]));
        MUST(aclrtFree(sums[i]));
    }
    MUST(aclrtFree(x));
    MUST(aclrtFree(y));
    return NULL;
}

/* The handle may be dead at any time. */
static void *ask(void *argument)
{
    while (atomic_load(&ended) < RANKS) {
        uint32_t size = 0;
        HcclResult error;
        HcclComm comm = __atomic_load_n((HcclComm *)argument, __ATOMIC_ACQUIRE);
        if (comm != NULL && HcclGetRankSize(comm, &size) == HCCL_SUCCESS && size != RANKS) {
            printf("%u ranks\n", (unsigned)size);
            exit(1);
        }
        if (comm != NULL) {
            (void)HcclGetCommAsyncError(comm, &error);
        }
    }
    return NULL;
}

/* With the number of the process, so that it is nobody else's; it ends with the process. */
static void write_table(void)
{
    const int file = memfd_create("table", MFD_CLOEXEC);
    snprintf(table, sizeof table, "/proc/self/fd/%d", file);
    dprintf(file, "{\"status\": \"completed\", \"server_list\": [{\"server_id\": \"%d\", \"device\": [", (int)getpid());
    for (int rank = 0; rank < RANKS; rank++) {
        dprintf(file, "%s{\"device_id\": \"0\", \"rank_id\": \"%d\"}", rank == 0 ? "" : ", ", rank);
    }
    dprintf(file, "]}]}\n");
}

int main(void)
{
    pthread_t threads[RANKS + 1];
    MUST(aclInit(NULL));
    write_table();
    MUST(aclrtSetDevice(0));
    MUST(HcclGetRootInfo(&root));
    for (uintptr_t rank = 0; rank < RANKS; rank++) {
        pthread_create(&threads[rank], NULL, run, (void *)rank);
    }
    while (__atomic_load_n(&asked, __ATOMIC_ACQUIRE) == NULL) {
    }
    pthread_create(&threads[RANKS], NULL, ask, &asked);
    for (int i = 0; i <= RANKS; i++) {
        pthread_join(threads[i], NULL);
    }
    MUST(aclFinalize());
    printf("ok\n");
    return 0;
}
