/* Streams that write a number to memory, or stand still until memory holds one. */
#ifndef UNDERSTUDY_VALUE_H
#define UNDERSTUDY_VALUE_H

#include "device/device.h"

/* *p is the 64-bit number at the address, v the task's. */
typedef enum ValueTest {
    VALUE_NOT_LESS, /* (int64)(*p - v) >= 0 */
    VALUE_EQUAL,    /* *p == v */
    VALUE_AND,      /* (*p & v) != 0 */
    VALUE_NOR,      /* ~(*p | v) != 0 */
} ValueTest;

typedef struct ValueTask {
    Device *device;
    void *address; /* as the program gave it, a multiple of 8 */
    uint64_t value;
    ValueTest test; /* of a wait */
} ValueTask;

/* Queue a copy of the task. False: no memory. */
bool us_value_write(Stream *stream, const ValueTask *task);
bool us_value_wait(Stream *stream, const ValueTask *task);

/* Which of both a task is, by its function (StepInfo.run). */
bool us_is_value_write(TaskRun *run);
bool us_is_value_wait(TaskRun *run);

#endif
