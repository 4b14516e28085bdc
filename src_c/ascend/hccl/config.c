/* Settings of collective communication. Its results have the same bits always, so nothing but these functions reads them. */
#include "ascend/hccl/communicator.h"

static HcclResult require_known(Call *call, HcclConfig config)
{
    us_require(call, config == HCCL_DETERMINISTIC, "config", "unsupported", HCCL_E_NOT_SUPPORT,
               "setting %d is not emulated; HCCL_DETERMINISTIC (0) is", (int)config);
    return (HcclResult)call->status;
}

static Platform *require_platform(Call *call)
{
    Platform *platform = call->status == 0 ? ascend_platform() : NULL;
    us_require(call, platform != NULL, "process", "forked", HCCL_E_RUNTIME,
               "this process was forked from one that had used devices");
    return platform;
}

HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue)
{
    Call call = us_call_begin("HcclSetConfig");
    require_known(&call, config);
    us_require(&call, configValue.value == 0 || configValue.value == 1, "configValue", "range", HCCL_E_PARA,
               "the value is %d; it must be 0 or 1", (int)configValue.value);
    Platform *platform = require_platform(&call);
    if (platform != NULL) {
        us_platform_lock(platform);
        platform->options[DETERMINISTIC_OPTION] = configValue.value;
        us_platform_unlock(platform);
    }
    return (HcclResult)us_call_end(&call);
}

HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue *configValue)
{
    Call call = us_call_begin("HcclGetConfig");
    us_require(&call, configValue != NULL, "configValue", "null", HCCL_E_PTR, "configValue is NULL");
    require_known(&call, config);
    Platform *platform = require_platform(&call);
    if (platform != NULL) {
        us_platform_lock(platform);
        configValue->value = (int32_t)platform->options[DETERMINISTIC_OPTION];
        us_platform_unlock(platform);
    }
    return (HcclResult)us_call_end(&call);
}
