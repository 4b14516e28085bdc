/* Operations of two ranks. */
#include "ascend/hccl/operation.h"

static void require_message(Operation *op, const HcclSendRecvItem *item, const char *buffer, const char *rank)
{
    hccl_require_buffer(op, buffer, item->buf, item->count);
    hccl_require_type(op, "dataType", item->dataType);
    hccl_require_elements(op, "count", item->count, item->dataType, 1);
    hccl_require_rank(op, rank, item->remoteRank);
}

/* Queues the messages, which have been checked. Both sides agree on bytes; a type is each one's own matter. */
static void queue(Operation *op, const HcclSendRecvItem *items, uint32_t count)
{
    Messages messages = hccl_messages(op, CHANNEL_DIRECT, (int32_t)count);
    for (uint32_t i = 0; op->call.status == 0 && i < count; i++) {
        hccl_add(&messages, items[i].remoteRank, items[i].sendRecvType == HCCL_SEND,
                 hccl_elements(items[i].buf, 0, items[i].count, items[i].dataType));
    }
    hccl_send(op, &messages, "a message");
}

void hccl_exchange(Call *call, HcclComm comm, aclrtStream stream, const HcclSendRecvItem *items, uint32_t count)
{
    Operation op = hccl_begin(call->function, comm, stream);
    queue(&op, items, count);
    call->status = hccl_end(&op);
}

static HcclResult run(const char *function, HcclComm comm, aclrtStream stream, const HcclSendRecvItem *item,
                      const char *buffer, const char *rank)
{
    Operation op = hccl_begin(function, comm, stream);
    require_message(&op, item, buffer, rank);
    const bool alone = op.call.status == 0 && (int32_t)item->remoteRank == op.rank;
    us_require(&op.call, !alone || hccl_in_group(), rank, "own", HCCL_E_PARA,
               "%s is %u, this rank: alone it would wait for itself", rank, (unsigned)item->remoteRank);
    if (op.call.status == 0 && hccl_in_group()) {
        us_require(&op.call, hccl_group_message(comm, stream, item), "comm", "memory", HCCL_E_MEMORY,
                   "no host memory for the group");
    } else {
        queue(&op, item, 1);
    }
    return hccl_end(&op);
}

HcclResult HcclSend(void *sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank, HcclComm comm,
                    aclrtStream stream)
{
    const HcclSendRecvItem item = {HCCL_SEND, sendBuf, count, dataType, destRank};
    return run("HcclSend", comm, stream, &item, "sendBuf", "destRank");
}

HcclResult HcclRecv(void *recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank, HcclComm comm,
                    aclrtStream stream)
{
    const HcclSendRecvItem item = {HCCL_RECV, recvBuf, count, dataType, srcRank};
    return run("HcclRecv", comm, stream, &item, "recvBuf", "srcRank");
}

HcclResult HcclBatchSendRecv(HcclSendRecvItem *sendRecvInfo, uint32_t itemNum, HcclComm comm, aclrtStream stream)
{
    enum { ITEM_LIMIT = 1 << 20 };
    Operation op = hccl_begin("HcclBatchSendRecv", comm, stream);
    us_require(&op.call, sendRecvInfo != NULL, "sendRecvInfo", "null", HCCL_E_PTR, "sendRecvInfo is NULL");
    us_require(&op.call, itemNum >= 1 && itemNum <= ITEM_LIMIT, "itemNum", "range", HCCL_E_PARA,
               "itemNum is %u; it must be 1 to %d", (unsigned)itemNum, ITEM_LIMIT);
    us_require(&op.call, !hccl_in_group(), "comm", "group", HCCL_E_NOT_SUPPORT, "it is no part of a group");
    for (uint32_t i = 0; op.call.status == 0 && i < itemNum; i++) {
        us_require(&op.call, (unsigned)sendRecvInfo[i].sendRecvType < HCCL_SEND_RECV_RESERVED, "sendRecvInfo", "direction",
                   HCCL_E_PARA, "sendRecvInfo[%u].sendRecvType is %d; it must be 0 or 1", (unsigned)i,
                   (int)sendRecvInfo[i].sendRecvType);
        require_message(&op, &sendRecvInfo[i], "buf", "remoteRank");
    }
    queue(&op, sendRecvInfo, itemNum);
    return hccl_end(&op);
}
