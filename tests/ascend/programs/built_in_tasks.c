/* Tasks that the runtime brings: a reduction, random numbers, and two streams that meet at a number in memory. */
#include "program.h"

#include <string.h>

static aclrtRandomParaInfo parameter(const void *value, uint8_t size)
{
    aclrtRandomParaInfo made = {.isAddr = 0, .size = size};
    memcpy(made.valueOrAddr, value, size);
    return made;
}

static void reduce(aclrtStream stream)
{
    const float host[] = {1, 2, 3, 4};
    void *sum = device_memory(sizeof host);
    void *more = device_memory(sizeof host);
    upload(sum, host, sizeof host);
    upload(more, host, sizeof host);
    OK(aclrtReduceAsync(sum, more, sizeof host, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, stream, NULL));
    OK(aclrtSynchronizeStream(stream));
    print_floats("sum", sum, 4);
    OK(aclrtFree(sum));
    OK(aclrtFree(more));
}

static void draw(aclrtStream stream)
{
    enum { COUNT = 1000 };
    const float low = 2.0f, high = 3.0f;
    const uint64_t seed = 7, count = COUNT;
    static float host[COUNT];
    void *counter = device_memory(16);
    OK(aclrtMemset(counter, 16, 0, 16));
    aclrtRandomNumTaskInfo task; /* as programs leave it: what is not set is not looked at */
    task.dataType = ACL_FLOAT;
    task.randomNumFuncParaInfo.funcType = ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS;
    task.randomNumFuncParaInfo.paramInfo.uniformDisInfo.min = parameter(&low, sizeof low);
    task.randomNumFuncParaInfo.paramInfo.uniformDisInfo.max = parameter(&high, sizeof high);
    task.randomParaAddr = NULL;
    task.randomResultAddr = device_memory(sizeof host);
    task.randomCounterAddr = counter;
    task.randomSeed = parameter(&seed, sizeof seed);
    task.randomNum = parameter(&count, sizeof count);
    OK(aclrtRandomNumAsync(&task, stream, NULL));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(host, sizeof host, task.randomResultAddr, sizeof host, ACL_MEMCPY_DEVICE_TO_HOST));
    int inside = 0;
    double mean = 0;
    for (int i = 0; i < COUNT; i++) {
        inside += host[i] >= low && host[i] <= high;
        mean += host[i] / COUNT;
    }
    printf("uniform %d %d\n", inside, mean > 2.45 && mean < 2.55);
    OK(aclrtFree(task.randomResultAddr));
    OK(aclrtFree(counter));
}

/* The second stream's fill waits for the number that the first one writes after its own. */
static void meet(aclrtStream first)
{
    aclrtStream second = NULL;
    unsigned char host[4];
    OK(aclrtCreateStream(&second));
    void *number = device_memory(8);
    void *data = device_memory(sizeof host);
    OK(aclrtMemset(number, 8, 0, 8));
    OK(aclrtValueWait(number, 1, 1, second));
    OK(aclrtMemsetAsync(data, 2, 2, 2, second));
    OK(aclrtMemsetAsync(data, sizeof host, 1, sizeof host, first));
    OK(aclrtValueWrite(number, 1, 0, first));
    OK(aclrtSynchronizeStream(second));
    OK(aclrtMemcpy(host, sizeof host, data, sizeof host, ACL_MEMCPY_DEVICE_TO_HOST));
    printf("met %d %d %d %d\n", host[0], host[1], host[2], host[3]);
    OK(aclrtDestroyStream(second));
    OK(aclrtFree(number));
    OK(aclrtFree(data));
}

int main(void)
{
    aclrtStream stream = NULL;
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    reduce(stream);
    draw(stream);
    meet(stream);
    OK(aclrtDestroyStream(stream));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    return 0;
}
