/* Error text, last error of the thread, log of the application (cann-runtime 8 and 9, aclnn-base 3). */
#include "ascend/ascendcl/runtime.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct MessageKind {
    int32_t lowest, highest;
    const char *text;
} MessageKind;

/* aclnn-base 3 gives the first; the others are named alike. */
static const MessageKind message_kinds[] = {
    {161000, 161999, "AclNN_Parameter_Error(EZ1001)"},
    {361000, 361999, "AclNN_Runtime_Error(EZ9903)"},
    {561000, 561999, "AclNN_Inner_Error(EZ9999)"},
    {100000, 199999, "Invalid_Argument(EE1001)"},
    {200000, 399999, "Resource_Error(EE1011)"},
};

static const char *kind_of_status(int32_t status)
{
    for (size_t i = 0; i < sizeof message_kinds / sizeof message_kinds[0]; i++) {
        if (status >= message_kinds[i].lowest && status <= message_kinds[i].highest) {
            return message_kinds[i].text;
        }
    }
    return "Inner_Error(EE9999)";
}

static void format_time(char *text, size_t size)
{
    struct timespec now;
    struct tm calendar;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &calendar);
    size_t used = strftime(text, size, "%Y-%m-%d-%H:%M:%S", &calendar);
    snprintf(text + used, size - used, ".%03ld.%03ld", now.tv_nsec / 1000000, now.tv_nsec / 1000 % 1000);
}

const char *aclGetRecentErrMsg(void)
{
    LastError *own = us_last_error_of_thread();
    const Runtime *runtime = acl_runtime();
    LastError latest;
    bool of_process = runtime != NULL && atomic_load(&runtime->messages_of_process);
    if (of_process ? !us_take_error_of_process(&latest) : !own->unread) {
        return NULL;
    }
    const LastError *error = of_process ? &latest : own;
    own->unread = of_process && own->unread;
    char time_stamp[64];
    format_time(time_stamp, sizeof time_stamp);
    snprintf(own->vendor_text, sizeof own->vendor_text, "[PID:%d] %s %s: %s", (int)getpid(), time_stamp,
             kind_of_status(error->status), error->text);
    return own->vendor_text;
}

static int32_t *last_error(Call *call, aclrtLastErrLevel level)
{
    us_require(call, level == ACL_RT_THREAD_LEVEL, "level", "range", ACL_ERROR_INVALID_PARAM,
               "level is %d; only ACL_RT_THREAD_LEVEL (%d) exists", (int)level, (int)ACL_RT_THREAD_LEVEL);
    Platform *platform = ascend_platform();
    return call->status == 0 && platform != NULL ? us_thread_status(platform) : NULL;
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level)
{
    Call call = us_call_begin("aclrtPeekAtLastError");
    int32_t *error = last_error(&call, level);
    aclError status = acl_end(&call);
    return error != NULL ? *error : status;
}

aclError aclrtGetLastError(aclrtLastErrLevel level)
{
    Call call = us_call_begin("aclrtGetLastError");
    int32_t *error = last_error(&call, level);
    aclError status = acl_end(&call);
    if (error != NULL) {
        status = *error;
        *error = ACL_SUCCESS;
    }
    return status;
}

void aclAppLog(aclLogLevel logLevel, const char *func, const char *file, uint32_t line, const char *fmt, ...)
{
    static const LogLevel levels[] = {
        [ACL_DEBUG] = LOG_LEVEL_DEBUG,
        [ACL_INFO] = LOG_LEVEL_INFO,
        [ACL_WARNING] = LOG_LEVEL_WARN,
        [ACL_ERROR] = LOG_LEVEL_ERROR,
    };
    bool known = (int)logLevel >= ACL_DEBUG && (int)logLevel <= ACL_ERROR;
    LogLevel level = known ? levels[logLevel] : LOG_LEVEL_ERROR;
    if (fmt == NULL || !us_log_enabled(level)) {
        return;
    }
    char text[1024];
    va_list arguments;
    va_start(arguments, fmt);
    vsnprintf(text, sizeof text, fmt, arguments);
    va_end(arguments);
    /* The PyTorch adapter says so of errors that it expects, and of warnings that are none. */
    if (strstr(text, "log can be ignored") != NULL && level < LOG_LEVEL_INFO) {
        level = LOG_LEVEL_INFO;
    }
    us_log(level, "[application] %s %s:%u %s", func != NULL ? func : "", file != NULL ? file : "", (unsigned)line,
           text);
}
