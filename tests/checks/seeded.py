"""Small programs with one mistake each, and what must be found in it; and their correct neighbours, where nothing must be.

A program is the body of a C function. What it finds there: streams `a` and `b`, an event `e`, device memory `x`, `y`, `z`
of SIZE bytes that has been written, page-locked memory `p`, ordinary memory `h`. A finding is the check's name, a
pattern, and 1 when it must be told at the statement before the comment /*1*/.
"""

ASCEND_PRELUDE = """
#define _GNU_SOURCE
#include "acl/acl.h"
#include "acl/acl_rt_memory_soma.h"
#include "aclnnop/aclnn_soft_margin_loss_backward.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { SIZE = 16384 };
#define OK(call) do { if ((call) != 0) { printf("%d failed\\n", __LINE__); exit(1); } } while (0)
static aclrtStream a, b;
static aclrtEvent e;
static char *x, *y, *z, *p, *h;
static volatile int flag, sum;
static void *memory(size_t size) { void *m; OK(aclrtMalloc(&m, size, ACL_MEM_MALLOC_HUGE_FIRST)); return m; }
static void wait_for(aclrtStream s) { OK(aclrtSynchronizeStream(s)); }
static void up(void *to, const void *from, aclrtStream s) { OK(aclrtMemcpyAsync(to, SIZE, from, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, s)); }
static void down(void *to, const void *from, aclrtStream s) { OK(aclrtMemcpyAsync(to, SIZE, from, SIZE, ACL_MEMCPY_DEVICE_TO_HOST, s)); }
static void across(void *to, const void *from, aclrtStream s) { OK(aclrtMemcpyAsync(to, SIZE, from, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE, s)); }
static aclTensor *matrix(void *data, int64_t rows, int64_t columns, int64_t pitch)
{
    const int64_t shape[] = {rows, columns}, strides[] = {pitch, 1}, storage = rows * pitch;
    return aclCreateTensor(shape, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, &storage, 1, data);
}
static void run_with(void *in, void *out, int64_t rows, int64_t columns, int64_t pitch, aclrtStream s, void *work, uint64_t size)
{
    aclTensor *i = matrix(in, rows, columns, pitch), *o = matrix(out, rows, columns, pitch);
    uint64_t wanted = 0;
    aclOpExecutor *executor = NULL;
    OK(aclnnSoftMarginLossBackwardGetWorkspaceSize(i, i, i, 0, o, &wanted, &executor));
    void *own = work == NULL && wanted > 0 ? memory(wanted) : NULL;
    OK(aclnnSoftMarginLossBackward(own != NULL ? own : work, own != NULL ? wanted : size, executor, s)); /* kernel */
    OK(aclDestroyTensor(i)); OK(aclDestroyTensor(o));
    if (own != NULL) { wait_for(s); OK(aclrtFree(own)); }
}
static void run(void *in, void *out, aclrtStream s) { run_with(in, out, 1, SIZE / 4, SIZE / 4, s, NULL, 0); }
static void part(void *in, void *out, int64_t first, aclrtStream s)
{
    run_with((float *)in + first, (float *)out + first, 16, 8, 64, s, NULL, 0);
}
static void look(void *data) { for (int i = 0; i < SIZE; i += 512) { sum += ((char *)data)[i]; } flag = 1; }
"""

ASCEND_MAIN = """
    OK(aclInit(NULL)); OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&a)); OK(aclrtCreateStream(&b)); OK(aclrtCreateEvent(&e));
    h = calloc(1, SIZE); x = memory(SIZE); y = memory(SIZE); z = memory(SIZE);
    OK(aclrtMallocHost((void **)&p, SIZE)); memset(p, 0, SIZE);
    OK(aclrtMemset(x, SIZE, 0, SIZE)); OK(aclrtMemset(y, SIZE, 0, SIZE)); OK(aclrtMemset(z, SIZE, 0, SIZE));
    PROGRAM();
    (void)aclrtSynchronizeDevice(); /* work with freed memory has failed */
    if (x) OK(aclrtFree(x)); if (y) OK(aclrtFree(y)); if (z) OK(aclrtFree(z));
    OK(aclrtFreeHost(p)); OK(aclrtDestroyEvent(e));
    if (a) OK(aclrtDestroyStream(a)); OK(aclrtDestroyStream(b));
    OK(aclrtResetDevice(0)); OK(aclFinalize());
"""

# name: (body, [(check, pattern, 1: told at the marked statement), …])
ASCEND = {
    # --- sync: the host and what is queued
    "host reads": ("down(p, x, a); sum += p[5]; /*1*/", [("sync", "host code touches .* while aclrtMemcpyAsync.*writes there", 1)]),
    "host reads in time": ("down(p, x, a); wait_for(a); sum += p[5];", []),
    "host writes": ("up(x, p, a); p[0] = 1; /*1*/", [("sync", "host code writes .* while aclrtMemcpyAsync.*reads there", 1)]),
    "host reads what is read": ("up(x, p, a); sum += p[0];", []),
    "other stream awaited": ("down(p, x, a); wait_for(b); sum += p[0]; /*1*/", [("sync", "writes there", 1)]),
    "library reads": ("down(p, x, a); memcpy(h, p, SIZE); /*1*/", [("sync", "host code touches", 1)]),
    "event awaited": ("down(p, x, a); OK(aclrtRecordEvent(e, a)); OK(aclrtSynchronizeEvent(e)); sum += p[0];", []),
    "event before": ("OK(aclrtRecordEvent(e, a)); down(p, x, a); OK(aclrtSynchronizeEvent(e)); sum += p[0]; /*1*/",
                     [("sync", "writes there", 1)]),
    "device awaited": ("down(p, x, a); OK(aclrtSynchronizeDevice()); sum += p[0];", []),
    "event asked": ("down(p, x, a); OK(aclrtRecordEvent(e, a)); aclrtEventRecordedStatus s; do { OK(aclrtQueryEventStatus(e, &s)); }"
                    " while (s != ACL_EVENT_RECORDED_STATUS_COMPLETE); sum += p[0];", []),
    "stream asked": ("down(p, x, a); aclrtStreamStatus s; do { OK(aclrtStreamQuery(a, &s)); }"
                     " while (s != ACL_STREAM_STATUS_COMPLETE); sum += p[0];", []),
    "stream destroyed": ("down(p, x, a); OK(aclrtDestroyStream(a)); a = NULL; sum += p[0];", []),
    "through another stream": ("down(p, x, a); OK(aclrtRecordEvent(e, a)); OK(aclrtStreamWaitEvent(b, e)); wait_for(b); sum += p[0];",
                               []),
    "pool waits for another stream": ("aclrtMemPoolProps of = {.location = {.type = ACL_MEM_LOCATION_TYPE_DEVICE}, .maxSize = 2 << 20};"
                                      " aclrtMemPool s; void *m; OK(aclrtMemPoolCreate(&s, &of));"
                                      " OK(aclrtMemPoolMallocAsync(&m, 2 << 20, s, a)); down(p, x, a); OK(aclrtMemPoolFreeAsync(m, a));"
                                      " OK(aclrtMemPoolMallocAsync(&m, 2 << 20, s, b)); aclrtStreamStatus t; OK(aclrtStreamQuery(b, &t));"
                                      " usleep(20000); sum += p[0]; /*1*/ OK(aclrtMemPoolFreeAsync(m, b)); wait_for(b);"
                                      " OK(aclrtMemPoolDestroy(s));", [("sync", "writes there", 1)]),
    "function reads": ("down(p, x, a); OK(aclrtLaunchHostFunc(a, look, p)); wait_for(a);", []),
    "function of another stream reads": ("down(p, x, a); OK(aclrtLaunchHostFunc(b, look, p)); wait_for(b);",
                                         [("sync", "host code touches", None)]),
    "function before": ("OK(aclrtLaunchHostFunc(a, look, p)); down(p, x, a); wait_for(a);", []),
    "function tells": ("down(p, x, a); OK(aclrtLaunchHostFunc(a, look, p)); aclrtStreamStatus s;"
                       " while (!flag) { OK(aclrtStreamQuery(a, &s)); } sum += p[0];", []),
    "other half": ("OK(aclrtMemcpyAsync(p, 4096, x, 4096, ACL_MEMCPY_DEVICE_TO_HOST, a)); sum += p[8192];", []),
    "same page": ("OK(aclrtMemcpyAsync(p, 64, x, 64, ACL_MEMCPY_DEVICE_TO_HOST, a)); sum += p[64]; p[100] = 1;", []),
    "copy reads": ("run(x, y, a); OK(aclrtMemcpy(h, SIZE, y, SIZE, ACL_MEMCPY_DEVICE_TO_HOST)); /*1*/",
                   [("sync", "the host copies 16384 bytes .* while aclnnSoftMarginLossBackward.*writes there", 1)]),
    "copy reads in time": ("run(x, y, a); wait_for(a); OK(aclrtMemcpy(h, SIZE, y, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));", []),
    "copy writes": ("run(x, y, a); OK(aclrtMemcpy(x, SIZE, h, SIZE, ACL_MEMCPY_HOST_TO_DEVICE)); /*1*/",
                    [("sync", "the host writes 16384 bytes .* while aclnnSoftMarginLossBackward.*reads there", 1)]),
    "fill writes": ("run(x, y, a); OK(aclrtMemset(x, SIZE, 0, SIZE)); /*1*/", [("sync", "the host writes", 1)]),
    "small stack for signals": ("char *s = mmap(NULL, 16384, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);"
                                " OK(mprotect(s + 8192, 8192, PROT_READ | PROT_WRITE)); stack_t t = {.ss_sp = s + 8192, .ss_size = 8192};"
                                " OK(sigaltstack(&t, NULL)); down(p, x, a); sum += p[5]; /*1*/", [("sync", "host code touches", 1)]),
    # --- race: two streams
    "write after write": ("across(x, y, a); across(x, z, b); /*1*/", [("race", "aclrtMemcpyAsync on stream .* writes 16384 bytes", None)]),
    "read after write": ("run(x, y, a); down(p, y, b); /*1*/", [("race", "reads 16384 bytes .* aclnnSoftMarginLossBackward.* writes", None)]),
    "write after read": ("down(p, y, a); run(x, y, b);", [("race", "aclnnSoftMarginLossBackward on stream .* writes .* reads", None)]),
    "read after read": ("run(x, y, a); run(x, z, b);", []),
    "same stream": ("across(x, y, a); across(x, z, a); run(x, y, a);", []),
    "event orders": ("run(x, y, a); OK(aclrtRecordEvent(e, a)); OK(aclrtStreamWaitEvent(b, e)); down(p, y, b); wait_for(b);", []),
    "event too early": ("OK(aclrtRecordEvent(e, a)); run(x, y, a); OK(aclrtStreamWaitEvent(b, e)); down(p, y, b); wait_for(b); wait_for(a);",
                        [("race", "reads", None)]),
    "wait too late": ("run(x, y, a); OK(aclrtRecordEvent(e, a)); down(p, y, b); OK(aclrtStreamWaitEvent(b, e)); wait_for(b);",
                      [("race", "reads", None)]),
    "event of another": ("run(x, y, a); OK(aclrtRecordEvent(e, b)); OK(aclrtStreamWaitEvent(b, e)); down(p, y, b); wait_for(b); wait_for(a);",
                         [("race", "reads", None)]),
    "recorded again": ("run(x, y, a); OK(aclrtRecordEvent(e, a)); OK(aclrtRecordEvent(e, b)); OK(aclrtStreamWaitEvent(b, e)); down(p, y, b);"
                       " wait_for(a); wait_for(b);", [("race", "reads", None)]),
    "host orders": ("run(x, y, a); wait_for(a); down(p, y, b); wait_for(b);", []),
    "chain": ("aclrtEvent f; aclrtStream c; OK(aclrtCreateEvent(&f)); OK(aclrtCreateStream(&c)); run(x, y, a);"
              " OK(aclrtRecordEvent(e, a)); OK(aclrtStreamWaitEvent(c, e)); OK(aclrtRecordEvent(f, c)); OK(aclrtStreamWaitEvent(b, f));"
              " down(p, y, b); wait_for(b); sum += p[0]; OK(aclrtDestroyStream(c)); OK(aclrtDestroyEvent(f));", []),
    "columns side by side": ("part(x, y, 0, a); part(x, y, 8, b);", []),
    "columns that overlap": ("part(x, y, 0, a); part(x, y, 7, b);", [("race", "writes", None)]),
    "rows side by side": ("OK(aclrtMemcpy2dAsync(p, 64, x, 64, 32, 8, ACL_MEMCPY_DEVICE_TO_HOST, a));"
                          " OK(aclrtMemcpy2dAsync(x + 32, 64, p + 8192, 64, 32, 8, ACL_MEMCPY_HOST_TO_DEVICE, b));", []),
    "rows that overlap": ("OK(aclrtMemcpy2dAsync(p, 64, x, 64, 33, 8, ACL_MEMCPY_DEVICE_TO_HOST, a));"
                          " OK(aclrtMemcpy2dAsync(x + 32, 64, p + 8192, 64, 32, 8, ACL_MEMCPY_HOST_TO_DEVICE, b));",
                          [("race", "writes", None)]),
    "fills": ("OK(aclrtMemsetAsync(x, SIZE, 0, 100, a)); OK(aclrtMemsetAsync(x + 100, SIZE - 100, 0, 100, b));", []),
    "fills that overlap": ("OK(aclrtMemsetAsync(x, SIZE, 0, 101, a)); OK(aclrtMemsetAsync(x + 100, SIZE - 100, 0, 100, b));",
                           [("race", "writes 1 bytes", None)]),
    "after a long time": ("run(x, y, a); for (int i = 0; i < 50; i++) { run(x, z, a); } down(p, y, b); wait_for(b);", [("race", "reads", None)]),
    # --- memory
    "freed too early": ("run(x, y, a); OK(aclrtFree(x)); /*1*/ x = NULL; ", [("memory", "is freed while aclnnSoftMarginLossBackward", 1)]),
    "freed in time": ("run(x, y, a); wait_for(a); OK(aclrtFree(x)); x = NULL;", []),
    # --- init
    "never written": ("void *n = memory(SIZE); run(n, y, a); wait_for(a); OK(aclrtFree(n));",
                      [("init", f"reads {name} at .*, byte 0 of block", None) for name in ("gradOutput", "self", "target")]),
    "one byte not written": ("char *n = memory(SIZE); OK(aclrtMemset(n, SIZE, 0, SIZE - 1)); down(p, n, a); wait_for(a); OK(aclrtFree(n));",
                             [("init", "to the host, of which byte 16383 of block", None)]),
    "copied on": ("char *n = memory(SIZE); OK(aclrtMemset(n, SIZE, 0, 5000)); across(x, n, a); wait_for(a); OK(aclrtFree(n));"
                  " down(p, x, a); wait_for(a);", [("init", "byte 5000 of block", None)]),
    "written part": ("char *n = memory(SIZE); OK(aclrtMemset(n + 64, SIZE - 64, 0, 128)); run_with(n + 64, y, 1, 32, 32, a, NULL, 0);"
                     " wait_for(a); OK(aclrtFree(n));", []),
    # --- leak
    "left at reset": ("memory(100);", [("leak", "100 bytes from aclrtMalloc.* was not freed before the device was reset", None)]),
    "stream left at reset": ("aclrtStream c; OK(aclrtCreateStream(&c));", [("leak", "1 streams not destroyed before device 0 was reset", None)]),
}

# Only with UNDERSTUDY_CHECK=workspace does an operator ask for any.
WORKSPACE = {
    "workspace": ("run(x, y, a); wait_for(a);", []),
    "no workspace": ("run_with(x, y, 1, 8, 8, a, z, 0); wait_for(a);", [("workspace", "is given a workspace of 0 bytes; its first function asked for", None)]),
    "small workspace": ("run_with(x, y, 1, 8, 8, a, z, 1 << 30); wait_for(a);", [("workspace", "needs a workspace of .* leave", None)]),
    "workspace of the host": ("run_with(x, y, 1, 8, 8, a, h, 1 << 30); wait_for(a);", [("workspace", "needs a workspace of .*kernels cannot see", None)]),
    "workspace freed too early": ("void *w = memory(1 << 20); run_with(x, y, 1, 8, 8, a, w, 1 << 20); OK(aclrtFree(w)); /*1*/ wait_for(a);",
                                  [("memory", "is freed while aclnnSoftMarginLossBackward", 1)]),
    "workspace of two streams": ("void *w = memory(1 << 20); run_with(x, y, 1, 8, 8, a, w, 1 << 20); run_with(x, z, 1, 8, 8, b, w, 1 << 20);"
                                 " wait_for(a); wait_for(b); OK(aclrtFree(w));", [("race", "writes 65536 bytes", None)]),
}  # fmt: skip

MACA_PRELUDE = """
#include <mc_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { SIZE = 16384 };
#define OK(call) do { if ((call) != 0) { printf("%d failed\\n", __LINE__); exit(1); } } while (0)
static mcStream_t a, b, n;
static mcEvent_t e;
static char *x, *y, *z, *p, *h, *m;
static volatile int sum;
static void copy(void *to, const void *from, mcStream_t s) { OK(mcMemcpyAsync(to, from, SIZE, mcMemcpyDefault, s)); }
static void look(void *data) { for (int i = 0; i < SIZE; i += 512) { sum += ((char *)data)[i]; } }
static void sleep_well(void) { usleep(20000); } /* longer than all queued work takes */
"""

MACA_MAIN = """
    OK(mcStreamCreate(&a)); OK(mcStreamCreate(&b)); OK(mcStreamCreateWithFlags(&n, mcStreamNonBlocking)); OK(mcEventCreate(&e));
    h = calloc(1, SIZE); OK(mcMalloc((void **)&x, SIZE)); OK(mcMalloc((void **)&y, SIZE)); OK(mcMalloc((void **)&z, SIZE));
    OK(mcMallocHost((void **)&p, SIZE, 0)); OK(mcMallocManaged((void **)&m, SIZE, mcMemAttachGlobal)); memset(m, 0, SIZE); memset(p, 0, SIZE);
    OK(mcMemset(x, 0, SIZE)); OK(mcMemset(y, 0, SIZE)); OK(mcMemset(z, 0, SIZE));
    PROGRAM();
    OK(mcDeviceSynchronize());
    OK(mcFree(x)); OK(mcFree(y)); OK(mcFree(z)); OK(mcFree(m)); OK(mcFreeHost(p));
    OK(mcStreamDestroy(a)); OK(mcStreamDestroy(b)); OK(mcStreamDestroy(n)); OK(mcEventDestroy(e));
    OK(mcDeviceReset());
"""

MACA = {
    "host reads": ("copy(p, x, a); sum += p[5]; /*1*/", [("sync", "host code touches", 1)]),
    "host reads managed": ("copy(m, x, a); sum += m[5]; /*1*/", [("sync", "host code touches", 1)]),
    "host reads in time": ("copy(p, x, a); OK(mcStreamSynchronize(a)); sum += p[5];", []),
    "default stream awaited": ("copy(p, x, a); OK(mcStreamSynchronize(NULL)); sum += p[5];", []),
    "default stream does not know it": ("copy(p, x, n); OK(mcStreamSynchronize(NULL)); sum += p[5]; /*1*/", [("sync", "host code touches", 1)]),
    "copy waits": ("copy(p, x, a); OK(mcMemcpy(h, y, SIZE, mcMemcpyDeviceToHost)); sum += p[5];", []),
    "staged": ("copy(x, h, a); h[0] = 1;", []),
    "event awaited": ("copy(p, x, a); OK(mcEventRecord(e, a)); OK(mcEventSynchronize(e)); sum += p[0];", []),
    "event asked": ("copy(p, x, a); OK(mcEventRecord(e, a)); while (mcEventQuery(e) != mcSuccess) { } sum += p[0];", []),
    "stream asked": ("copy(p, x, a); while (mcStreamQuery(a) != mcSuccess) { } sum += p[0];", []),
    "default stream asked": ("copy(p, x, a); while (mcStreamQuery(NULL) != mcSuccess) { } sum += p[0];", []),
    "default stream goes on": ("copy(p, x, a); copy(y, z, NULL); sleep_well(); sum += p[5]; /*1*/", [("sync", "host code touches", 1)]),
    "default stream is awaited by another": ("copy(p, x, a); copy(y, z, NULL); copy(y, z, b); sleep_well(); sum += p[5]; /*1*/",
                                             [("sync", "host code touches", 1)]),
    "function reads": ("copy(p, x, a); OK(mcLaunchHostFunc(a, look, p)); OK(mcStreamSynchronize(a));", []),
    "function reads too early": ("copy(p, x, a); OK(mcLaunchHostFunc(b, look, p)); OK(mcStreamSynchronize(b));", [("sync", "touches", None)]),
    "race": ("copy(x, y, a); copy(x, z, b);", [("race", "writes 16384 bytes", None)]),
    "default stream orders": ("copy(x, y, a); copy(x, z, NULL); copy(x, y, b);", []),
    "default stream does not order": ("copy(x, y, n); copy(x, z, NULL);", [("race", "writes 16384 bytes", None)]),
    "event orders": ("copy(x, y, n); OK(mcEventRecord(e, n)); OK(mcStreamWaitEvent(a, e, 0)); copy(x, z, a);", []),
    "freed after use": ("char *t; OK(mcMalloc((void **)&t, SIZE)); copy(t, x, a); OK(mcFree(t));", []),
    "freed in order": ("char *t; OK(mcMallocAsync((void **)&t, SIZE, a)); copy(t, x, a); OK(mcFreeAsync(t, a));", []),
    "left at reset": ("char *t; OK(mcMalloc((void **)&t, 100));", [("leak", "100 bytes from mcMalloc.* before the device was reset", None)]),
    "graph": ("mcGraph_t g; mcGraphExec_t r; OK(mcStreamBeginCapture(a, mcStreamCaptureModeGlobal)); copy(x, y, a); copy(p, x, a);"
              " OK(mcStreamEndCapture(a, &g)); OK(mcGraphInstantiate(&r, g, NULL, NULL, 0)); OK(mcGraphLaunch(r, a)); OK(mcStreamSynchronize(a));"
              " sum += p[0]; OK(mcGraphLaunch(r, a)); sum += p[0]; /*1*/ OK(mcStreamSynchronize(a)); OK(mcGraphExecDestroy(r)); OK(mcGraphDestroy(g));",
              [("sync", "host code touches .* mcGraphLaunch", 1)]),
    "function of a graph reads": ("mcGraph_t g; mcGraphExec_t r; OK(mcStreamBeginCapture(a, mcStreamCaptureModeGlobal)); copy(p, x, a); OK(mcLaunchHostFunc(a, look, p));"
                                  " OK(mcStreamEndCapture(a, &g)); OK(mcGraphInstantiate(&r, g, NULL, NULL, 0)); OK(mcGraphLaunch(r, a)); OK(mcStreamSynchronize(a));"
                                  " OK(mcGraphExecDestroy(r)); OK(mcGraphDestroy(g));", []),
    "graph and stream": ("mcGraph_t g; mcGraphExec_t r; OK(mcStreamBeginCapture(a, mcStreamCaptureModeGlobal)); copy(x, y, a);"
                         " OK(mcStreamEndCapture(a, &g)); OK(mcGraphInstantiate(&r, g, NULL, NULL, 0)); OK(mcGraphLaunch(r, a)); copy(x, z, b);"
                         " OK(mcDeviceSynchronize()); OK(mcGraphExecDestroy(r)); OK(mcGraphDestroy(g));", [("race", "mcGraphLaunch", None)]),
}

# Freeing it is told at once; the task that misses it tells as well, unless it was faster.
MAY_BE_TOLD_TWICE = "workspace freed too early"
