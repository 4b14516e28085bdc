/* Programs that want to know of streams, devices and aborts, under a name (cann-runtime-3 6, doc 04, 06, 13). */
#include "ascend/ascendcl/callback_list.h"

#include <string.h>

static void register_by_name(Call *call, CallbackOccasion occasion, const char *name, AnyFunction *function,
                             void *arguments)
{
    Callback entry = {.function = function, .arguments = arguments};
    us_require(call, name != NULL && name[0] != '\0', "regName", "empty", ACL_ERROR_INVALID_PARAM,
               "regName is NULL or empty");
    us_require(call, strlen(name) < sizeof entry.name, "regName", "length", ACL_ERROR_INVALID_PARAM,
               "regName has %zu characters; %zu are allowed", strlen(name), sizeof entry.name - 1);
    Runtime *runtime = acl_require_runtime(call);
    if (call->status != 0) {
        return;
    }
    strcpy(entry.name, name);
    if (function == NULL) {
        callbacks_remove(runtime, occasion, &entry);
        return;
    }
    CallbackAdded added = callbacks_add_new(runtime, occasion, &entry);
    us_require(call, added != CALLBACK_IS_THERE, "regName", "registered", ACL_ERROR_RT_PARAM_INVALID,
               "\"%s\" is registered already", name);
    us_require(call, added != CALLBACKS_ARE_FULL, "regName", "limit", ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
               "there are %d callbacks already", (int)CALLBACK_LIMIT);
}

aclError aclrtRegStreamStateCallback(const char *regName, aclrtStreamStateCallback callback, void *args)
{
    Call call = us_call_begin("aclrtRegStreamStateCallback");
    register_by_name(&call, CALLBACK_STREAM_STATE, regName, (AnyFunction *)callback, args);
    return acl_end(&call);
}

aclError aclrtRegDeviceStateCallback(const char *regName, aclrtDeviceStateCallback callback, void *args)
{
    Call call = us_call_begin("aclrtRegDeviceStateCallback");
    register_by_name(&call, CALLBACK_DEVICE_STATE, regName, (AnyFunction *)callback, args);
    return acl_end(&call);
}

aclError aclrtSetDeviceTaskAbortCallback(const char *regName, aclrtDeviceTaskAbortCallback callback, void *args)
{
    Call call = us_call_begin("aclrtSetDeviceTaskAbortCallback");
    acl_require_aborts(&call);
    register_by_name(&call, CALLBACK_TASK_ABORT, regName, (AnyFunction *)callback, args);
    return acl_end(&call);
}

/* ---- calling them ---- */

static void tell_stream(const Stream *stream, aclrtStreamState state)
{
    Runtime *runtime = acl_runtime();
    Callback callbacks[CALLBACK_LIMIT];
    size_t count = runtime != NULL ? callbacks_copy(runtime, CALLBACK_STREAM_STATE, callbacks) : 0;
    for (size_t i = 0; i < count; i++) {
        ((aclrtStreamStateCallback)callbacks[i].function)(stream->handle, state, callbacks[i].arguments);
    }
}

static int64_t set_setting(Stream *stream, int64_t setting)
{
    return __atomic_fetch_or(&stream->vendor_state[STREAM_SETTINGS], setting, __ATOMIC_RELAXED);
}

void acl_tell_stream_begins(Stream *stream)
{
    if ((set_setting(stream, STREAM_ANNOUNCED) & STREAM_ANNOUNCED) == 0) {
        tell_stream(stream, ACL_RT_STREAM_STATE_CREATE_POST);
    }
}

void acl_tell_stream_ends(Stream *stream)
{
    int64_t before = set_setting(stream, STREAM_END_ANNOUNCED);
    if ((before & STREAM_ANNOUNCED) != 0 && (before & STREAM_END_ANNOUNCED) == 0) {
        tell_stream(stream, ACL_RT_STREAM_STATE_DESTROY_PRE);
    }
}

void acl_tell_device(int32_t ordinal, aclrtDeviceState state)
{
    Runtime *runtime = acl_runtime();
    Callback callbacks[CALLBACK_LIMIT];
    size_t count = runtime != NULL ? callbacks_copy(runtime, CALLBACK_DEVICE_STATE, callbacks) : 0;
    for (size_t i = 0; i < count; i++) {
        ((aclrtDeviceStateCallback)callbacks[i].function)(ordinal, state, callbacks[i].arguments);
    }
}
