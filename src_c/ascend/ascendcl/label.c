/* Labels and switches of streams that are bound to a model (cann-runtime-3 11, 13.3). */
#include "ascend/ascendcl/model.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { HANDLE_LABEL_LIST = 0x2b, LABEL_LIMIT = 65535 };

typedef struct LabelList {
    size_t count;
    aclrtLabel labels[];
} LabelList;

static Label *require_label(Call *call, aclrtLabel handle)
{
    us_require(call, handle != NULL, "label", "null", ACL_ERROR_INVALID_PARAM, "label is NULL");
    Label *label = call->status == 0 ? us_label_of_handle(handle) : NULL;
    us_require(call, label != NULL, "label", "dead", ACL_ERROR_RT_INVALID_HANDLE,
               "label %p has been destroyed, or never existed", handle);
    return label;
}

aclError aclrtCreateLabel(aclrtLabel *label)
{
    Call call = us_call_begin("aclrtCreateLabel");
    us_require(&call, label != NULL, "label", "null", ACL_ERROR_INVALID_PARAM, "label is NULL");
    Context *context = acl_require_context(&call, "context", "none");
    us_require(&call, us_handle_count(HANDLE_LABEL) < LABEL_LIMIT, "label", "limit", ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
               "there are %d labels already", (int)LABEL_LIMIT);
    Label *made = call.status == 0 ? us_label_create(context->device) : NULL;
    us_require(&call, made != NULL, "label", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a label");
    if (call.status == 0) {
        *label = us_label_handle(made);
    }
    return acl_end(&call);
}

aclError aclrtDestroyLabel(aclrtLabel label)
{
    Call call = us_call_begin("aclrtDestroyLabel");
    require_label(&call, label);
    us_require(&call, us_label_destroy(label), "label", "dead", ACL_ERROR_RT_INVALID_HANDLE,
               "label %p has just been destroyed by another thread", label);
    return acl_end(&call);
}

/* A stream that is bound to a model. */
static Stream *require_bound(Call *call, const char *parameter, aclrtStream handle)
{
    us_require(call, handle != NULL, parameter, "null", ACL_ERROR_INVALID_PARAM, "%s is NULL", parameter);
    acl_require_context(call, "context", "none");
    Stream *stream = acl_require_stream(call, parameter, "dead", handle);
    us_require(call, us_graph_has_bound(NULL, stream), parameter, "unbound", ACL_ERROR_RT_PARAM_INVALID,
               "%s (stream %d) is not bound to a model", parameter, (int)stream->id);
    return call->status == 0 ? stream : NULL;
}

/* One whose model takes work. */
static Stream *require_open(Call *call, aclrtStream handle)
{
    Stream *stream = require_bound(call, "stream", handle);
    acl_require_open(call, stream);
    return call->status == 0 ? stream : NULL;
}

aclError aclrtSetLabel(aclrtLabel label, aclrtStream stream)
{
    Call call = us_call_begin("aclrtSetLabel");
    Label *found = require_label(&call, label);
    Stream *on = require_open(&call, stream);
    CaptureFault fault = call.status == 0 ? us_label_set(found, on) : CAPTURE_OK;
    us_require(&call, fault != CAPTURE_FAULT_BUSY, "label", "set", ACL_ERROR_RT_PARAM_INVALID,
               "the label has a place already");
    model_refuse_capture(&call, fault);
    return acl_end(&call);
}

aclError aclrtCreateLabelList(aclrtLabel *labels, size_t num, aclrtLabelList *labelList)
{
    Call call = us_call_begin("aclrtCreateLabelList");
    us_require(&call, labels != NULL, "labels", "null", ACL_ERROR_INVALID_PARAM, "labels is NULL");
    us_require(&call, labelList != NULL, "labelList", "null", ACL_ERROR_INVALID_PARAM, "labelList is NULL");
    us_require(&call, num >= 1 && num <= LABEL_LIMIT, "num", "range", ACL_ERROR_RT_PARAM_INVALID,
               "num is %zu; it must be 1 to %d", num, (int)LABEL_LIMIT);
    acl_require_context(&call, "context", "none");
    for (size_t i = 0; call.status == 0 && i < num; i++) {
        require_label(&call, labels[i]);
    }
    LabelList *list = call.status == 0 ? malloc(sizeof *list + num * sizeof *list->labels) : NULL;
    void *handle = list != NULL ? us_handle_create(HANDLE_LABEL_LIST, list) : NULL;
    us_require(&call, handle != NULL, "labelList", "memory", ACL_ERROR_BAD_ALLOC,
               "no host memory for a list of labels");
    if (call.status == 0) {
        list->count = num;
        for (size_t i = 0; i < num; i++) {
            list->labels[i] = labels[i];
        }
        *labelList = handle;
    } else {
        free(list);
    }
    return acl_end(&call);
}

static LabelList *require_list(Call *call, aclrtLabelList handle)
{
    us_require(call, handle != NULL, "labelList", "null", ACL_ERROR_INVALID_PARAM, "labelList is NULL");
    LabelList *list = call->status == 0 ? us_handle_object(handle, HANDLE_LABEL_LIST) : NULL;
    us_require(call, list != NULL, "labelList", "dead", ACL_ERROR_RT_INVALID_HANDLE,
               "labelList %p has been destroyed, or never existed", handle);
    return list;
}

aclError aclrtDestroyLabelList(aclrtLabelList labelList)
{
    Call call = us_call_begin("aclrtDestroyLabelList");
    require_list(&call, labelList);
    us_require(&call, us_handle_release(labelList, HANDLE_LABEL_LIST), "labelList", "dead", ACL_ERROR_RT_INVALID_HANDLE,
               "labelList %p has just been destroyed by another thread", labelList);
    return acl_end(&call);
}

static void add_jump(Call *call, Stream *stream, const void *index, const LabelList *list)
{
    Label **labels = malloc(list->count * sizeof *labels);
    us_require(call, labels != NULL, "labelList", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for the switch");
    for (size_t i = 0; call->status == 0 && i < list->count; i++) {
        labels[i] = require_label(call, list->labels[i]);
    }
    if (call->status == 0) {
        model_refuse_capture(call, us_graph_add_jump(stream, index, labels, list->count));
    }
    free(labels);
}

aclError aclrtSwitchLabelByIndex(void *ptr, uint32_t maxValue, aclrtLabelList labelList, aclrtStream stream)
{
    Call call = us_call_begin("aclrtSwitchLabelByIndex");
    us_require(&call, ptr != NULL, "ptr", "null", ACL_ERROR_INVALID_PARAM, "ptr is NULL");
    LabelList *list = require_list(&call, labelList);
    us_require(&call, maxValue == list->count, "maxValue", "range", ACL_ERROR_RT_PARAM_INVALID,
               "maxValue is %u, but the list has %zu labels", (unsigned)maxValue, list->count);
    Stream *on = require_open(&call, stream);
    if (call.status == 0) {
        add_jump(&call, on, ptr, list);
    }
    return acl_end(&call);
}

/* ---- streams that start streams ---- */

aclError aclrtSwitchStream(void *leftValue, aclrtCondition cond, void *rightValue, aclrtCompareDataType dataType,
                           aclrtStream trueStream, aclrtStream falseStream, aclrtStream stream)
{
    static const Comparison comparisons[] = {
        [ACL_RT_EQUAL] = COMPARE_EQUAL,     [ACL_RT_NOT_EQUAL] = COMPARE_NOT_EQUAL,
        [ACL_RT_GREATER] = COMPARE_GREATER, [ACL_RT_GREATER_OR_EQUAL] = COMPARE_NOT_LESS,
        [ACL_RT_LESS] = COMPARE_LESS,       [ACL_RT_LESS_OR_EQUAL] = COMPARE_NOT_GREATER,
    };
    Call call = us_call_begin("aclrtSwitchStream");
    us_require(&call, ascend_product()->product != PRODUCT_A3, "device", "unsupported",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "devices of the %s do not switch streams", ascend_product()->series);
    us_require(&call, leftValue != NULL, "leftValue", "null", ACL_ERROR_INVALID_PARAM, "leftValue is NULL");
    us_require(&call, rightValue != NULL, "rightValue", "null", ACL_ERROR_INVALID_PARAM, "rightValue is NULL");
    us_require(&call, (unsigned)cond <= ACL_RT_LESS_OR_EQUAL, "cond", "range", ACL_ERROR_RT_PARAM_INVALID,
               "cond is %d; it must be 0 to 5", (int)cond);
    us_require(&call, (unsigned)dataType <= ACL_RT_SWITCH_INT64, "dataType", "range", ACL_ERROR_RT_PARAM_INVALID,
               "dataType is %d; it must be 0 or 1", (int)dataType);
    us_require(&call, falseStream == NULL, "falseStream", "range", ACL_ERROR_RT_PARAM_INVALID,
               "falseStream is %p; it must be NULL", falseStream);
    Stream *on = require_open(&call, stream);
    Stream *started = require_bound(&call, "trueStream", trueStream);
    if (call.status == 0) {
        model_refuse_capture(&call, us_graph_add_switch(on, started, comparisons[cond], leftValue, rightValue,
                                                        dataType == ACL_RT_SWITCH_INT64));
    }
    return acl_end(&call);
}

aclError aclrtActiveStream(aclrtStream activeStream, aclrtStream stream)
{
    Call call = us_call_begin("aclrtActiveStream");
    Stream *started = require_bound(&call, "activeStream", activeStream);
    Stream *on = require_open(&call, stream);
    if (call.status == 0) {
        model_refuse_capture(&call, us_graph_add_start(on, started));
    }
    return acl_end(&call);
}
