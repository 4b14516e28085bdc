/* Operations of all ranks that reduce. */
#include "ascend/hccl/operation.h"

#include <stdio.h>

static bool is_reduced(const ProductProfile *product, HcclDataType type)
{
    const bool everywhere = type == HCCL_DATA_TYPE_INT8 || type == HCCL_DATA_TYPE_INT32 || type == HCCL_DATA_TYPE_INT64 ||
                            type == HCCL_DATA_TYPE_FP16 || type == HCCL_DATA_TYPE_FP32;
    const bool newer = type == HCCL_DATA_TYPE_INT16 || type == HCCL_DATA_TYPE_BFP16;
    return everywhere || (newer && product->product != PRODUCT_910A);
}

/* Rules dataType/type, op/range, op/type. */
static void require_reduction(Operation *op, HcclDataType type, HcclReduceOp reduction)
{
    const ProductProfile *product = ascend_product();
    us_require(&op->call, is_reduced(product, type), "dataType", "type", HCCL_E_NOT_SUPPORT,
               "dataType is %d, a type that devices of the %s do not reduce", (int)type, product->series);
    us_require(&op->call, (unsigned)reduction <= HCCL_REDUCE_MIN, "op", "range", HCCL_E_PARA, "op is %d; it must be 0 to 3",
               (int)reduction);
    us_require(&op->call, reduction != HCCL_REDUCE_PROD || (type != HCCL_DATA_TYPE_INT16 && type != HCCL_DATA_TYPE_BFP16),
               "op", "type", HCCL_E_NOT_SUPPORT, "products of dataType %d are not made", (int)type);
}

/* Elements lie at multiples of their size. */
static void require_aligned(Operation *op, const char *parameter, const void *buffer, HcclDataType type)
{
    const size_t size = us_dtype_size(hccl_dtype(type));
    us_require(&op->call, (uintptr_t)buffer % size == 0, parameter, "alignment", HCCL_E_PARA,
               "%s is %p, no multiple of the %zu bytes of an element", parameter, buffer, size);
}

static void require_operands(Operation *op, const void *sendBuf, const void *recvBuf, HcclDataType type,
                             HcclReduceOp reduction)
{
    require_reduction(op, type, reduction);
    require_aligned(op, "sendBuf", sendBuf, type);
    require_aligned(op, "recvBuf", recvBuf, type);
}

static void reduce(Operation *op, const View *parts, const View *result, HcclDataType type, HcclReduceOp reduction)
{
    char caption[CAPTION_BYTES];
    snprintf(caption, sizeof caption, "%s(type %d, op %d)", op->call.function, (int)type, (int)reduction);
    hccl_reduce(op, parts, result, type, reduction, caption);
}

/* Where the part of a rank begins when `count` elements are divided. */
static uint64_t begin_of(const Operation *op, uint64_t count, int32_t rank)
{
    const uint64_t each = (count + (uint64_t)op->ranks - 1) / (uint64_t)op->ranks, begin = each * (uint64_t)rank;
    return begin < count ? begin : count;
}

static View share_of(const Operation *op, const void *buffer, uint64_t count, int32_t rank, HcclDataType type)
{
    const uint64_t begin = begin_of(op, count, rank);
    return hccl_elements(buffer, begin, begin_of(op, count, rank + 1) - begin, type);
}

/* Each rank reduces a share and gives it to the others. */
HcclResult HcclAllReduce(void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                         aclrtStream stream)
{
    View parts[RANK_LIMIT];
    Operation operation = hccl_begin("HcclAllReduce", comm, stream);
    hccl_require_buffer(&operation, "sendBuf", sendBuf, count);
    hccl_require_buffer(&operation, "recvBuf", recvBuf, count);
    require_operands(&operation, sendBuf, recvBuf, dataType, op);
    hccl_require_elements(&operation, "count", count, dataType, 1);
    for (int32_t rank = 0; operation.call.status == 0 && rank < operation.ranks; rank++) {
        parts[rank] = share_of(&operation, sendBuf, count, rank, dataType);
    }
    const View own = operation.call.status == 0 ? share_of(&operation, recvBuf, count, operation.rank, dataType)
                                                : us_view_absent();
    reduce(&operation, parts, &own, dataType, op);
    Messages messages = hccl_messages(&operation, CHANNEL_COLLECTIVE, 2 * operation.ranks);
    for (int32_t rank = 0; operation.call.status == 0 && rank < operation.ranks; rank++) {
        if (rank != operation.rank) {
            hccl_add(&messages, (uint32_t)rank, true, own);
            hccl_add(&messages, (uint32_t)rank, false, share_of(&operation, recvBuf, count, rank, dataType));
        }
    }
    hccl_send(&operation, &messages, "HcclAllReduce(type %d, op %d)", (int)dataType, (int)op);
    return hccl_end(&operation);
}

HcclResult HcclReduce(void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op, uint32_t root,
                      HcclComm comm, aclrtStream stream)
{
    View parts[RANK_LIMIT];
    Operation operation = hccl_begin("HcclReduce", comm, stream);
    hccl_require_rank(&operation, "root", root);
    const bool gets = operation.call.status == 0 && (uint32_t)operation.rank == root;
    hccl_require_buffer(&operation, "sendBuf", sendBuf, count);
    hccl_require_buffer(&operation, "recvBuf", recvBuf, gets ? count : 0);
    require_operands(&operation, sendBuf, recvBuf, dataType, op);
    hccl_require_elements(&operation, "count", count, dataType, 1);
    for (int32_t rank = 0; operation.call.status == 0 && rank < operation.ranks; rank++) {
        parts[rank] = (uint32_t)rank == root ? hccl_elements(sendBuf, 0, count, dataType) : us_view_absent();
    }
    const View result = operation.call.status == 0 && gets ? hccl_elements(recvBuf, 0, count, dataType) : us_view_absent();
    reduce(&operation, parts, &result, dataType, op);
    return hccl_end(&operation);
}

HcclResult HcclReduceScatter(void *sendBuf, void *recvBuf, uint64_t recvCount, HcclDataType dataType, HcclReduceOp op,
                             HcclComm comm, aclrtStream stream)
{
    View parts[RANK_LIMIT];
    Operation operation = hccl_begin("HcclReduceScatter", comm, stream);
    hccl_require_buffer(&operation, "sendBuf", sendBuf, recvCount);
    hccl_require_buffer(&operation, "recvBuf", recvBuf, recvCount);
    require_operands(&operation, sendBuf, recvBuf, dataType, op);
    hccl_require_elements(&operation, "recvCount", recvCount, dataType, (uint64_t)operation.ranks);
    for (int32_t rank = 0; operation.call.status == 0 && rank < operation.ranks; rank++) {
        parts[rank] = hccl_elements(sendBuf, (uint64_t)rank * recvCount, recvCount, dataType);
    }
    const View result = operation.call.status == 0 ? hccl_elements(recvBuf, 0, recvCount, dataType) : us_view_absent();
    reduce(&operation, parts, &result, dataType, op);
    return hccl_end(&operation);
}

/* The Atlas A2 does not reduce int64 so, and neither product makes products. */
static void require_reduction_of_parts(Operation *op, HcclDataType type, HcclReduceOp reduction)
{
    us_require(&op->call, type != HCCL_DATA_TYPE_INT64 || ascend_product()->product == PRODUCT_A3, "dataType", "type",
               HCCL_E_NOT_SUPPORT, "dataType is %d, a type that devices of the %s do not reduce so", (int)type,
               ascend_product()->series);
    us_require(&op->call, reduction != HCCL_REDUCE_PROD, "op", "type", HCCL_E_NOT_SUPPORT, "op is %d: products are not made",
               (int)reduction);
}

HcclResult HcclReduceScatterV(void *sendBuf, const void *sendCounts, const void *sendDispls, void *recvBuf,
                              uint64_t recvCount, HcclDataType dataType, HcclReduceOp op, HcclComm comm, aclrtStream stream)
{
    const uint64_t *counts = sendCounts, *displacements = sendDispls;
    View parts[RANK_LIMIT];
    uint64_t total = 0;
    Operation operation = hccl_begin("HcclReduceScatterV", comm, stream);
    Call *call = &operation.call;
    hccl_require_product(&operation);
    us_require(call, counts != NULL, "sendCounts", "null", HCCL_E_PTR, "sendCounts is NULL");
    us_require(call, displacements != NULL, "sendDispls", "null", HCCL_E_PTR, "sendDispls is NULL");
    require_operands(&operation, sendBuf, recvBuf, dataType, op);
    require_reduction_of_parts(&operation, dataType, op);
    for (int32_t rank = 0; call->status == 0 && rank < operation.ranks; rank++) {
        hccl_require_elements(&operation, "sendCounts", counts[rank], dataType, 1);
        hccl_require_elements(&operation, "sendDispls", displacements[rank], dataType, 1);
        parts[rank] = call->status == 0 ? hccl_elements(sendBuf, displacements[rank], counts[rank], dataType)
                                        : us_view_absent();
        total += counts[rank];
    }
    hccl_require_buffer(&operation, "sendBuf", sendBuf, total);
    hccl_require_buffer(&operation, "recvBuf", recvBuf, recvCount);
    hccl_require_apart(&operation, sendBuf, recvBuf);
    us_require(call, counts[operation.rank] == recvCount, "recvCount", "count", HCCL_E_PARA,
               "recvCount is %llu, sendCounts[%d] %llu", (unsigned long long)recvCount, (int)operation.rank,
               (unsigned long long)counts[operation.rank]);
    const View result = call->status == 0 ? hccl_elements(recvBuf, 0, recvCount, dataType) : us_view_absent();
    reduce(&operation, parts, &result, dataType, op);
    return hccl_end(&operation);
}
