/* Checks, messages, log. Knows nobody.
 *
 * Every refusal has a rule id "function/parameter/rule", the vendor's status and a sentence with the offending values.
 * The checks of one API call are sticky: after the first refusal the later ones do nothing. */
#ifndef UNDERSTUDY_REPORT_H
#define UNDERSTUDY_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define US_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))

typedef enum LogLevel { LOG_LEVEL_OFF, LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG } LogLevel;

/* One call of a public function. `function` is the vendor's spelling and must outlive the call (a literal). */
typedef struct Call {
    const char *function;
    int32_t status; /* 0 until a rule refused */
    LogLevel refusal_level;
    bool open; /* between begin and end: what handles name stays in memory (grace.h) */
} Call;

/* Begins a call whose refusals are logged at `warn`, or at `error` where they are findings. */
Call us_call_begin(const char *function);
void us_report_refusals_as_errors(void); /* before the program's first call */

/* As us_call_begin for functions that return void: there is no status, so refusals are logged at `error`. */
Call us_call_begin_void(const char *function);

/* Ends the call: returns its status. Every public function that can refuse returns through here. */
int32_t us_call_end(Call *call);

/* The public function that this thread is in, or was in last; while it runs a queued task: the function that queued it. */
const char *us_current_function(void);
/* The place in the program that called it (caller.h). NULL: unknown. */
const void *us_current_caller(void);

/* While a thread runs a queued task, function and caller are those that queued it. */
typedef struct Origin {
    const char *function;
    const void *caller;
    bool queued;
} Origin;
Origin us_set_origin(Origin origin); /* gives what it was */

/* Refuses: records rule id, status and sentence for this thread and logs them. Does nothing when the call has already
 * been refused. `parameter` and `rule` are literals where possible: the rule catalogue is compared with them. */
void us_refuse(Call *call, const char *parameter, const char *rule, int32_t status, const char *format, ...)
    US_PRINTF(5, 6);

/* A refusal whose sentence names no values, for tables. */
typedef struct Refusal {
    const char *parameter, *rule;
    int32_t status;
    const char *sentence;
} Refusal;
static inline void us_refuse_as(Call *call, const Refusal *refusal)
{
    us_refuse(call, refusal->parameter, refusal->rule, refusal->status, "%s", refusal->sentence);
}

/* Refuses unless `condition` holds. Neither the condition nor the message is evaluated after an earlier refusal, so
 * later checks may follow pointers that earlier checks tested.
 *     us_require(&call, size > 0, "size", "range", ACL_ERROR_INVALID_PARAM, "size is 0");                         */
#define us_require(call, condition, ...) \
    ((void)((call)->status != 0 || (condition) || (us_refuse((call), __VA_ARGS__), 0)))

/* The last refusal (or device fault) of this thread. Strings are never NULL; empty when there was none. */
typedef struct LastError {
    int32_t status;
    bool unread; /* set by a refusal; vendor getters that clear on reading reset it */
    char rule[192];
    char text[768];
    char vendor_text[1152]; /* space for a vendor function that returns a formatted text (aclGetRecentErrMsg) */
} LastError;
LastError *us_last_error_of_thread(void);

/* The latest refusal of any thread; false when there was none since the last call that gave one. */
bool us_take_error_of_process(LastError *error);

/* Called for every refusal of the process, on the refused thread, after it was recorded; NULL: nobody listens. */
typedef void RefusalListener(const Call *call, const char *text);
void us_report_listen(RefusalListener *listener);

/* Refusals of the process so far. */
int64_t us_refusals(void);

/* A short explanation handed upwards by code that does not know which public function is being served. */
typedef struct Explanation {
    char text[384];
} Explanation;
void us_explain(Explanation *why, const char *format, ...) US_PRINTF(2, 3); /* `why` may be NULL */

/* Messages that are no refusals. UNDERSTUDY_LOG=off|error|warn|info|debug, default error; lines go to stderr. */
bool us_log_enabled(LogLevel level);
void us_log(LogLevel level, const char *format, ...) US_PRINTF(2, 3);

/* The environment as it was when the library was loaded (environment.c): any thread may change its own at any time. Unset or
 * empty gives the default; a value that cannot be read is reported once at `error` and ignored. */
const char *us_environment_text(const char *name, const char *fallback);
int64_t us_environment_integer(const char *name, int64_t fallback, int64_t lowest, int64_t highest);
/* Index of the value in the NULL-terminated list `choices`, or `fallback`, which may be an index behind the list. */
int us_environment_choice(const char *name, const char *const *choices, int fallback);

#endif
