/* Groups: what a thread calls between HcclGroupStart and HcclGroupEnd is done at the end. */
#include "ascend/hccl/communicator.h"

#include <stdlib.h>

typedef struct Message {
    HcclComm comm;
    aclrtStream stream;
    HcclSendRecvItem item;
} Message;

/* Of a thread, from the first start to the last end. */
typedef struct Group {
    int depth;
    HcclComm *joined;
    Message *messages;
    uint32_t joined_count, message_count;
} Group;

static Group *group_of_thread(void)
{
    return *us_rank_group_of_thread();
}

bool hccl_in_group(void)
{
    return group_of_thread() != NULL;
}

/* Room for one more. */
static void *grow(void *list, uint32_t count, size_t size)
{
    return count % 16 == 0 ? realloc(list, (count + 16) * size) : list;
}

bool hccl_group_join(HcclComm comm)
{
    Group *group = group_of_thread();
    HcclComm *list = grow(group->joined, group->joined_count, sizeof *list);
    if (list == NULL) {
        return false;
    }
    group->joined = list;
    list[group->joined_count++] = comm;
    return true;
}

bool hccl_group_message(HcclComm comm, aclrtStream stream, const HcclSendRecvItem *item)
{
    Group *group = group_of_thread();
    Message *list = grow(group->messages, group->message_count, sizeof *list);
    if (list == NULL) {
        return false;
    }
    group->messages = list;
    list[group->message_count++] = (Message){comm, stream, *item};
    return true;
}

HcclResult HcclGroupStart(void)
{
    Call call = us_call_begin("HcclGroupStart");
    Group *group = group_of_thread();
    us_require(&call, ascend_product()->product != PRODUCT_910A, "group", "unsupported", HCCL_E_NOT_SUPPORT,
               "devices of the %s have no groups", ascend_product()->series);
    if (call.status == 0 && group == NULL) {
        group = *us_rank_group_of_thread() = calloc(1, sizeof *group);
    }
    us_require(&call, group != NULL, "group", "memory", HCCL_E_MEMORY, "no host memory for a group");
    if (call.status == 0) {
        group->depth++;
    }
    return (HcclResult)us_call_end(&call);
}

/* All messages of the communicator and stream of the first one that is left, in the order of the calls. */
static void send_some(Call *call, Group *group, HcclSendRecvItem *items)
{
    const HcclComm comm = group->messages[0].comm;
    const aclrtStream stream = group->messages[0].stream;
    uint32_t count = 0, left = 0;
    for (uint32_t i = 0; i < group->message_count; i++) {
        const Message *message = &group->messages[i];
        if (message->comm == comm && message->stream == stream) {
            items[count++] = message->item;
        } else {
            group->messages[left++] = *message;
        }
    }
    group->message_count = left;
    if (call->status == 0) {
        hccl_exchange(call, comm, stream, items, count);
    }
}

/* Those whose rooms were found by a name, or the others. */
static void gather(Call *call, const Group *group, bool found)
{
    for (uint32_t i = 0; i < group->joined_count; i++) {
        const Communicator *joined = us_handle_object(group->joined[i], HANDLE_COMMUNICATOR);
        if (joined != NULL && joined->found == found) {
            hccl_gather(call, group->joined[i]);
        }
    }
}

static void finish(Call *call, Group *group)
{
    HcclSendRecvItem *items = malloc((group->message_count + 1) * sizeof *items);
    us_require(call, items != NULL, "group", "memory", HCCL_E_MEMORY, "no host memory for the messages of the group");
    gather(call, group, false); /* these may close the rooms that those have found */
    gather(call, group, true);
    while (items != NULL && group->message_count > 0) {
        send_some(call, group, items);
    }
    free(items);
    free(group->joined);
    free(group->messages);
    free(group);
}

HcclResult HcclGroupEnd(void)
{
    Call call = us_call_begin("HcclGroupEnd");
    Group *group = group_of_thread();
    us_require(&call, group != NULL, "group", "none", HCCL_E_PARA, "HcclGroupStart was not called before");
    if (call.status == 0 && --group->depth == 0) {
        *us_rank_group_of_thread() = NULL;
        finish(&call, group);
    }
    return (HcclResult)us_call_end(&call);
}
