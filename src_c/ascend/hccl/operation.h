/* One operation of a communicator, from the program's arguments to a task on a stream (operation.c). */
#ifndef HCCL_OPERATION_H
#define HCCL_OPERATION_H

#include "ascend/hccl/communicator.h"
#include "kernels/reduce/reduce.h"
#include "launch/launch.h"

/* A call whose communicator and stream are alive; otherwise `call` has been refused. */
typedef struct Operation {
    Call call;
    const Communicator *communicator;
    Stream *stream;
    int32_t ranks, rank;
} Operation;

Operation hccl_begin(const char *function, HcclComm comm, aclrtStream stream);
HcclResult hccl_end(Operation *operation);

/* Rules <parameter>/null, where there are elements; count/range; dataType/type. */
void hccl_require_buffer(Operation *operation, const char *parameter, const void *buffer, uint64_t count);
void hccl_require_type(Operation *operation, const char *parameter, HcclDataType type);
void hccl_require_elements(Operation *operation, const char *parameter, uint64_t count, HcclDataType type, uint64_t ranks);
void hccl_require_rank(Operation *operation, const char *parameter, uint32_t rank);
void hccl_require_product(Operation *operation); /* of another series: HCCL_E_NOT_SUPPORT */
void hccl_require_apart(Operation *operation, const void *sendBuf, const void *recvBuf);

/* `count` elements from `buffer`, or absent; a type that was required. */
View hccl_elements(const void *buffer, uint64_t begin, uint64_t count, HcclDataType type);
DType hccl_dtype(HcclDataType type);

/* A list of messages that grows to two for each rank. */
typedef struct Messages {
    Exchange *exchange; /* NULL: no memory */
    View *views;
    int32_t limit;
} Messages;
Messages hccl_messages(const Operation *operation, ChannelKind kind, int32_t limit);
void hccl_add(Messages *messages, uint32_t peer, bool sends, View view);
/* Queues them under a caption, and releases the list. */
void hccl_send(Operation *operation, Messages *messages, const char *format, ...) US_PRINTF(3, 4);

/* Parts for each rank and this rank's result (absent: none), which is reduced by `op`: checked before. */
void hccl_reduce(Operation *operation, const View *parts, const View *result, HcclDataType type, HcclReduceOp op,
                 const char *caption);

#endif
