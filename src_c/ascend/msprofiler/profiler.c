/* Profiling to a directory, and subscriptions to models (cann-runtime-3 15). What is collected is the timeline of
 * UNDERSTUDY_TRACE, in the file understudy-PROCESS.json of that directory. */
#include "ascend/msprofiler/profiler.h"

#include "acl/error_codes/rt_error_codes.h"
#include "ascend/common/platform.h"
#include "report/trace.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, SETTING_BYTES = 256, SUBSCRIPTION_LIMIT = 1024, RECORD_BYTES = 64 };

typedef struct Subscription {
    uint32_t model;
    int pipe; /* where records would go; nobody makes any */
} Subscription;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool ready; /* between aclprofInit and aclprofFinalize */
static char directory[PATH_BYTES + 1];
static struct {
    const aclprofConfig *configuration; /* handle */
    uint64_t devices;
} running[DEVICE_LIMIT]; /* what was started: no device twice */
static size_t running_count;
static Subscription subscriptions[SUBSCRIPTION_LIMIT];
static size_t subscription_count;

/* ---- collection ---- */

/* All folders of the path. */
static bool make_directory(const char *path)
{
    char part[PATH_BYTES + 1];
    snprintf(part, sizeof part, "%s", path);
    for (char *at = part + 1; *at != '\0'; at++) {
        if (*at == '/') {
            *at = '\0';
            if (mkdir(part, 0777) != 0 && errno != EEXIST) {
                return false;
            }
            *at = '/';
        }
    }
    struct stat found;
    return (mkdir(part, 0777) == 0 || errno == EEXIST) && stat(part, &found) == 0 && S_ISDIR(found.st_mode) &&
           access(part, W_OK) == 0;
}

static bool is_configured(void)
{
    Platform *platform = us_platform_known(ASCEND_PLATFORM);
    bool configured = false;
    if (platform != NULL) {
        us_platform_lock(platform);
        configured = platform->options[PROFILED_OPTION] != 0;
        us_platform_unlock(platform);
    }
    return configured;
}

aclError aclprofInit(const char *profilerResultPath, size_t length)
{
    Call call = us_call_begin("aclprofInit");
    us_require(&call, profilerResultPath != NULL, "profilerResultPath", "null", ACL_ERROR_INVALID_PARAM,
               "profilerResultPath is NULL");
    us_require(&call, length > 0 && length <= PATH_BYTES, "length", "range", ACL_ERROR_INVALID_PARAM,
               "length is %zu; it must be 1 to 4096", length);
    pthread_mutex_lock(&lock);
    us_require(&call, subscription_count == 0, "profiling", "conflict", ACL_ERROR_PROF_API_CONFLICT,
               "a model is subscribed; one process cannot do both");
    us_require(&call, !ready, "profiling", "running", ACL_ERROR_PROF_ALREADY_RUN, "aclprofInit has been called already");
    us_require(&call, !is_configured(), "profiling", "configured", ACL_ERROR_PROF_ALREADY_RUN,
               "the configuration of aclInit has switched profiling on");
    if (call.status == 0) {
        snprintf(directory, sizeof directory, "%.*s", (int)length, profilerResultPath);
    }
    us_require(&call, make_directory(directory), "profilerResultPath", "unusable", ACL_ERROR_INVALID_PARAM,
               "%s cannot be made or written to: %s", directory, strerror(errno));
    ready = ready || call.status == 0;
    pthread_mutex_unlock(&lock);
    return us_call_end(&call);
}

/* With the lock held. */
static void require_ready(Call *call)
{
    us_require(call, ready, "profiling", "idle", ACL_ERROR_PROF_NOT_RUN, "aclprofInit has not been called");
}

aclError aclprofFinalize(void)
{
    Call call = us_call_begin("aclprofFinalize");
    pthread_mutex_lock(&lock);
    require_ready(&call);
    if (call.status == 0) {
        ready = false;
        running_count = 0;
        us_trace_stop();
    }
    pthread_mutex_unlock(&lock);
    return us_call_end(&call);
}

typedef struct Configuration {
    uint64_t data_types;
    uint64_t devices; /* a bit for each; without a list: all */
} Configuration;

static const uint64_t KNOWN_DATA = ACL_PROF_ACL_API | ACL_PROF_AICORE_METRICS | ACL_PROF_AICORE_SHAPE | ACL_PROF_AICPU |
                                   ACL_PROF_API_STATS | ACL_PROF_GE_API_L0 | ACL_PROF_GE_API_L1 | ACL_PROF_HCCL_TRACE |
                                   ACL_PROF_L2CACHE | ACL_PROF_MSPROFTX | ACL_PROF_OP_ATTR | ACL_PROF_RUNTIME_API |
                                   ACL_PROF_TASK_MEMORY | ACL_PROF_TASK_TIME | ACL_PROF_TASK_TIME_L0 |
                                   ACL_PROF_TASK_TIME_L2 | ACL_PROF_TASK_TIME_L3 | ACL_PROF_TRAINING_TRACE;

static uint64_t require_devices(Call *call, const uint32_t *devices, uint32_t count)
{
    us_require(call, devices != NULL || count == 0, "deviceIdList", "null", ACL_ERROR_INVALID_PARAM,
               "deviceIdList is NULL for %u devices", (unsigned)count);
    const Platform *platform = call->status == 0 ? ascend_platform() : NULL;
    uint32_t known = platform != NULL ? (uint32_t)platform->device_count : 0;
    uint64_t mask = count == 0 ? UINT64_MAX : 0;
    for (uint32_t i = 0; call->status == 0 && i < count; i++) {
        us_require(call, devices[i] < known, "deviceIdList", "range", ACL_ERROR_RT_INVALID_DEVICEID,
                   "device %u does not exist: there are %u, numbered from 0", (unsigned)devices[i], (unsigned)known);
        mask |= call->status == 0 ? (uint64_t)1 << devices[i] : 0;
    }
    return mask;
}

aclprofConfig *aclprofCreateConfig(uint32_t *deviceIdList, uint32_t deviceNums, aclprofAicoreMetrics aicoreMetrics,
                                   const aclprofAicoreEvents *aicoreEvents, uint64_t dataTypeConfig)
{
    (void)aicoreMetrics; /* there are no counters of a core */
    Call call = us_call_begin("aclprofCreateConfig");
    uint64_t devices = require_devices(&call, deviceIdList, deviceNums);
    us_require(&call, aicoreEvents == NULL, "aicoreEvents", "reserved", ACL_ERROR_INVALID_PARAM,
               "aicoreEvents is %p; it must be NULL", (const void *)aicoreEvents);
    Configuration initial = {.data_types = dataTypeConfig, .devices = devices};
    void *handle =
        call.status == 0 ? us_handle_new(HANDLE_PROFILER_CONFIGURATION, &initial, sizeof initial) : NULL;
    us_require(&call, handle != NULL, "config", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a configuration");
    us_call_end(&call);
    return handle;
}

static const Configuration *require_configuration(Call *call, const aclprofConfig *handle)
{
    us_require(call, handle != NULL, "profilerConfig", "null", ACL_ERROR_INVALID_PARAM, "profilerConfig is NULL");
    const Configuration *found = call->status == 0 ? us_handle_object(handle, HANDLE_PROFILER_CONFIGURATION) : NULL;
    us_require(call, found != NULL, "profilerConfig", "dead", ACL_ERROR_INVALID_PARAM,
               "%p has been destroyed, or never was a configuration", (const void *)handle);
    return found;
}

aclError aclprofDestroyConfig(const aclprofConfig *profilerConfig)
{
    Call call = us_call_begin("aclprofDestroyConfig");
    require_configuration(&call, profilerConfig);
    us_require(&call, us_handle_release(profilerConfig, HANDLE_PROFILER_CONFIGURATION), "profilerConfig", "dead",
               ACL_ERROR_INVALID_PARAM, "%p has just been destroyed by another thread", (const void *)profilerConfig);
    return us_call_end(&call);
}

/* With the lock held: the place of a configuration that was started, or the end. */
static size_t find_running(const aclprofConfig *handle)
{
    size_t at = 0;
    while (at < running_count && running[at].configuration != handle) {
        at++;
    }
    return at;
}

/* With the lock held. */
static uint64_t devices_in_use(void)
{
    uint64_t devices = 0;
    for (size_t i = 0; i < running_count; i++) {
        devices |= running[i].devices;
    }
    return devices;
}

aclError aclprofStart(const aclprofConfig *profilerConfig)
{
    Call call = us_call_begin("aclprofStart");
    const Configuration *found = require_configuration(&call, profilerConfig);
    us_require(&call, (found->data_types & ~KNOWN_DATA) == 0, "profilerConfig", "data", ACL_ERROR_PROF_MODULES_UNSUPPORTED,
               "dataTypeConfig was 0x%llx; of its bits 0x%llx are unknown", (unsigned long long)found->data_types,
               (unsigned long long)(found->data_types & ~KNOWN_DATA));
    pthread_mutex_lock(&lock);
    require_ready(&call);
    us_require(&call, (found->devices & devices_in_use()) == 0, "profiling", "running", ACL_ERROR_PROF_ALREADY_RUN,
               "profiling of one of the devices runs already (devices 0x%llx)", (unsigned long long)devices_in_use());
    if (call.status == 0 && running_count == 0) {
        char path[PATH_BYTES + 64];
        snprintf(path, sizeof path, "%s/understudy-%d.json", directory, (int)getpid());
        us_require(&call, us_trace_start(path), "profiling", "file", ACL_ERROR_PROFILING_FAILURE, "%s cannot be written: %s",
                   path, strerror(errno));
    }
    if (call.status == 0) {
        running[running_count].configuration = profilerConfig;
        running[running_count++].devices = found->devices;
    }
    pthread_mutex_unlock(&lock);
    return us_call_end(&call);
}

aclError aclprofStop(const aclprofConfig *profilerConfig)
{
    Call call = us_call_begin("aclprofStop");
    require_configuration(&call, profilerConfig);
    pthread_mutex_lock(&lock);
    require_ready(&call);
    size_t at = find_running(profilerConfig);
    us_require(&call, at < running_count, "profilerConfig", "stopped", ACL_ERROR_INVALID_PARAM,
               "profiling was not started with this configuration");
    if (call.status == 0) {
        running[at] = running[--running_count];
    }
    if (call.status == 0 && running_count == 0) {
        us_trace_stop();
    }
    pthread_mutex_unlock(&lock);
    return us_call_end(&call);
}

/* ---- settings: checked, for there is no hardware that they would concern ---- */

static bool is_number_between(const char *text, const char *unit, uint64_t lowest, uint64_t highest)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    return end != text && errno == 0 && text[0] != '-' && (*end == '\0' || strcmp(end, unit) == 0) && value >= lowest &&
           value <= highest;
}

static bool is_choice(const char *text, const char *first, const char *second)
{
    char both[SETTING_BYTES];
    snprintf(both, sizeof both, "%s,%s", first, second);
    return strcmp(text, first) == 0 || strcmp(text, second) == 0 || strcmp(text, both) == 0;
}

static bool is_setting(aclprofConfigType type, const char *text)
{
    switch (type) {
    case ACL_PROF_STORAGE_LIMIT:
        return is_number_between(text, "MB", 200, UINT32_MAX);
    case ACL_PROF_SYS_HARDWARE_MEM_FREQ:
    case ACL_PROF_SYS_IO_FREQ:
    case ACL_PROF_DVPP_FREQ:
    case ACL_PROF_LOW_POWER_FREQ:
    case ACL_PROF_SYS_CPU_FREQ:
        return is_number_between(text, "", 1, 100);
    case ACL_PROF_SYS_INTERCONNECTION_FREQ:
    case ACL_PROF_HOST_SYS_USAGE_FREQ:
        return is_number_between(text, "", 1, 50);
    case ACL_PROF_LLC_MODE:
        return strcmp(text, "read") == 0 || strcmp(text, "write") == 0;
    case ACL_PROF_HOST_SYS:
    case ACL_PROF_HOST_SYS_USAGE:
        return is_choice(text, "cpu", "mem") || strcmp(text, "mem,cpu") == 0;
    default:
        return text[0] != '\0';
    }
}

aclError aclprofSetConfig(aclprofConfigType configType, const char *config, size_t configLength)
{
    Call call = us_call_begin("aclprofSetConfig");
    us_require(&call, config != NULL, "config", "null", ACL_ERROR_INVALID_PARAM, "config is NULL");
    us_require(&call, configLength > 0 && configLength <= SETTING_BYTES, "configLength", "range", ACL_ERROR_INVALID_PARAM,
               "configLength is %zu; it must be 1 to 256", configLength);
    us_require(&call, configType > ACL_PROF_ARGS_MIN && configType < ACL_PROF_ARGS_MAX && (int)configType != 2,
               "configType", "range", ACL_ERROR_INVALID_PARAM, "configType is %d; it must be 1 or 3 to 16",
               (int)configType);
    char text[SETTING_BYTES + 1];
    snprintf(text, sizeof text, "%.*s", call.status == 0 ? (int)configLength : 0, call.status == 0 ? config : "");
    us_require(&call, is_setting(configType, text), "config", "value", ACL_ERROR_INVALID_PROFILING_CONFIG,
               "\"%s\" is no value of setting %d", text, (int)configType);
    return us_call_end(&call);
}

/* ---- subscriptions: there are no models here, so no records ever come ---- */

typedef struct SubscriptionConfiguration {
    int pipe;
} SubscriptionConfiguration;

aclprofSubscribeConfig *aclprofCreateSubscribeConfig(int8_t timeInfoSwitch, aclprofAicoreMetrics aicoreMetrics, void *fd)
{
    (void)timeInfoSwitch;
    (void)aicoreMetrics;
    Call call = us_call_begin("aclprofCreateSubscribeConfig");
    us_require(&call, fd != NULL, "fd", "null", ACL_ERROR_INVALID_PARAM, "fd is NULL; it must point to a file descriptor");
    void *handle = NULL;
    if (call.status == 0) {
        SubscriptionConfiguration initial = {.pipe = *(const int *)fd};
        handle = us_handle_new(HANDLE_PROFILER_SUBSCRIPTION, &initial, sizeof initial);
    }
    us_require(&call, handle != NULL, "config", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a configuration");
    us_call_end(&call);
    return handle;
}

static const SubscriptionConfiguration *require_subscription(Call *call, const aclprofSubscribeConfig *handle)
{
    us_require(call, handle != NULL, "profSubscribeConfig", "null", ACL_ERROR_INVALID_PARAM, "profSubscribeConfig is NULL");
    const SubscriptionConfiguration *found =
        call->status == 0 ? us_handle_object(handle, HANDLE_PROFILER_SUBSCRIPTION) : NULL;
    us_require(call, found != NULL, "profSubscribeConfig", "dead", ACL_ERROR_INVALID_PARAM,
               "%p has been destroyed, or never was a configuration", (const void *)handle);
    return found;
}

aclError aclprofDestroySubscribeConfig(const aclprofSubscribeConfig *profSubscribeConfig)
{
    Call call = us_call_begin("aclprofDestroySubscribeConfig");
    require_subscription(&call, profSubscribeConfig);
    us_require(&call, us_handle_release(profSubscribeConfig, HANDLE_PROFILER_SUBSCRIPTION), "profSubscribeConfig", "dead",
               ACL_ERROR_INVALID_PARAM, "%p has just been destroyed by another thread",
               (const void *)profSubscribeConfig);
    return us_call_end(&call);
}

static size_t find_subscription(uint32_t model)
{
    size_t at = 0;
    while (at < subscription_count && subscriptions[at].model != model) {
        at++;
    }
    return at;
}

aclError aclprofModelSubscribe(uint32_t modelId, const aclprofSubscribeConfig *profSubscribeConfig)
{
    Call call = us_call_begin("aclprofModelSubscribe");
    const SubscriptionConfiguration *found = require_subscription(&call, profSubscribeConfig);
    pthread_mutex_lock(&lock);
    us_require(&call, !ready, "profiling", "conflict", ACL_ERROR_PROF_API_CONFLICT,
               "aclprofInit has been called; one process cannot do both");
    us_require(&call, find_subscription(modelId) == subscription_count, "modelId", "repeated",
               ACL_ERROR_PROF_REPEAT_SUBSCRIBE, "model %u is subscribed already", (unsigned)modelId);
    us_require(&call, subscription_count < SUBSCRIPTION_LIMIT, "modelId", "memory", ACL_ERROR_BAD_ALLOC,
               "there are %d subscriptions already", SUBSCRIPTION_LIMIT);
    if (call.status == 0) {
        subscriptions[subscription_count++] = (Subscription){modelId, found->pipe};
    }
    pthread_mutex_unlock(&lock);
    return us_call_end(&call);
}

aclError aclprofModelUnSubscribe(uint32_t modelId)
{
    Call call = us_call_begin("aclprofModelUnSubscribe");
    pthread_mutex_lock(&lock);
    size_t at = find_subscription(modelId);
    us_require(&call, at < subscription_count, "modelId", "unknown", ACL_ERROR_INVALID_PARAM, "model %u is not subscribed",
               (unsigned)modelId);
    if (call.status == 0) {
        close(subscriptions[at].pipe); /* that is how the reader learns that nothing more comes */
        subscriptions[at] = subscriptions[--subscription_count];
    }
    pthread_mutex_unlock(&lock);
    return us_call_end(&call);
}

aclError aclprofGetOpDescSize(size_t *opDescSize)
{
    Call call = us_call_begin("aclprofGetOpDescSize");
    us_require(&call, opDescSize != NULL, "opDescSize", "null", ACL_ERROR_INVALID_PARAM, "opDescSize is NULL");
    if (call.status == 0) {
        *opDescSize = RECORD_BYTES;
    }
    return us_call_end(&call);
}
