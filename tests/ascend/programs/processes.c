/* Two processes on one device: an event says that memory is written, a notify that the other has answered. */
#define _DEFAULT_SOURCE
#include "program.h"

#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 1 << 20, KEY = 65 };

/* What the exporter tells the importer. */
typedef struct Letter {
    aclrtIpcEventHandle event;
    char memory[KEY], notify[KEY];
} Letter;

static aclrtStream begin(void)
{
    aclrtStream stream = NULL;
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    return stream;
}

static void finish(aclrtStream stream)
{
    OK(aclrtDestroyStream(stream));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
}

static int first_byte(const void *memory)
{
    unsigned char byte = 0;
    OK(aclrtMemcpy(&byte, 1, memory, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    return byte;
}

static int import(int from)
{
    Letter letter;
    aclrtEvent event = NULL;
    aclrtEventRecordedStatus status;
    aclrtNotify notify = NULL;
    void *memory = NULL;
    if (read(from, &letter, sizeof letter) != (ssize_t)sizeof letter) {
        return 1;
    }
    aclrtStream stream = begin();
    OK(aclrtIpcOpenEventHandle(letter.event, &event));
    OK(aclrtIpcMemImportByKey(&memory, letter.memory, 0));
    OK(aclrtNotifyImportByKey(&notify, letter.notify, 0));
    OK(aclrtStreamWaitEvent(stream, event));
    OK(aclrtSynchronizeStream(stream));
    int found = first_byte(memory);
    OK(aclrtMemsetAsync(memory, SIZE, 9, SIZE, stream));
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtRecordNotify(notify, stream));
    OK(aclrtSynchronizeEvent(event));
    OK(aclrtQueryEventStatus(event, &status));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtDestroyEvent(event));
    OK(aclrtDestroyNotify(notify));
    OK(aclrtIpcMemClose(letter.memory));
    finish(stream);
    return found == 7 && status == ACL_EVENT_RECORDED_STATUS_COMPLETE ? 0 : 1;
}

static void export(int to, pid_t importer)
{
    Letter letter;
    aclrtEvent event = NULL;
    aclrtNotify notify = NULL;
    int status = 0;
    aclrtStream stream = begin();
    void *memory = device_memory(SIZE);
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
    OK(aclrtCreateNotify(&notify, 0));
    OK(aclrtMemsetAsync(memory, SIZE, 7, SIZE, stream));
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtSynchronizeEvent(event));
    OK(aclrtIpcGetEventHandle(event, &letter.event));
    OK(aclrtIpcMemGetExportKey(memory, SIZE, letter.memory, KEY, 1)); /* 1 and 2: for anybody */
    OK(aclrtNotifyGetExportKey(notify, letter.notify, KEY, 2));
    if (write(to, &letter, sizeof letter) != (ssize_t)sizeof letter) {
        exit(1);
    }
    OK(aclrtWaitAndResetNotify(notify, stream, 0));
    OK(aclrtSynchronizeStream(stream));
    printf("answered %d\n", first_byte(memory));
    waitpid(importer, &status, 0);
    printf("importer %d\n", status);
    OK(aclrtIpcMemClose(letter.memory));
    OK(aclrtDestroyEvent(event));
    OK(aclrtDestroyNotify(notify));
    OK(aclrtFree(memory));
    finish(stream);
}

int main(void)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return 1;
    }
    pid_t child = fork(); /* before the runtime is used */
    if (child == 0) {
        return import(ends[0]);
    }
    export(ends[1], child);
    return 0;
}
