/* What tools ask of the runtime: errors, allocators of a program, profiles, dumped arguments, managed memory, pools. */
#include "program.h"

#include "acl/acl_dump.h"
#include "acl/acl_prof.h"
#include "acl/acl_rt_allocator.h"
#include "acl/acl_rt_memory_soma.h"
#include "aclnnop/aclnn_add.h"

#include <string.h>

static int allocations, ends;

static void *allocate(aclrtAllocator object, size_t size)
{
    (void)object;
    allocations++;
    return malloc(size);
}

static void end(aclrtAllocator object, aclrtAllocatorBlock block)
{
    (void)object;
    ends++;
    free(block);
}

static void *address_of(aclrtAllocatorBlock block)
{
    return block;
}

static void allocators(aclrtStream stream)
{
    aclrtAllocatorDesc made = aclrtAllocatorCreateDesc(), found = NULL;
    aclrtAllocator object = NULL;
    aclrtAllocatorAllocFunc take = NULL;
    aclrtAllocatorFreeFunc give = NULL;
    aclrtAllocatorAllocAdviseFunc advise = NULL;
    aclrtAllocatorGetAddrFromBlockFunc where = NULL;
    OK(aclrtAllocatorSetObjToDesc(made, &allocations));
    OK(aclrtAllocatorSetAllocFuncToDesc(made, allocate));
    OK(aclrtAllocatorSetFreeFuncToDesc(made, end));
    OK(aclrtAllocatorSetGetAddrFromBlockFuncToDesc(made, address_of));
    OK(aclrtAllocatorRegister(stream, made));
    OK(aclrtAllocatorGetByStream(stream, &found, &object, &take, &give, &advise, &where));
    for (int i = 0; i < 2; i++) {
        aclrtAllocatorBlock block = take(object, 64);
        memset(where(block), 0, 64);
        give(object, block);
    }
    printf("allocCount=%d freeCount=%d\n", allocations, ends);
    OK(aclrtAllocatorUnregister(stream));
    OK(aclrtAllocatorDestroyDesc(made));
}

static void errors(void)
{
    aclrtErrorInfo info;
    OK(aclrtGetErrorVerbose(0, &info));
    const char *text = aclGetRecentErrMsg();
    printf("error=%d peekErr=%d lastErr=%d recentErrMsg=%s\n", (int)info.errorType, (int)aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL),
           (int)aclrtGetLastError(ACL_RT_THREAD_LEVEL), text != NULL ? text : "<null>");
}

static void profile(aclrtStream stream)
{
    static const char folder[] = "profile";
    uint32_t device = 0, range = 0;
    OK(aclprofInit(folder, strlen(folder)));
    aclprofConfig *config = aclprofCreateConfig(&device, 1, ACL_AICORE_NONE, NULL, ACL_PROF_ACL_API | ACL_PROF_TASK_TIME);
    OK(aclprofSetConfig(ACL_PROF_SYS_HARDWARE_MEM_FREQ, "15", 2));
    OK(aclprofStart(config));
    void *stamp = aclprofCreateStamp();
    OK(aclprofSetStampTraceMessage(stamp, "range", 5));
    OK(aclprofPush(stamp));
    OK(aclprofPop());
    OK(aclprofRangeStart(stamp, &range));
    OK(aclrtProfTrace("mark", 4, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclprofRangeStop(range));
    aclprofDestroyStamp(stamp);
    OK(aclprofStop(config));
    OK(aclprofDestroyConfig(config));
    OK(aclprofFinalize());
}

static void dump(aclrtStream stream)
{
    const int64_t shape = 2;
    float one = 1;
    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    void *memory = device_memory(8);
    OK(aclopStartDumpArgs(ACL_OP_DUMP_OP_AICORE_ARGS, "arguments"));
    aclTensor *tensor = aclCreateTensor(&shape, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &shape, 1, memory);
    aclScalar *alpha = aclCreateScalar(&one, ACL_FLOAT);
    OK(aclrtMemset(memory, 8, 0, 8));
    OK(aclnnAddGetWorkspaceSize(tensor, tensor, alpha, tensor, &size, &executor));
    OK(aclnnAdd(NULL, 0, executor, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclopStopDumpArgs(ACL_OP_DUMP_OP_AICORE_ARGS));
    OK(aclDestroyTensor(tensor));
    OK(aclDestroyScalar(alpha));
    OK(aclrtFree(memory));
}

/* The host writes, the device adds, the host reads: no copies. */
static void managed(aclrtStream stream)
{
    void *memory = NULL;
    OK(aclrtMemAllocManaged(&memory, 8, ACL_RT_MEM_ATTACH_GLOBAL));
    float *numbers = memory;
    numbers[0] = 1.5f;
    numbers[1] = 2.5f;
    OK(aclrtReduceAsync(numbers, numbers, 8, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, stream, NULL));
    OK(aclrtSynchronizeStream(stream));
    printf("managed %g %g\n", (double)numbers[0], (double)numbers[1]);
    OK(aclrtFree(memory));
}

static void pool(aclrtStream stream)
{
    aclrtMemPool made = NULL;
    aclrtMemPoolProps props = {.location = {.type = ACL_MEM_LOCATION_TYPE_DEVICE}};
    uint64_t used[2];
    void *memory = NULL;
    OK(aclrtMemPoolCreate(&made, &props));
    OK(aclrtMemPoolMallocAsync(&memory, 100, made, stream));
    OK(aclrtMemPoolGetAttr(made, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT, &used[0]));
    OK(aclrtMemsetAsync(memory, 100, 0, 100, stream));
    OK(aclrtMemPoolFreeAsync(memory, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemPoolGetAttr(made, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT, &used[1]));
    printf("pool %llu %llu\n", (unsigned long long)used[0], (unsigned long long)used[1]);
    OK(aclrtMemPoolDestroy(made));
}

int main(void)
{
    aclrtStream stream = NULL;
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    errors();
    allocators(stream);
    profile(stream);
    dump(stream);
    managed(stream);
    pool(stream);
    OK(aclrtDestroyStream(stream));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    return 0;
}
