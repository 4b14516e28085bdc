/* Functions that other libraries of the vendor want to be called from aclInit and aclFinalize (cann-runtime-3 6). */
#include "ascend/ascendcl/callback_list.h"

#include <stdlib.h>
#include <string.h>

static Runtime *require_callback(Call *call, aclRegisterCallbackType type, AnyFunction *function)
{
    bool known = ((int)type >= ACL_REG_TYPE_ACL_MODEL && (int)type <= ACL_REG_TYPE_ACL_RETR) ||
                 type == ACL_REG_TYPE_OTHER;
    us_require(call, known, "type", "range", ACL_ERROR_RT_PARAM_INVALID, "type is %d; it must be 0 to 7 or 65535",
               (int)type);
    us_require(call, function != NULL, "cbFunc", "null", ACL_ERROR_INVALID_PARAM, "cbFunc is NULL");
    return acl_require_runtime(call);
}

static void require_room(Call *call, bool added)
{
    us_require(call, added, "cbFunc", "limit", ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "there are %d callbacks already",
               (int)CALLBACK_LIMIT);
}

/* The text that aclInit has read, for the caller to free; NULL: aclInit is not in effect, or there is no memory. */
static char *copy_configuration(Runtime *runtime, size_t *size)
{
    us_platform_lock(runtime->platform);
    bool initialised = runtime->platform->initialisations > 0;
    *size = runtime->configuration_size;
    char *copy = initialised ? malloc(*size + 1) : NULL;
    if (copy != NULL && *size > 0) {
        memcpy(copy, runtime->configuration_text, *size);
    }
    if (copy != NULL) {
        copy[*size] = '\0';
    }
    us_platform_unlock(runtime->platform);
    return copy;
}

/* The first failure is the call's; the others are called all the same. */
static void require_success(Call *call, aclError status)
{
    us_require(call, status == ACL_SUCCESS, "callback", "failed", status, "a registered callback has returned %d",
               (int)status);
}

static void tell(Call *call, const Callback *callback, const char *text, size_t size)
{
    require_success(call, ((aclInitCallbackFunc)callback->function)(text, size, callback->arguments));
}

void acl_tell_init(Call *call, Runtime *runtime)
{
    Callback callbacks[CALLBACK_LIMIT];
    size_t size = 0;
    size_t count = callbacks_copy(runtime, CALLBACK_INIT, callbacks);
    char *text = count > 0 ? copy_configuration(runtime, &size) : NULL;
    for (size_t i = 0; i < count && text != NULL; i++) {
        tell(call, &callbacks[i], text, size);
    }
    free(text);
}

void acl_tell_finalize(Call *call, Runtime *runtime)
{
    Callback callbacks[CALLBACK_LIMIT];
    size_t count = callbacks_copy(runtime, CALLBACK_FINALIZE, callbacks);
    for (size_t i = 0; i < count; i++) {
        require_success(call, ((aclFinalizeCallbackFunc)callbacks[i].function)(callbacks[i].arguments));
    }
}

aclError aclInitCallbackRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc, void *userData)
{
    Call call = us_call_begin("aclInitCallbackRegister");
    Runtime *runtime = require_callback(&call, type, (AnyFunction *)cbFunc);
    const Callback entry = {.type = (int32_t)type, .function = (AnyFunction *)cbFunc, .arguments = userData};
    require_room(&call, call.status != 0 || callbacks_add(runtime, CALLBACK_INIT, &entry));
    size_t size = 0;
    char *text = call.status == 0 ? copy_configuration(runtime, &size) : NULL;
    if (text != NULL) {
        tell(&call, &entry, text, size);
    }
    free(text);
    return acl_end(&call);
}

aclError aclInitCallbackUnRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc)
{
    Call call = us_call_begin("aclInitCallbackUnRegister");
    Runtime *runtime = require_callback(&call, type, (AnyFunction *)cbFunc);
    if (call.status == 0) {
        const Callback entry = {.type = (int32_t)type, .function = (AnyFunction *)cbFunc};
        callbacks_remove(runtime, CALLBACK_INIT, &entry);
    }
    return acl_end(&call);
}

aclError aclFinalizeCallbackRegister(aclRegisterCallbackType type, aclFinalizeCallbackFunc cbFunc, void *userData)
{
    Call call = us_call_begin("aclFinalizeCallbackRegister");
    Runtime *runtime = require_callback(&call, type, (AnyFunction *)cbFunc);
    const Callback entry = {.type = (int32_t)type, .function = (AnyFunction *)cbFunc, .arguments = userData};
    require_room(&call, call.status != 0 || callbacks_add(runtime, CALLBACK_FINALIZE, &entry));
    return acl_end(&call);
}

aclError aclFinalizeCallbackUnRegister(aclRegisterCallbackType type, aclFinalizeCallbackFunc cbFunc)
{
    Call call = us_call_begin("aclFinalizeCallbackUnRegister");
    Runtime *runtime = require_callback(&call, type, (AnyFunction *)cbFunc);
    if (call.status == 0) {
        const Callback entry = {.type = (int32_t)type, .function = (AnyFunction *)cbFunc};
        callbacks_remove(runtime, CALLBACK_FINALIZE, &entry);
    }
    return acl_end(&call);
}
