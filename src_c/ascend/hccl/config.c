/* Settings of collective communication. There is none yet, so nothing but these functions reads them. */
#include "hccl/hccl.h"
#include "report/report.h"

#include <stdatomic.h>

static _Atomic int32_t deterministic;

static HcclResult require_known(Call *call, HcclConfig config)
{
    us_require(call, config == HCCL_DETERMINISTIC, "config", "unsupported", HCCL_E_NOT_SUPPORT,
               "setting %d is not emulated; HCCL_DETERMINISTIC (0) is", (int)config);
    return (HcclResult)call->status;
}

HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue)
{
    Call call = us_call_begin("HcclSetConfig");
    require_known(&call, config);
    us_require(&call, configValue.value == 0 || configValue.value == 1, "configValue", "range", HCCL_E_PARA,
               "the value is %d; it must be 0 or 1", (int)configValue.value);
    if (call.status == 0) {
        atomic_store(&deterministic, configValue.value);
    }
    return (HcclResult)us_call_end(&call);
}

HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue *configValue)
{
    Call call = us_call_begin("HcclGetConfig");
    us_require(&call, configValue != NULL, "configValue", "null", HCCL_E_PTR, "configValue is NULL");
    require_known(&call, config);
    if (call.status == 0) {
        configValue->value = atomic_load(&deterministic);
    }
    return (HcclResult)us_call_end(&call);
}
