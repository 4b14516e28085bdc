/* Functions that other libraries of the vendor want to be called from aclInit and aclFinalize (cann-runtime-3 6). */
#include "ascend/ascendcl/callback_list.h"

#include <stdlib.h>
#include <string.h>

static Runtime *require_callback(Call *call, const Callback *entry)
{
    bool known = (entry->type >= ACL_REG_TYPE_ACL_MODEL && entry->type <= ACL_REG_TYPE_ACL_RETR) ||
                 entry->type == ACL_REG_TYPE_OTHER;
    us_require(call, known, "type", "range", ACL_ERROR_RT_PARAM_INVALID, "type is %d; it must be 0 to 7 or 65535",
               (int)entry->type);
    us_require(call, entry->function != NULL, "cbFunc", "null", ACL_ERROR_INVALID_PARAM, "cbFunc is NULL");
    return acl_require_runtime(call);
}

/* The text that aclInit has read, for the caller to free, and which aclInit that was; NULL: aclInit is not in effect, or
 * there is no memory. */
static char *copy_configuration(Runtime *runtime, size_t *size, uint64_t *start)
{
    us_platform_lock(runtime->platform);
    bool initialised = runtime->platform->initialisations > 0;
    *size = runtime->configuration_size;
    *start = runtime->starts;
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

/* Calls what nobody has called since aclInit: aclInit and a registration at the same time both come here. Of `wanted` only,
 * unless that is NULL. */
static void tell_init(Call *call, Runtime *runtime, const Callback *wanted)
{
    Callback callbacks[CALLBACK_LIMIT];
    size_t size = 0;
    uint64_t start = 0;
    char *text = copy_configuration(runtime, &size, &start);
    size_t count = text != NULL ? callbacks_claim(runtime, CALLBACK_INIT, wanted, start, callbacks) : 0;
    for (size_t i = 0; i < count; i++) {
        require_success(call, ((aclInitCallbackFunc)callbacks[i].function)(text, size, callbacks[i].arguments));
    }
    free(text);
}

void acl_tell_init(Call *call, Runtime *runtime)
{
    tell_init(call, runtime, NULL);
}

void acl_tell_finalize(Call *call, Runtime *runtime)
{
    Callback callbacks[CALLBACK_LIMIT];
    size_t count = callbacks_copy(runtime, CALLBACK_FINALIZE, callbacks);
    for (size_t i = 0; i < count; i++) {
        require_success(call, ((aclFinalizeCallbackFunc)callbacks[i].function)(callbacks[i].arguments));
    }
}

/* Adds an entry to the list of an occasion, or refuses: rules type/range, cbFunc/null, cbFunc/limit. */
static Runtime *add(Call *call, CallbackOccasion occasion, const Callback *entry)
{
    Runtime *runtime = require_callback(call, entry);
    us_require(call, callbacks_add(runtime, occasion, entry), "cbFunc", "limit", ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
               "there are %d callbacks already", (int)CALLBACK_LIMIT);
    return runtime;
}

static void remove_entry(Call *call, CallbackOccasion occasion, const Callback *entry)
{
    Runtime *runtime = require_callback(call, entry);
    if (call->status == 0) {
        callbacks_remove(runtime, occasion, entry);
    }
}

aclError aclInitCallbackRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc, void *userData)
{
    Call call = us_call_begin("aclInitCallbackRegister");
    const Callback entry = {.type = (int32_t)type, .function = (AnyFunction *)cbFunc, .arguments = userData};
    Runtime *runtime = add(&call, CALLBACK_INIT, &entry);
    if (call.status == 0) {
        tell_init(&call, runtime, &entry);
    }
    return acl_end(&call);
}

aclError aclInitCallbackUnRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc)
{
    Call call = us_call_begin("aclInitCallbackUnRegister");
    remove_entry(&call, CALLBACK_INIT, &(const Callback){.type = (int32_t)type, .function = (AnyFunction *)cbFunc});
    return acl_end(&call);
}

aclError aclFinalizeCallbackRegister(aclRegisterCallbackType type, aclFinalizeCallbackFunc cbFunc, void *userData)
{
    Call call = us_call_begin("aclFinalizeCallbackRegister");
    add(&call, CALLBACK_FINALIZE,
        &(const Callback){.type = (int32_t)type, .function = (AnyFunction *)cbFunc, .arguments = userData});
    return acl_end(&call);
}

aclError aclFinalizeCallbackUnRegister(aclRegisterCallbackType type, aclFinalizeCallbackFunc cbFunc)
{
    Call call = us_call_begin("aclFinalizeCallbackUnRegister");
    remove_entry(&call, CALLBACK_FINALIZE, &(const Callback){.type = (int32_t)type, .function = (AnyFunction *)cbFunc});
    return acl_end(&call);
}
