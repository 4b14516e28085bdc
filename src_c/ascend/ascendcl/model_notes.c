/* What a program says about the task that its thread has just recorded (cann-runtime-3 13.4, doc 24). Nothing depends on it;
 * the text appears where models are printed. */
#include "ascend/ascendcl/model.h"

enum { OPERATOR_LIMIT = 64 * 1024, TEXT_LIMIT = 4096 };

/* The stream whose recording has the thread's last task. */
static Stream *require_last_task(Call *call)
{
    model_require_product(call);
    Stream *stream = call->status == 0 ? us_last_recorded_stream() : NULL;
    us_require(call, stream != NULL, "task", "none", ACL_ERROR_RT_STREAM_NOT_CAPTURED,
               "this thread has put no task into a model that still takes tasks");
    return stream;
}

static void keep(Call *call, StepNote note, const void *bytes, size_t size)
{
    us_require(call, us_last_recorded_annotate(note, bytes, size), "task", "memory", ACL_ERROR_BAD_ALLOC,
               "no host memory to keep %zu bytes", size);
}

aclError aclrtCacheLastTaskOpInfo(const void *const infoPtr, const size_t infoSize)
{
    Call call = us_call_begin("aclrtCacheLastTaskOpInfo");
    us_require(&call, infoPtr != NULL, "infoPtr", "null", ACL_ERROR_INVALID_PARAM, "infoPtr is NULL");
    us_require(&call, infoSize > 0, "infoSize", "zero", ACL_ERROR_INVALID_PARAM, "infoSize is 0");
    us_require(&call, infoSize <= OPERATOR_LIMIT, "infoSize", "range", ACL_ERROR_RT_PARAM_INVALID,
               "infoSize is %zu; at most %d bytes are kept", infoSize, (int)OPERATOR_LIMIT);
    Stream *stream = require_last_task(&call);
    us_require(&call, us_capture_status(stream, NULL) == CAPTURE_ACTIVE, "stream", "capture",
               ACL_ERROR_RT_STREAM_NOT_CAPTURED, "stream %d is not being captured", (int)stream->id);
    us_require(&call,
               (__atomic_load_n(&stream->vendor_state[STREAM_SETTINGS], __ATOMIC_RELAXED) & STREAM_CACHES_OPERATORS) != 0,
               "stream", "cache", ACL_ERROR_RT_PARAM_INVALID,
               "stream %d keeps no information: ACL_STREAM_ATTR_CACHE_OP_INFO is off", (int)stream->id);
    keep(&call, STEP_NOTE_OPERATOR, infoPtr, infoSize);
    return acl_end(&call);
}

/* The text is UTF-8, and a character is not cut in two. */
static size_t cut(const char *text, size_t size)
{
    size_t kept = size < TEXT_LIMIT ? size : TEXT_LIMIT;
    while (kept < size && kept > 0 && ((unsigned char)text[kept] & 0xc0) == 0x80) {
        kept--;
    }
    return kept;
}

aclError aclrtCacheLastTaskExtendInfo(const char *const extendInfoPtr, const size_t infoSize)
{
    Call call = us_call_begin("aclrtCacheLastTaskExtendInfo");
    us_require(&call, extendInfoPtr != NULL, "extendInfoPtr", "null", ACL_ERROR_INVALID_PARAM, "extendInfoPtr is NULL");
    us_require(&call, infoSize > 0, "infoSize", "zero", ACL_ERROR_INVALID_PARAM, "infoSize is 0");
    require_last_task(&call);
    if (call.status == 0) {
        keep(&call, STEP_NOTE_TEXT, extendInfoPtr, cut(extendInfoPtr, infoSize));
    }
    return acl_end(&call);
}
