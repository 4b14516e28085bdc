#include "device/value.h"

#include "device/check.h"
#include "device/order.h"

#include <stdlib.h>

/* Waits look again when any task has run or the host has copied, for that may have written what they wait for. */
static pthread_mutex_t wait_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t something_ran;
static pthread_once_t wait_once = PTHREAD_ONCE_INIT;
static _Atomic int waiters;

static void make_condition(void)
{
    us_condition_init(&something_ran);
}

void us_value_look_again(void)
{
    if (atomic_load(&waiters) > 0) {
        pthread_mutex_lock(&wait_lock);
        pthread_cond_broadcast(&something_ran);
        pthread_mutex_unlock(&wait_lock);
    }
}

static _Atomic uint64_t *open_number(const ValueTask *task, Explanation *why)
{
    return us_memory_open(task->device->platform, task->device, task->address, sizeof(uint64_t), MEMORY_USER_KERNEL,
                          why);
}

static bool holds(uint64_t present, uint64_t value, ValueTest test)
{
    switch (test) {
    case VALUE_NOT_LESS: return (int64_t)(present - value) >= 0;
    case VALUE_EQUAL: return present == value;
    case VALUE_AND: return (present & value) != 0;
    case VALUE_NOR: return ~(present | value) != 0;
    }
    return false;
}

static DeviceFault run_write(void *argument, Explanation *why)
{
    const ValueTask *task = argument;
    _Atomic uint64_t *number = open_number(task, why);
    if (number == NULL) {
        return DEVICE_FAULT_ADDRESS;
    }
    atomic_store(number, task->value);
    us_check_mark_written(task->device->platform, task->address, sizeof task->value);
    us_value_look_again();
    return DEVICE_FAULT_NONE;
}

/* Also when it cannot be read: then running it says why. */
static bool is_over(void *argument)
{
    const ValueTask *task = argument;
    Explanation why;
    const _Atomic uint64_t *number = open_number(task, &why);
    return number == NULL || holds(atomic_load(number), task->value, task->test);
}

static void wake(void *sleeper)
{
    (void)sleeper;
    us_value_look_again();
}

/* Everything that we write wakes the waits. Plain stores of the program into managed memory, and those of other processes into
 * memory that they share, call nothing of ours that could: for them the number is looked at again, as the hardware does. Five
 * hundred looks a second, each well below a microsecond, are nothing beside the work that is waited for. */
static DeviceFault run_wait(void *argument, Explanation *why)
{
    static const uint64_t LOOK_AGAIN = 2 * 1000000; /* nanoseconds */
    const ValueTask *task = argument;
    pthread_once(&wait_once, make_condition);
    atomic_fetch_add(&waiters, 1);
    us_task_sleeps(wake, NULL);
    pthread_mutex_lock(&wait_lock);
    while (!is_over(argument) && !us_task_gives_up()) {
        if (us_stream_mode() == STREAM_MODE_DEFERRED) {
            /* Any of them may write the number, also with a copy or a kernel. */
            pthread_mutex_unlock(&wait_lock);
            us_platform_allow(task->device->platform);
            pthread_mutex_lock(&wait_lock);
        }
        struct timespec deadline = us_deadline(LOOK_AGAIN);
        pthread_cond_timedwait(&something_ran, &wait_lock, &deadline);
    }
    pthread_mutex_unlock(&wait_lock);
    us_task_sleeps(NULL, NULL);
    atomic_fetch_sub(&waiters, 1);
    return open_number(task, why) == NULL ? DEVICE_FAULT_ADDRESS : DEVICE_FAULT_NONE;
}

bool us_is_value_write(TaskRun *run)
{
    return run == run_write;
}

bool us_is_value_wait(TaskRun *run)
{
    return run == run_wait;
}

static bool queue(Stream *stream, const ValueTask *task, Task queued)
{
    ValueTask *kept = malloc(sizeof *kept);
    if (kept == NULL) {
        return false;
    }
    *kept = *task;
    queued.argument = kept;
    queued.release = free;
    queued.anywhere = true;
    uint64_t ticket = 0;
    if (!us_stream_queue(stream_state(stream), queued, &ticket)) {
        free(kept);
        return false;
    }
    return true;
}

bool us_value_write(Stream *stream, const ValueTask *task)
{
    return queue(stream, task, (Task){.work = {"value write", "value", 8}, .run = run_write});
}

bool us_value_wait(Stream *stream, const ValueTask *task)
{
    Moment *moment = us_order_unknown();
    const bool queued = queue(stream, task, (Task){.work = {"value wait", "value", 8}, .run = run_wait, .ready = is_over,
                                                   .after = moment});
    us_order_let_go(moment);
    return queued;
}
