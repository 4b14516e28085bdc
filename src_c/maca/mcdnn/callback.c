/* The callback that hears of refused calls (mcdnn 3, 5.1). */
#include "check.h"

#include "maca/common/platform.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef struct Callback {
    unsigned mask;
    void *data;
    mcdnnCallback_t function;
    time_t since;
} Callback;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Callback current;

/* Whether this thread is inside the callback: refusals there are not reported to it again. */
static _Thread_local bool reporting;

static Callback current_callback(void)
{
    pthread_mutex_lock(&lock);
    Callback callback = current;
    pthread_mutex_unlock(&lock);
    return callback;
}

/* The text is copied: a call that the callback makes may be refused as well, and overwrite it. */
static void hear(const Call *call, const char *text)
{
    Callback callback = current_callback();
    if (reporting || callback.function == NULL || (callback.mask & MCDNN_SEV_ERROR_EN) == 0 ||
        strncmp(call->function, "mcdnn", 5) != 0)
        return;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    mcdnnDebug_t facts = {.mcdnn_version = MCDNN_VERSION,
                          .mcdnnStatus = (mcdnnStatus_t)call->status,
                          .time_sec = (unsigned)now.tv_sec,
                          .time_usec = (unsigned)(now.tv_nsec / 1000),
                          .time_delta = (unsigned)(now.tv_sec - callback.since),
                          .pid = (unsigned long long)getpid(),
                          .tid = (unsigned long long)syscall(SYS_gettid),
                          .deviceId = maca_device_ordinal()};
    char message[1024];
    snprintf(message, sizeof message, "%s: %s", call->function, text);
    reporting = true;
    callback.function(MCDNN_SEV_ERROR, callback.data, &facts, message);
    reporting = false;
}

/* The core outlives this library. */
__attribute__((destructor)) static void stop_hearing(void)
{
    us_report_listen(NULL);
}

mcdnnStatus_t mcdnnSetCallback(unsigned mask, void *udata, mcdnnCallback_t fptr)
{
    Call call = us_call_begin("mcdnnSetCallback");
    pthread_mutex_lock(&lock);
    current = (Callback){mask, udata, fptr, time(NULL)};
    us_report_listen(fptr != NULL ? hear : NULL);
    pthread_mutex_unlock(&lock);
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetCallback(unsigned *mask, void **udata, mcdnnCallback_t *fptr)
{
    Call call = us_call_begin("mcdnnGetCallback");
    check_given(&call, "mask", mask);
    check_given(&call, "udata", udata);
    check_given(&call, "fptr", fptr);
    if (call.status == 0) {
        Callback callback = current_callback();
        *mask = callback.mask;
        *udata = callback.data;
        *fptr = callback.function;
    }
    return us_call_end(&call);
}
