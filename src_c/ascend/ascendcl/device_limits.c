/* Sizes that device code gets for its stacks and prints (cann-runtime-3 14, doc 04, 25-02): numbers that are kept. */
#include "ascend/ascendcl/runtime.h"

#include <stdatomic.h>

typedef struct LimitRange {
    aclrtDeviceLimit limit;
    size_t standard, lowest, highest, step; /* values below `lowest` are refused when `strict`, else raised */
    bool strict;
} LimitRange;

static const LimitRange ranges[] = {
    {ACL_RT_DEV_LIMIT_SIMD_STACK_SIZE, 32768, 32768, 196608, 16384, false},
    {ACL_RT_DEV_LIMIT_SIMD_PRINTF_FIFO_SIZE_PER_CORE, 32768, 1024, (size_t)64 << 20, 8, true},
};

static const LimitRange *require_limit(Call *call, aclrtDeviceLimit limit)
{
    us_require(call, (int)limit >= ACL_RT_DEV_LIMIT_SIMT_STACK_SIZE && (int)limit <= ACL_RT_DEV_LIMIT_SIMT_PRINTF_FIFO_SIZE,
               "limit", "range", ACL_ERROR_RT_PARAM_INVALID, "limit is %d; it must be 0 to 4", (int)limit);
    us_require(call, ascend_product()->product != PRODUCT_910A, "device", "unsupported",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "devices of the %s have no such limits", ascend_product()->series);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (ranges[i].limit == limit) {
            return &ranges[i];
        }
    }
    us_refuse(call, "limit", "unsupported", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "limit %d is that of another product's cores", (int)limit);
    return NULL;
}

aclError aclrtDeviceSetLimit(aclrtDeviceLimit limit, size_t value)
{
    Call call = us_call_begin("aclrtDeviceSetLimit");
    const LimitRange *range = require_limit(&call, limit);
    us_require(&call, value <= range->highest && (!range->strict || value >= range->lowest), "value", "range",
               ACL_ERROR_RT_PARAM_INVALID, "value is %zu; it must be at most %zu%s", value, range->highest,
               range->strict ? ", and at least 1024" : "");
    Runtime *runtime = acl_require_runtime(&call);
    us_require(&call, runtime->platform->physical_number[0] == 0, "device", "hidden", ACL_ERROR_RT_PARAM_INVALID,
               "device 0 is not among those that this process sees");
    if (call.status == 0) {
        size_t raised = value < range->lowest ? range->lowest : value;
        atomic_store(&runtime->device_limits[range - ranges], (raised + range->step - 1) / range->step * range->step);
    }
    return acl_end(&call);
}

aclError aclrtDeviceGetLimit(aclrtDeviceLimit limit, size_t *value)
{
    Call call = us_call_begin("aclrtDeviceGetLimit");
    us_require(&call, value != NULL, "value", "null", ACL_ERROR_INVALID_PARAM, "value is NULL");
    const LimitRange *range = require_limit(&call, limit);
    Runtime *runtime = acl_require_runtime(&call);
    if (call.status == 0) {
        size_t set = atomic_load(&runtime->device_limits[range - ranges]);
        *value = set != 0 ? set : range->standard;
    }
    return acl_end(&call);
}

/* Groups of cores exist on another product: there are none. */
aclError aclrtGetGroupCount(uint32_t *count)
{
    Call call = us_call_begin("aclrtGetGroupCount");
    us_require(&call, count != NULL, "count", "null", ACL_ERROR_INVALID_PARAM, "count is NULL");
    if (call.status == 0) {
        *count = 0;
    }
    return acl_end(&call);
}
