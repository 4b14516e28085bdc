/* Several plain copies in one call (cann-runtime 9, doc 11-03). */
#include "ascend/ascendcl/transfer.h"

typedef struct Batch {
    void **dsts;
    size_t *limits;
    void **srcs;
    size_t *sizes;
    size_t count;
    const aclrtMemcpyBatchAttr *attributes;
    const size_t *first_copies; /* first_copies[a]: the first copy attributes[a] is for */
    size_t attribute_count;
    size_t *fail_index;
    bool second_version; /* without fail_index */
} Batch;

static bool all_sizes_are_zero(const Batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->sizes[i] != 0) {
            return false;
        }
    }
    return true;
}

static Side side_of(const aclrtMemLocation *location)
{
    switch (location->type) {
    case ACL_MEM_LOCATION_TYPE_HOST:
        return SIDE_HOST;
    case ACL_MEM_LOCATION_TYPE_DEVICE:
        return SIDE_DEVICE;
    default:
        return SIDE_ANY;
    }
}

static const aclrtMemcpyBatchAttr *attribute_of_copy(const Batch *batch, size_t copy)
{
    const aclrtMemcpyBatchAttr *attribute = NULL;
    for (size_t i = 0; i < batch->attribute_count && batch->first_copies[i] <= copy; i++) {
        attribute = &batch->attributes[i];
    }
    return attribute;
}

/* Attributes come in the order of the copies, and the first is for the first copy. */
static bool attributes_are_in_order(const Batch *batch)
{
    if (batch->first_copies[0] != 0) {
        return false;
    }
    for (size_t i = 1; i < batch->attribute_count; i++) {
        if (batch->first_copies[i] <= batch->first_copies[i - 1] || batch->first_copies[i] >= batch->count) {
            return false;
        }
    }
    return true;
}

static void prepare_batch(Call *call, const Batch *batch)
{
    us_require(call, batch->sizes != NULL, "sizes", "null", ACL_ERROR_INVALID_PARAM, "sizes is NULL");
    us_require(call, batch->fail_index != NULL || batch->second_version, "failIndex", "null", ACL_ERROR_INVALID_PARAM,
               "failIndex is NULL");
    us_require(call, batch->count > 0, "numBatches", "zero", ACL_ERROR_INVALID_PARAM, "numBatches is 0");
    if (call->status != 0 || all_sizes_are_zero(batch)) {
        return;
    }
    us_require(call, batch->dsts != NULL, "dsts", "null", ACL_ERROR_INVALID_PARAM, "dsts is NULL");
    us_require(call, batch->limits != NULL, "destMaxs", "null", ACL_ERROR_INVALID_PARAM, "destMaxs is NULL");
    us_require(call, batch->srcs != NULL, "srcs", "null", ACL_ERROR_INVALID_PARAM, "srcs is NULL");
    us_require(call, batch->attributes != NULL, "attrs", "null", ACL_ERROR_INVALID_PARAM, "attrs is NULL");
    us_require(call, batch->first_copies != NULL, "attrsIndexes", "null", ACL_ERROR_INVALID_PARAM,
               "attrsIndexes is NULL");
    us_require(call, batch->attribute_count > 0 && batch->attribute_count <= batch->count, "numAttrs", "range",
               ACL_ERROR_INVALID_PARAM, "numAttrs is %zu for %zu copies", batch->attribute_count, batch->count);
    us_require(call, attributes_are_in_order(batch), "attrsIndexes", "order", ACL_ERROR_INVALID_PARAM,
               "attrsIndexes must start at 0, grow, and stay below %zu", batch->count);
}

static Copy describe_copy(Call *call, const Batch *batch, size_t index)
{
    Copy copy;
    acl_prepare_copy(call, &copy, batch->dsts[index], batch->limits[index], batch->srcs[index], batch->sizes[index],
                     ACL_MEMCPY_DEFAULT);
    const aclrtMemcpyBatchAttr *attribute = attribute_of_copy(batch, index);
    copy.destination_side = side_of(&attribute->dstLoc);
    copy.source_side = side_of(&attribute->srcLoc);
    return copy;
}

/* Runs or queues the copies in order, until one fails. `stream` is only looked at when `queued`. */
static void run_batch(Call *call, const Batch *batch, bool queued, aclrtStream stream)
{
    static const size_t NO_SINGLE_COPY = SIZE_MAX;
    prepare_batch(call, batch);
    if (call->status == 0 && !all_sizes_are_zero(batch)) {
        for (size_t i = 0; i < batch->count && call->status == 0; i++) {
            if (batch->sizes[i] == 0) {
                continue;
            }
            Copy copy = describe_copy(call, batch, i);
            if (queued) {
                acl_queue_copy(call, &copy, stream);
            } else {
                acl_run_copy(call, &copy);
            }
            if (call->status != 0 && batch->fail_index != NULL) {
                *batch->fail_index = i;
                return;
            }
        }
    }
    if (call->status != 0 && batch->fail_index != NULL) {
        *batch->fail_index = NO_SINGLE_COPY;
    }
}

aclError aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
                          aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs, size_t *failIndex)
{
    Call call = us_call_begin("aclrtMemcpyBatch");
    Batch batch = {dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs, failIndex, false};
    run_batch(&call, &batch, false, NULL);
    return acl_end(&call);
}

aclError aclrtMemcpyBatchAsync(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
                               aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs, size_t *failIndex,
                               aclrtStream stream)
{
    Call call = us_call_begin("aclrtMemcpyBatchAsync");
    Batch batch = {dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs, failIndex, false};
    run_batch(&call, &batch, true, stream);
    return acl_end(&call);
}

static void require_second_version(Call *call)
{
    us_require(call, ascend_product()->product != PRODUCT_910A, "device", "unsupported",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "devices of the %s do not do this", ascend_product()->series);
}

aclError aclrtMemcpyBatchV2(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
                            aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs)
{
    Call call = us_call_begin("aclrtMemcpyBatchV2");
    Batch batch = {dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs, NULL, true};
    require_second_version(&call);
    run_batch(&call, &batch, false, NULL);
    return acl_end(&call);
}

aclError aclrtMemcpyBatchAsyncV2(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
                                 aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs, aclrtStream stream)
{
    Call call = us_call_begin("aclrtMemcpyBatchAsyncV2");
    Batch batch = {dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs, NULL, true};
    require_second_version(&call);
    run_batch(&call, &batch, true, stream);
    return acl_end(&call);
}
