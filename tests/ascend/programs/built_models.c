/* Models that a program builds: labels that a number in memory chooses between, and streams that start others. */
#include "program.h"

static aclrtStream persistent_stream(aclmdlRI model, uint32_t start)
{
    aclrtStream made = NULL;
    OK(aclrtCreateStreamWithConfig(&made, 0, ACL_STREAM_PERSISTENT));
    OK(aclmdlRIBindStream(model, made, start));
    return made;
}

static void run(aclmdlRI model)
{
    aclrtStream stream = NULL;
    OK(aclrtCreateStream(&stream));
    OK(aclmdlRIExecuteAsync(model, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtDestroyStream(stream));
}

static void add(void *sum, const void *more, aclrtStream stream)
{
    OK(aclrtReduceAsync(sum, more, 4, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, stream, NULL));
}

/* Label 1 stands behind the first addition, which is left out. */
static void labels(void)
{
    aclmdlRI model = NULL;
    aclrtLabel both[2];
    aclrtLabelList list = NULL;
    const uint32_t index = 1;
    const float one = 1, host[] = {10, 20};
    OK(aclmdlRIBuildBegin(&model, 0));
    aclrtStream stream = persistent_stream(model, ACL_MODEL_STREAM_FLAG_HEAD);
    void *chosen = device_memory(sizeof index);
    void *more = device_memory(sizeof one);
    char *data = device_memory(sizeof host);
    upload(chosen, &index, sizeof index);
    upload(more, &one, sizeof one);
    upload(data, host, sizeof host);
    for (int i = 0; i < 2; i++) {
        OK(aclrtCreateLabel(&both[i]));
    }
    OK(aclrtCreateLabelList(both, 2, &list));
    OK(aclrtSwitchLabelByIndex(chosen, 2, list, stream));
    OK(aclrtSetLabel(both[0], stream));
    add(data, more, stream);
    OK(aclrtSetLabel(both[1], stream));
    add(data + sizeof one, more, stream);
    OK(aclmdlRIEndTask(model, stream));
    OK(aclmdlRIBuildEnd(model, NULL));
    run(model);
    print_floats("labels", data, 2);
    OK(aclmdlRIUnbindStream(model, stream));
    OK(aclmdlRIDestroy(model));
    OK(aclrtDestroyLabelList(list));
    for (int i = 0; i < 2; i++) {
        OK(aclrtDestroyLabel(both[i]));
    }
    OK(aclrtDestroyStream(stream));
    OK(aclrtFree(chosen));
    OK(aclrtFree(more));
    OK(aclrtFree(data));
}

/* While the number is 1, the other stream runs in place of the rest of the first. */
static void switches(void)
{
    aclmdlRI model = NULL;
    const int32_t numbers[] = {1, 1};
    const int32_t two = 2;
    const float one = 1, host[] = {10, 20};
    OK(aclmdlRIBuildBegin(&model, 0));
    aclrtStream first = persistent_stream(model, ACL_MODEL_STREAM_FLAG_HEAD);
    aclrtStream other = persistent_stream(model, ACL_MODEL_STREAM_FLAG_DEFAULT);
    char *left = device_memory(sizeof numbers);
    void *more = device_memory(sizeof one);
    char *data = device_memory(sizeof host);
    upload(left, numbers, sizeof numbers);
    upload(more, &one, sizeof one);
    upload(data, host, sizeof host);
    OK(aclrtSwitchStream(left, ACL_RT_EQUAL, left + 4, ACL_RT_SWITCH_INT32, other, NULL, first));
    add(data, more, first);
    OK(aclmdlRIEndTask(model, first));
    add(data + sizeof one, more, other);
    OK(aclmdlRIEndTask(model, other));
    OK(aclmdlRIBuildEnd(model, NULL));
    run(model);
    print_floats("switched", data, 2);
    upload(left, &two, sizeof two);
    run(model);
    print_floats("not switched", data, 2);
    OK(aclmdlRIUnbindStream(model, first));
    OK(aclmdlRIUnbindStream(model, other));
    OK(aclrtDestroyStream(first));
    OK(aclrtDestroyStream(other));
    OK(aclmdlRIDestroy(model));
    OK(aclrtFree(left));
    OK(aclrtFree(more));
    OK(aclrtFree(data));
}

int main(void)
{
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    labels();
    switches();
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    return 0;
}
