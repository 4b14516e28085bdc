#include "report/report.h"

#include "report/caller.h"
#include "report/fork.h"
#include "report/gate.h"
#include "report/grace.h"
#include "understudy/understudy.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static _Thread_local LastError last_error;
static _Thread_local Origin current = {"nothing", NULL, false};

static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;
static LastError process_error;

static RefusalListener *_Atomic listener;
static _Atomic int64_t refusals = 0;
static LogLevel refusal_level = LOG_LEVEL_WARN;

__attribute__((constructor)) static void guard_lock(void)
{
    us_fork_waits_for(&process_lock);
}

LastError *us_last_error_of_thread(void)
{
    return &last_error;
}

const char *us_current_function(void)
{
    return current.function;
}

const void *us_current_caller(void)
{
    return current.queued ? current.caller : us_find_caller();
}

Origin us_set_origin(Origin origin)
{
    Origin before = current;
    current = origin;
    return before;
}

Call us_call_begin(const char *function)
{
    us_grace_enter();
    while (us_gate_holds(function)) {
        us_grace_leave();
        us_gate_wait(function);
        us_grace_enter();
    }
    current = (Origin){.function = function};
    return (Call){.function = function, .status = 0, .refusal_level = refusal_level, .open = true};
}

void us_report_refusals_as_errors(void)
{
    refusal_level = LOG_LEVEL_ERROR;
}

Call us_call_begin_void(const char *function)
{
    current = (Origin){.function = function};
    return (Call){.function = function, .status = 0, .refusal_level = LOG_LEVEL_ERROR};
}

int32_t us_call_end(Call *call)
{
    if (call->open) {
        call->open = false;
        us_grace_leave();
    }
    return call->status;
}

void us_refuse(Call *call, const char *parameter, const char *rule, int32_t status, const char *format, ...)
{
    if (call->status != 0) {
        return;
    }
    call->status = status;
    LastError *record = &last_error;
    record->status = status;
    record->unread = true;
    snprintf(record->rule, sizeof record->rule, "%s/%s/%s", call->function, parameter, rule);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(record->text, sizeof record->text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&process_lock);
    process_error = *record;
    pthread_mutex_unlock(&process_lock);
    if (us_log_enabled(call->refusal_level)) {
        us_log(call->refusal_level, "%s: %s (status %d)%s", record->rule, record->text, (int)status,
               us_place(us_current_caller()).text);
        us_log_calls();
    }
    atomic_fetch_add_explicit(&refusals, 1, memory_order_relaxed);
    RefusalListener *hear = listener;
    if (hear != NULL) {
        hear(call, record->text);
    }
}

bool us_take_error_of_process(LastError *error)
{
    pthread_mutex_lock(&process_lock);
    *error = process_error;
    process_error.unread = false;
    pthread_mutex_unlock(&process_lock);
    return error->unread;
}

int64_t us_refusals(void)
{
    return atomic_load(&refusals);
}

void us_report_listen(RefusalListener *wanted)
{
    listener = wanted;
}

void us_explain(Explanation *why, const char *format, ...)
{
    if (why == NULL) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why->text, sizeof why->text, format, arguments);
    va_end(arguments);
}

const char *understudy_version(void)
{
    return UNDERSTUDY_VERSION;
}

const char *understudy_last_error(void)
{
    return last_error.text;
}

const char *understudy_last_rule(void)
{
    return last_error.rule;
}

int32_t understudy_last_status(void)
{
    return last_error.status;
}

void understudy_clear_last_error(void)
{
    last_error.status = 0;
    last_error.unread = false;
    last_error.rule[0] = '\0';
    last_error.text[0] = '\0';
}
