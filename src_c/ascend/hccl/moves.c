/* Operations of all ranks that move bytes. What a rank sends and receives is a list of messages. */
#include "ascend/hccl/operation.h"

enum { TWO_FOR_EACH = 2 * RANK_LIMIT };

/* Where the root alone gives something, it gets a message without bytes of every other rank: so it knows that they mean the same
 * root, and its next operation does not begin before they have run this one. */
static void answer(Messages *messages, const Operation *op, uint32_t root)
{
    const bool gives = op->call.status == 0 && (uint32_t)op->rank == root;
    for (int32_t rank = 0; gives && rank < op->ranks; rank++) {
        if (rank != op->rank) {
            hccl_add(messages, (uint32_t)rank, false, us_view_absent());
        }
    }
    if (op->call.status == 0 && !gives) {
        hccl_add(messages, root, true, us_view_absent());
    }
}

HcclResult HcclBroadcast(void *buf, uint64_t count, HcclDataType dataType, uint32_t root, HcclComm comm, aclrtStream stream)
{
    Operation op = hccl_begin("HcclBroadcast", comm, stream);
    hccl_require_buffer(&op, "buf", buf, count);
    hccl_require_type(&op, "dataType", dataType);
    hccl_require_elements(&op, "count", count, dataType, 1);
    hccl_require_rank(&op, "root", root);
    Messages messages = hccl_messages(&op, CHANNEL_COLLECTIVE, TWO_FOR_EACH);
    const View view = hccl_elements(buf, 0, count, dataType);
    const bool sends = (uint32_t)op.rank == root;
    for (int32_t rank = 0; sends && rank < op.ranks; rank++) {
        if (rank != op.rank) {
            hccl_add(&messages, (uint32_t)rank, true, view);
        }
    }
    if (!sends) {
        hccl_add(&messages, root, false, view);
    }
    answer(&messages, &op, root);
    hccl_send(&op, &messages, "HcclBroadcast(type %d, root %u)", (int)dataType, (unsigned)root);
    return hccl_end(&op);
}

HcclResult HcclScatter(void *sendBuf, void *recvBuf, uint64_t recvCount, HcclDataType dataType, uint32_t root, HcclComm comm,
                       aclrtStream stream)
{
    Operation op = hccl_begin("HcclScatter", comm, stream);
    hccl_require_rank(&op, "root", root);
    const bool sends = op.call.status == 0 && (uint32_t)op.rank == root;
    hccl_require_buffer(&op, "sendBuf", sendBuf, sends ? recvCount : 0);
    hccl_require_buffer(&op, "recvBuf", recvBuf, recvCount);
    hccl_require_type(&op, "dataType", dataType);
    hccl_require_elements(&op, "recvCount", recvCount, dataType, (uint64_t)op.ranks);
    Messages messages = hccl_messages(&op, CHANNEL_COLLECTIVE, TWO_FOR_EACH);
    for (int32_t rank = 0; sends && rank < op.ranks; rank++) {
        hccl_add(&messages, (uint32_t)rank, true,
                 hccl_elements(sendBuf, (uint64_t)rank * recvCount, recvCount, dataType));
    }
    hccl_add(&messages, root, false, hccl_elements(recvBuf, 0, recvCount, dataType));
    answer(&messages, &op, root);
    hccl_send(&op, &messages, "HcclScatter(type %d, root %u)", (int)dataType, (unsigned)root);
    return hccl_end(&op);
}

HcclResult HcclAllGather(void *sendBuf, void *recvBuf, uint64_t sendCount, HcclDataType dataType, HcclComm comm,
                         aclrtStream stream)
{
    Operation op = hccl_begin("HcclAllGather", comm, stream);
    hccl_require_buffer(&op, "sendBuf", sendBuf, sendCount);
    hccl_require_buffer(&op, "recvBuf", recvBuf, sendCount);
    hccl_require_type(&op, "dataType", dataType);
    hccl_require_elements(&op, "sendCount", sendCount, dataType, (uint64_t)op.ranks);
    Messages messages = hccl_messages(&op, CHANNEL_COLLECTIVE, TWO_FOR_EACH);
    for (int32_t rank = 0; rank < op.ranks; rank++) {
        hccl_add(&messages, (uint32_t)rank, true, hccl_elements(sendBuf, 0, sendCount, dataType));
        hccl_add(&messages, (uint32_t)rank, false,
                 hccl_elements(recvBuf, (uint64_t)rank * sendCount, sendCount, dataType));
    }
    hccl_send(&op, &messages, "HcclAllGather(type %d)", (int)dataType);
    return hccl_end(&op);
}

HcclResult HcclBarrier(HcclComm comm, aclrtStream stream)
{
    Operation op = hccl_begin("HcclBarrier", comm, stream);
    Messages messages = hccl_messages(&op, CHANNEL_COLLECTIVE, TWO_FOR_EACH);
    for (int32_t rank = 0; rank < op.ranks; rank++) {
        hccl_add(&messages, (uint32_t)rank, true, us_view_absent());
        hccl_add(&messages, (uint32_t)rank, false, us_view_absent());
    }
    hccl_send(&op, &messages, "HcclBarrier");
    return hccl_end(&op);
}

/* ---- with a count for each rank ---- */

/* Counts of a program, and where each part begins; both in elements. */
typedef struct Parts {
    const uint64_t *counts, *displacements;
} Parts;

static Parts require_parts(Operation *op, const char *name, const void *counts, const char *where, const void *displacements,
                           HcclDataType type)
{
    us_require(&op->call, counts != NULL, name, "null", HCCL_E_PTR, "%s is NULL", name);
    us_require(&op->call, displacements != NULL, where, "null", HCCL_E_PTR, "%s is NULL", where);
    const Parts parts = {counts, displacements};
    for (int32_t rank = 0; op->call.status == 0 && rank < op->ranks; rank++) {
        hccl_require_elements(op, name, parts.counts[rank], type, 1);
        hccl_require_elements(op, where, parts.displacements[rank], type, 1);
    }
    return parts;
}

static View part_of(const Parts *parts, int32_t rank, const void *buffer, HcclDataType type)
{
    return hccl_elements(buffer, parts->displacements[rank], parts->counts[rank], type);
}

static uint64_t total_of(const Operation *op, const Parts *parts)
{
    uint64_t total = 0;
    for (int32_t rank = 0; op->call.status == 0 && rank < op->ranks; rank++) {
        total += parts->counts[rank];
    }
    return total;
}

HcclResult HcclAllGatherV(void *sendBuf, uint64_t sendCount, void *recvBuf, const void *recvCounts, const void *recvDispls,
                          HcclDataType dataType, HcclComm comm, aclrtStream stream)
{
    Operation op = hccl_begin("HcclAllGatherV", comm, stream);
    hccl_require_product(&op);
    hccl_require_type(&op, "dataType", dataType);
    hccl_require_elements(&op, "sendCount", sendCount, dataType, 1);
    const Parts parts = require_parts(&op, "recvCounts", recvCounts, "recvDispls", recvDispls, dataType);
    hccl_require_buffer(&op, "sendBuf", sendBuf, sendCount);
    hccl_require_buffer(&op, "recvBuf", recvBuf, total_of(&op, &parts));
    hccl_require_apart(&op, sendBuf, recvBuf);
    us_require(&op.call, parts.counts[op.rank] == sendCount, "sendCount", "count", HCCL_E_PARA,
               "sendCount is %llu, recvCounts[%d] %llu", (unsigned long long)sendCount, (int)op.rank,
               (unsigned long long)parts.counts[op.rank]);
    Messages messages = hccl_messages(&op, CHANNEL_COLLECTIVE, TWO_FOR_EACH);
    for (int32_t rank = 0; op.call.status == 0 && rank < op.ranks; rank++) {
        hccl_add(&messages, (uint32_t)rank, true, hccl_elements(sendBuf, 0, sendCount, dataType));
        hccl_add(&messages, (uint32_t)rank, false, part_of(&parts, rank, recvBuf, dataType));
    }
    hccl_send(&op, &messages, "HcclAllGatherV(type %d)", (int)dataType);
    return hccl_end(&op);
}

static void require_same_type(Operation *op, HcclDataType sendType, HcclDataType recvType)
{
    hccl_require_type(op, "sendType", sendType);
    us_require(&op->call, recvType == sendType, "recvType", "type", HCCL_E_PARA, "recvType is %d, sendType %d", (int)recvType,
               (int)sendType);
}

/* Every rank to every rank. */
static void all_to_all(Operation *op, const Parts *sent, const void *sendBuf, const Parts *received, const void *recvBuf,
                       HcclDataType type)
{
    hccl_require_buffer(op, "sendBuf", sendBuf, total_of(op, sent));
    hccl_require_buffer(op, "recvBuf", recvBuf, total_of(op, received));
    hccl_require_apart(op, sendBuf, recvBuf);
    Messages messages = hccl_messages(op, CHANNEL_COLLECTIVE, TWO_FOR_EACH);
    for (int32_t rank = 0; op->call.status == 0 && rank < op->ranks; rank++) {
        hccl_add(&messages, (uint32_t)rank, true, part_of(sent, rank, sendBuf, type));
        hccl_add(&messages, (uint32_t)rank, false, part_of(received, rank, recvBuf, type));
    }
    hccl_send(op, &messages, "%s(type %d)", op->call.function, (int)type);
}

HcclResult HcclAlltoAll(const void *sendBuf, uint64_t sendCount, HcclDataType sendType, const void *recvBuf,
                        uint64_t recvCount, HcclDataType recvType, HcclComm comm, aclrtStream stream)
{
    uint64_t counts[RANK_LIMIT], displacements[RANK_LIMIT];
    Operation op = hccl_begin("HcclAlltoAll", comm, stream);
    require_same_type(&op, sendType, recvType);
    us_require(&op.call, recvCount == sendCount, "recvCount", "count", HCCL_E_PARA, "recvCount is %llu, sendCount %llu",
               (unsigned long long)recvCount, (unsigned long long)sendCount);
    hccl_require_elements(&op, "sendCount", sendCount, sendType, (uint64_t)op.ranks);
    for (int32_t rank = 0; op.call.status == 0 && rank < op.ranks; rank++) {
        counts[rank] = sendCount;
        displacements[rank] = (uint64_t)rank * sendCount;
    }
    const Parts parts = {counts, displacements};
    all_to_all(&op, &parts, sendBuf, &parts, recvBuf, sendType);
    return hccl_end(&op);
}

HcclResult HcclAlltoAllV(const void *sendBuf, const void *sendCounts, const void *sdispls, HcclDataType sendType,
                         const void *recvBuf, const void *recvCounts, const void *rdispls, HcclDataType recvType,
                         HcclComm comm, aclrtStream stream)
{
    Operation op = hccl_begin("HcclAlltoAllV", comm, stream);
    require_same_type(&op, sendType, recvType);
    const Parts sent = require_parts(&op, "sendCounts", sendCounts, "sdispls", sdispls, sendType);
    const Parts received = require_parts(&op, "recvCounts", recvCounts, "rdispls", rdispls, sendType);
    all_to_all(&op, &sent, sendBuf, &received, recvBuf, sendType);
    return hccl_end(&op);
}

HcclResult HcclAlltoAllVC(const void *sendBuf, const void *sendCountMatrix, HcclDataType sendType, const void *recvBuf,
                          HcclDataType recvType, HcclComm comm, aclrtStream stream)
{
    uint64_t counts[RANK_LIMIT], places[2][RANK_LIMIT];
    const uint64_t *matrix = sendCountMatrix;
    Operation op = hccl_begin("HcclAlltoAllVC", comm, stream);
    hccl_require_product(&op);
    require_same_type(&op, sendType, recvType);
    us_require(&op.call, matrix != NULL, "sendCountMatrix", "null", HCCL_E_PTR, "sendCountMatrix is NULL");
    for (int64_t i = 0; op.call.status == 0 && i < (int64_t)op.ranks * op.ranks; i++) {
        hccl_require_elements(&op, "sendCountMatrix", matrix[i], sendType, (uint64_t)op.ranks);
    }
    uint64_t sent_before = 0, received_before = 0;
    for (int32_t rank = 0; op.call.status == 0 && rank < op.ranks; rank++) {
        counts[rank] = matrix[(int64_t)rank * op.ranks + op.rank];
        places[0][rank] = sent_before;
        places[1][rank] = received_before;
        sent_before += matrix[(int64_t)op.rank * op.ranks + rank];
        received_before += counts[rank];
    }
    const Parts sent = {op.call.status == 0 ? matrix + (int64_t)op.rank * op.ranks : NULL, places[0]};
    const Parts received = {counts, places[1]};
    all_to_all(&op, &sent, sendBuf, &received, recvBuf, sendType);
    return hccl_end(&op);
}
