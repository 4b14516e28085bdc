/* Models from captured streams: replayed, given another operator, told what to do by a number, ordered with the world outside. */
#include "program.h"

#include "aclnnop/aclnn_add.h"

enum { COUNT = 3 };
static void *x, *y, *z;

static aclTensor *vector(void *address)
{
    const int64_t shape = COUNT;
    return aclCreateTensor(&shape, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &shape, 1, address);
}

/* out = a + scale * b */
static void add(void *a, void *b, float scale, void *out, aclrtStream stream)
{
    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    aclTensor *tensors[] = {vector(a), vector(b), vector(out)};
    aclScalar *alpha = aclCreateScalar(&scale, ACL_FLOAT);
    OK(aclnnAddGetWorkspaceSize(tensors[0], tensors[1], alpha, tensors[2], &size, &executor));
    OK(aclnnAdd(NULL, 0, executor, stream));
    for (int i = 0; i < 3; i++) {
        OK(aclDestroyTensor(tensors[i]));
    }
    OK(aclDestroyScalar(alpha));
}

static void run(aclmdlRI model, aclrtStream stream)
{
    OK(aclmdlRIExecuteAsync(model, stream));
    OK(aclrtSynchronizeStream(stream));
}

static void replay_and_update(aclrtStream stream, aclrtStream other)
{
    aclmdlRI model = NULL;
    aclrtTaskGrp group = NULL;
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    OK(aclmdlRICaptureTaskGrpBegin(stream));
    add(x, y, 1, z, stream);
    OK(aclmdlRICaptureTaskGrpEnd(stream, &group));
    add(z, z, 1, z, stream);
    OK(aclmdlRICaptureEnd(stream, &model));
    run(model, stream);
    print_floats("replayed", z, COUNT);
    OK(aclmdlRICaptureTaskUpdateBegin(other, group));
    add(x, y, 10, z, other);
    OK(aclmdlRICaptureTaskUpdateEnd(other));
    OK(aclrtSynchronizeStream(other));
    run(model, stream);
    print_floats("updated", z, COUNT);
    OK(aclmdlRIDebugJsonPrint(model, "modelRI.json", ACL_MDLRI_DEBUG_JSON_PRINT_SUMMARY));
    OK(aclmdlRIDestroy(model));
}

/* IF with two models: the number's value is the first one's at every start. */
static void choose(aclrtStream stream, aclrtStream other)
{
    aclmdlRI model = NULL, choices[2] = {NULL, NULL};
    aclmdlRICaptureStatus status;
    aclmdlRICondHandle handle;
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    OK(aclmdlRICaptureGetInfo(stream, &status, &model));
    OK(aclmdlRICondHandleCreate(model, 0, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &handle));
    aclmdlRICondTaskParams params = {.handle = handle, .type = ACL_MODEL_RI_COND_TYPE_IF, .size = 2, .modelRIArray = choices};
    OK(aclmdlRIAddCondTask(params, stream, 0));
    for (int i = 0; i < 2; i++) {
        aclmdlRI part = NULL;
        OK(aclmdlRICaptureToModelRIBegin(other, choices[i], ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
        add(x, y, i == 0 ? 100 : 1000, z, other);
        OK(aclmdlRICaptureEnd(other, &part));
    }
    OK(aclmdlRICaptureEnd(stream, &model));
    run(model, stream);
    print_floats("chosen", z, COUNT);
    OK(aclmdlRIDestroy(model));
}

/* One model records what the other waits for; both are started without the host between them. */
static void order(aclrtStream stream, aclrtStream other)
{
    aclmdlRI writes = NULL, reads = NULL;
    aclrtEvent event = NULL;
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    add(x, y, 2, z, stream);
    OK(aclrtRecordEventWithFlag(event, stream, ACL_EVENT_RECORD_EXTERNAL));
    OK(aclmdlRICaptureEnd(stream, &writes));
    OK(aclmdlRICaptureBegin(other, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    OK(aclrtStreamWaitEventWithFlag(other, event, 0, ACL_EVENT_WAIT_EXTERNAL));
    add(z, z, 1, z, other);
    OK(aclmdlRICaptureEnd(other, &reads));
    OK(aclmdlRIExecuteAsync(writes, stream));
    OK(aclmdlRIExecuteAsync(reads, other));
    OK(aclrtSynchronizeStream(other));
    print_floats("ordered", z, COUNT);
    OK(aclrtSynchronizeStream(stream));
    OK(aclmdlRIDestroy(writes));
    OK(aclmdlRIDestroy(reads));
    OK(aclrtDestroyEvent(event));
}

int main(void)
{
    const float host[2][COUNT] = {{1, 2, 3}, {0.5f, 0.25f, 0.125f}};
    aclrtStream streams[2];
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    x = device_memory(sizeof host[0]);
    y = device_memory(sizeof host[0]);
    z = device_memory(sizeof host[0]);
    upload(x, host[0], sizeof host[0]);
    upload(y, host[1], sizeof host[1]);
    OK(aclrtCreateStream(&streams[0]));
    OK(aclrtCreateStream(&streams[1]));
    replay_and_update(streams[0], streams[1]);
    choose(streams[0], streams[1]);
    order(streams[0], streams[1]);
    OK(aclrtDestroyStream(streams[0]));
    OK(aclrtDestroyStream(streams[1]));
    OK(aclrtFree(x));
    OK(aclrtFree(y));
    OK(aclrtFree(z));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    return 0;
}
