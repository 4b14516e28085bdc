/* Options of the process and of contexts (cann-runtime 9, docs 03 and 05; 8.5: values 0 and 1). */
#include "ascend/ascendcl/runtime.h"

static void require_option(Call *call, aclSysParamOpt opt)
{
    us_require(call, (int)opt >= ACL_OPT_DETERMINISTIC && (int)opt < SYSTEM_OPTION_COUNT, "opt", "range",
               ACL_ERROR_INVALID_PARAM, "opt is %d; it must be 0 to %d", (int)opt, SYSTEM_OPTION_COUNT - 1);
}

static void require_value(Call *call, int64_t value)
{
    us_require(call, value == 0 || value == 1, "value", "range", ACL_ERROR_RT_PARAM_INVALID,
               "value is %lld; it must be 0 or 1", (long long)value);
}

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value)
{
    Call call = us_call_begin("aclrtSetSysParamOpt");
    require_option(&call, opt);
    require_value(&call, value);
    Platform *platform = acl_require_platform(&call);
    if (platform != NULL) {
        us_platform_lock(platform);
        platform->options[opt] = value;
        us_platform_unlock(platform);
    }
    return acl_end(&call);
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t *value)
{
    Call call = us_call_begin("aclrtGetSysParamOpt");
    require_option(&call, opt);
    us_require(&call, value != NULL, "value", "null", ACL_ERROR_INVALID_PARAM, "value is NULL");
    Platform *platform = acl_require_platform(&call);
    if (platform != NULL) {
        us_platform_lock(platform);
        *value = platform->options[opt];
        us_platform_unlock(platform);
    }
    return acl_end(&call);
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value)
{
    Call call = us_call_begin("aclrtCtxSetSysParamOpt");
    require_option(&call, opt);
    Context *context = acl_require_context(&call, "context", "none");
    require_value(&call, value);
    if (call.status == 0) {
        Platform *platform = context->device->platform;
        us_platform_lock(platform);
        context->options[opt] = value;
        context->option_set[opt] = true;
        platform->options[opt] = value;
        us_platform_unlock(platform);
    }
    return acl_end(&call);
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t *value)
{
    Call call = us_call_begin("aclrtCtxGetSysParamOpt");
    require_option(&call, opt);
    us_require(&call, value != NULL, "value", "null", ACL_ERROR_INVALID_PARAM, "value is NULL");
    Context *context = acl_require_context(&call, "context", "none");
    if (call.status != 0) {
        return acl_end(&call);
    }
    us_platform_lock(context->device->platform);
    us_require(&call, context->option_set[opt], "opt", "not-set", ACL_ERROR_RT_SYSPARAMOPT_NOT_SET,
               "option %d has never been set in this context", (int)opt);
    if (call.status == 0) {
        *value = context->options[opt];
    }
    us_platform_unlock(context->device->platform);
    return acl_end(&call);
}
