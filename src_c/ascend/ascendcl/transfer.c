/* Synchronous copies and fills (cann-runtime 8 and 9, doc 11-03). */
#include "ascend/ascendcl/transfer.h"

bool acl_sides_of_kind(aclrtMemcpyKind kind, Side *destination, Side *source)
{
    switch (kind) {
    case ACL_MEMCPY_HOST_TO_HOST:
        *source = SIDE_HOST, *destination = SIDE_HOST;
        return true;
    case ACL_MEMCPY_HOST_TO_DEVICE:
    case ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE:
        *source = SIDE_HOST, *destination = SIDE_DEVICE;
        return true;
    case ACL_MEMCPY_DEVICE_TO_HOST:
        *source = SIDE_DEVICE, *destination = SIDE_HOST;
        return true;
    case ACL_MEMCPY_DEVICE_TO_DEVICE:
        *source = SIDE_DEVICE, *destination = SIDE_DEVICE;
        return true;
    case ACL_MEMCPY_DEFAULT:
        *source = SIDE_ANY, *destination = SIDE_ANY;
        return true;
    default:
        return false;
    }
}

void acl_refuse_transfer(Call *call, CopyFault fault, const Explanation *why)
{
    switch (fault) {
    case COPY_OK:
        break;
    case COPY_WRONG_SIDE:
        us_refuse(call, "kind", "direction", ACL_ERROR_RT_PARAM_INVALID, "%s", why->text);
        break;
    case COPY_OUT_OF_BOUNDS:
        us_refuse(call, "count", "bounds", ACL_ERROR_RT_PARAM_INVALID, "%s", why->text);
        break;
    case COPY_FREED:
        us_refuse(call, "memory", "freed", ACL_ERROR_RT_PARAM_INVALID, "%s", why->text);
        break;
    }
}

void acl_prepare_copy(Call *call, Copy *copy, void *dst, size_t destMax, const void *src, size_t count,
                      aclrtMemcpyKind kind)
{
    us_require(call, dst != NULL, "dst", "null", ACL_ERROR_INVALID_PARAM, "dst is NULL");
    us_require(call, src != NULL, "src", "null", ACL_ERROR_INVALID_PARAM, "src is NULL");
    *copy = (Copy){.destination = dst, .source = src, .width = count, .height = 1};
    us_require(call, acl_sides_of_kind(kind, &copy->destination_side, &copy->source_side), "kind", "range",
               ACL_ERROR_INVALID_PARAM, "kind is %d; it must be 0 to 5", (int)kind);
    us_require(call, destMax > 0, "destMax", "zero", ACL_ERROR_RT_PARAM_INVALID, "destMax is 0");
    us_require(call, count <= destMax, "count", "limit", ACL_ERROR_RT_PARAM_INVALID,
               "count is %zu, but dst may take only %zu bytes", count, destMax);
    us_require(call, count > 0, "count", "zero", ACL_ERROR_RT_PARAM_INVALID, "count is 0");
}

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind)
{
    Call call = us_call_begin("aclrtMemcpy");
    Copy copy;
    acl_prepare_copy(&call, &copy, dst, destMax, src, count, kind);
    Platform *platform = acl_require_platform(&call);
    if (platform != NULL) {
        Explanation why = {""};
        acl_refuse_transfer(&call, us_copy_run(platform, &copy, &why), &why);
    }
    return acl_end(&call);
}

void acl_prepare_fill(Call *call, Fill *fill, void *devPtr, size_t maxCount, int32_t value, size_t count)
{
    us_require(call, devPtr != NULL, "devPtr", "null", ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
    us_require(call, count <= maxCount, "count", "limit", ACL_ERROR_RT_PARAM_INVALID,
               "count is %zu, but devPtr may take only %zu bytes", count, maxCount);
    us_require(call, count > 0, "count", "zero", ACL_ERROR_RT_PARAM_INVALID, "count is 0");
    *fill = (Fill){.destination = devPtr, .count = count, .element_size = 1, .value = (uint32_t)value & 0xff};
}

aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count)
{
    Call call = us_call_begin("aclrtMemset");
    Fill fill;
    acl_prepare_fill(&call, &fill, devPtr, maxCount, value, count);
    Platform *platform = acl_require_platform(&call);
    if (platform != NULL) {
        Explanation why = {""};
        acl_refuse_transfer(&call, us_fill_run(platform, &fill, &why), &why);
    }
    return acl_end(&call);
}
