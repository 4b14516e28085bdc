/* Queues of the program's functions that a thread of the program runs when it asks for them (cann-runtime 9, doc 12;
 * cann-runtime-3 6). Callbacks and host functions have queues of their own: a stream may be served for both, by different
 * threads. */
#ifndef ASCENDCL_REPORT_QUEUE_H
#define ASCENDCL_REPORT_QUEUE_H

#include "ascend/ascendcl/runtime.h"

/* Whose queue it is: the field of Stream.vendor_state. */
typedef enum QueueKind { QUEUE_OF_CALLBACKS = STREAM_REPORT_QUEUE, QUEUE_OF_HOST_FUNCTIONS = STREAM_HOST_QUEUE } QueueKind;

/* Subscriptions; refusals: stream/subscribed, threadId/device, threadId/memory, stream/unsubscribed,
 * threadId/unsubscribed. */
void queue_subscribe(Call *call, QueueKind kind, uint64_t thread_id, aclrtStream handle);
void queue_unsubscribe(Call *call, QueueKind kind, uint64_t thread_id, aclrtStream handle);
bool queue_serves(QueueKind kind, const Stream *stream);

/* Puts a function in the queue when the stream gets there; with `blocks` the stream goes on when it has run. Refusals:
 * stream/unsubscribed, stream/resources. */
void queue_submit(Call *call, QueueKind kind, Stream *stream, aclrtCallback function, void *user_data, bool blocks);

/* Runs what is in the calling thread's queue, and waits for it if there is nothing. Refusals: thread/unsubscribed,
 * timeout/range, timeout/expired. */
void queue_process(Call *call, QueueKind kind, int32_t timeout_ms);

#endif
