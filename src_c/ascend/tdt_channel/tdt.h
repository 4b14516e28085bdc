/* What the two libraries of channels and queues share (cann-runtime-3 17). */
#ifndef ASCEND_TDT_H
#define ASCEND_TDT_H

#include "acl/acl_tdt.h"
#include "acl/acl_base_rt.h"
#include "acl/error_codes/rt_error_codes.h"
#include "ascend/common/platform.h"
#include "device/mailbox.h"
#include "device/handles.h"
#include "report/grace.h"
#include "report/report.h"

enum {
    HANDLE_DATA_ITEM = 0x20,
    HANDLE_DATASET = 0x21,
    HANDLE_CHANNEL = 0x22,
    HANDLE_QUEUE_ATTRIBUTE = 0x23,
    HANDLE_QUEUE_ROUTE = 0x24,
    HANDLE_QUEUE_ROUTES = 0x25,
    HANDLE_QUEUE_QUERY = 0x26,
};

/* Milliseconds, -1 without limit, in microseconds. Rule timeout/range. */
static inline int64_t tdt_require_timeout(Call *call, int32_t milliseconds)
{
    us_require(call, milliseconds >= -1, "timeout", "range", ACL_ERROR_INVALID_PARAM,
               "timeout is %d; it must be -1 (no limit), 0, or a number of milliseconds", (int)milliseconds);
    return milliseconds < 0 ? -1 : (int64_t)milliseconds * 1000;
}

/* The object behind a handle of a program, or NULL after a refusal: rules <parameter>/null and <parameter>/dead. */
static inline void *tdt_require(Call *call, const char *parameter, const void *handle, HandleKind kind)
{
    us_require(call, handle != NULL, parameter, "null", ACL_ERROR_INVALID_PARAM, "%s is NULL", parameter);
    void *object = call->status == 0 ? us_handle_object(handle, kind) : NULL;
    us_require(call, object != NULL, parameter, "dead", ACL_ERROR_INVALID_PARAM,
               "%s %p has been destroyed, or never existed", parameter, handle);
    return call->status == 0 ? object : NULL;
}

/* Ends an object that is one piece of memory. */
static inline void tdt_release(Call *call, const char *parameter, const void *handle, HandleKind kind)
{
    us_require(call, handle != NULL, parameter, "null", ACL_ERROR_INVALID_PARAM, "%s is NULL", parameter);
    us_require(call, us_handle_release(handle, kind), parameter, "dead", ACL_ERROR_INVALID_PARAM,
               "%s %p has been destroyed, or never existed", parameter, handle);
}

/* For what tdt_require has found. Of two threads that end the same object, one is refused. */
static inline void tdt_require_end(Call *call, const char *parameter, const void *handle, HandleKind kind)
{
    us_require(call, us_handle_end(handle, kind) != NULL, parameter, "dead", ACL_ERROR_INVALID_PARAM,
               "%s %p has just been destroyed by another thread", parameter, handle);
}

#endif
