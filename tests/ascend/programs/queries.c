/* What programs ask before they start: limits of cores, priorities, peers; a stream that waits for another thread's
 * number; results that are dumped. */
#include "program.h"

#include "acl/acl_dump.h"
#include "aclnnop/aclnn_add.h"

#include <pthread.h>

static void cores(void)
{
    uint32_t all = 0, fewer = 0, of_stream = 0;
    aclrtStream stream = NULL;
    OK(aclrtCreateStream(&stream));
    OK(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, &all));
    OK(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, all - 1));
    OK(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &fewer));
    OK(aclrtSetStreamResLimit(stream, ACL_RT_DEV_RES_CUBE_CORE, 2));
    OK(aclrtUseStreamResInCurrentThread(stream));
    OK(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &of_stream));
    OK(aclrtUnuseStreamResInCurrentThread(stream));
    OK(aclrtResetDeviceResLimit(0));
    OK(aclrtDestroyStream(stream));
    printf("cores %d %u\n", (int)(fewer - all), of_stream);
}

static void device(void)
{
    int32_t least = 0, greatest = 0, fits = 0;
    OK(aclrtDeviceGetStreamPriorityRange(&least, &greatest));
    OK(aclrtCheckArchCompatibility(aclrtGetSocName(), &fits));
    printf("device %d %d %d\n", least, greatest, fits);
}

static void peers(void)
{
    int32_t can = 0;
    float numbers[] = {1, 2};
    void *here = device_memory(8), *there = NULL;
    upload(here, numbers, 8);
    OK(aclrtDeviceCanAccessPeer(&can, 0, 1));
    OK(aclrtDeviceEnablePeerAccess(1, 0));
    OK(aclrtSetDevice(1));
    there = device_memory(8);
    OK(aclrtMemcpy(there, 8, here, 8, ACL_MEMCPY_DEVICE_TO_DEVICE));
    printf("peer %d", can);
    print_floats("", there, 2);
    OK(aclrtFree(there));
    OK(aclrtResetDevice(1));
    OK(aclrtSetDevice(0));
    OK(aclrtDeviceDisablePeerAccess(1));
    OK(aclrtFree(here));
}

typedef struct Signal {
    aclrtContext context;
    void *flag;
} Signal;

static void *raise_signal(void *argument)
{
    const Signal *signal = argument;
    aclrtStream stream = NULL;
    OK(aclrtSetCurrentContext(signal->context));
    OK(aclrtCreateStream(&stream));
    OK(aclrtValueWrite(signal->flag, 100, 0, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtDestroyStream(stream));
    return NULL;
}

/* One stream waits; a stream of another thread writes what it waits for. */
static void wait_for_a_thread(void)
{
    pthread_t thread;
    aclrtStream stream = NULL;
    uint64_t value = 0;
    Signal signal = {.flag = device_memory(8)};
    OK(aclrtGetCurrentContext(&signal.context));
    OK(aclrtCreateStream(&stream));
    upload(signal.flag, &value, 8);
    OK(aclrtValueWait(signal.flag, 100, 1 /* equal */, stream));
    OK(aclrtValueWrite(signal.flag, 123, 0, stream));
    if (pthread_create(&thread, NULL, raise_signal, &signal) != 0 || pthread_join(thread, NULL) != 0) {
        exit(1);
    }
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(&value, 8, signal.flag, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    printf("flag %d\n", (int)value);
    OK(aclrtDestroyStream(stream));
    OK(aclrtFree(signal.flag));
}

static int chunks, last_chunks;

static int32_t take_chunk(const acldumpChunk *chunk, int32_t size)
{
    chunks += size == (int32_t)(sizeof *chunk + chunk->bufLen);
    last_chunks += chunk->isLastChunk != 0;
    return 0;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        exit(1);
    }
}

static void dump(void)
{
    const int64_t shape = 2;
    float one = 1, numbers[] = {1, 2};
    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    aclrtStream stream = NULL;
    void *memory = device_memory(8);
    write_file("dump.json", "{\"dump\": {\"dump_path\": \".\", \"dump_list\": [], \"dump_op_switch\": \"on\", \"dump_mode\": \"all\"}}");
    OK(aclmdlInitDump());
    OK(aclmdlSetDump("dump.json"));
    OK(acldumpRegCallback(take_chunk, 0));
    OK(aclrtCreateStream(&stream));
    upload(memory, numbers, 8);
    aclTensor *tensor = aclCreateTensor(&shape, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &shape, 1, memory);
    aclScalar *alpha = aclCreateScalar(&one, ACL_FLOAT);
    OK(aclnnAddGetWorkspaceSize(tensor, tensor, alpha, tensor, &size, &executor));
    OK(aclnnAdd(NULL, 0, executor, stream));
    OK(aclrtSynchronizeStream(stream));
    acldumpUnregCallback();
    OK(aclmdlFinalizeDump());
    printf("dumped %d %d", chunks > 0, chunks >= last_chunks && last_chunks > 0);
    print_floats("", memory, 2);
    OK(aclDestroyTensor(tensor));
    OK(aclDestroyScalar(alpha));
    OK(aclrtDestroyStream(stream));
    OK(aclrtFree(memory));
}

int main(void)
{
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    cores();
    device();
    peers();
    wait_for_a_thread();
    dump();
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    return 0;
}
