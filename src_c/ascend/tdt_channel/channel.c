/* Channels: what one thread sends, another one receives. The device between them changes nothing. */
#include "ascend/tdt_channel/dataset.h"

#include "device/device.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_CAPACITY = 2, LARGEST_CAPACITY = 8192 };

typedef struct Channel {
    Mailbox *mailbox; /* of messages */
    char *name;
} Channel;

/* ---- messages ---- */

typedef struct Message {
    size_t count;
    DataItem *items[];
} Message;

static void end_message(void *object)
{
    Message *message = object;
    for (size_t i = 0; i < message->count; i++) {
        tdt_end_item(message->items[i]);
    }
    free(message);
}

/* A copy of an item: rules dataset/item, dataset/memory. */
static DataItem *require_copy(Call *call, const void *handle)
{
    Platform *platform = ascend_platform();
    Explanation why = {""};
    const DataItem *item = us_handle_object(handle, HANDLE_DATA_ITEM);
    us_require(call, item != NULL, "dataset", "item", ACL_ERROR_INVALID_PARAM, "an item of dataset has been destroyed");
    const void *bytes = call->status == 0 ? item->data : NULL;
    if (call->status == 0 && platform != NULL && item->size > 0) {
        bytes = us_memory_open(platform, NULL, item->data, item->size, MEMORY_USER_COPY, &why);
        us_require(call, bytes != NULL, "dataset", "memory", ACL_ERROR_INVALID_PARAM, "an item's %s", why.text);
    }
    DataItem *copy = call->status == 0 ? tdt_copy_item(item, bytes) : NULL;
    us_require(call, copy != NULL, "message", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a message");
    return copy;
}

static Message *require_message(Call *call, const Dataset *dataset)
{
    Message *message = calloc(1, sizeof *message + dataset->count * sizeof(DataItem *));
    us_require(call, message != NULL, "message", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a message");
    for (size_t i = 0; call->status == 0 && i < dataset->count; i++) {
        DataItem *copy = require_copy(call, dataset->items[i]);
        if (copy != NULL) {
            message->items[message->count++] = copy;
        }
    }
    if (call->status != 0 && message != NULL) {
        end_message(message);
        message = NULL;
    }
    return message;
}

/* Moves the message's items to the program's dataset; false: no memory, and nothing has moved. */
static bool deliver(Message *message, Dataset *dataset, const char *name)
{
    bool complete = true;
    for (size_t i = 0; i < message->count && complete; i++) {
        DataItem *item = message->items[i];
        item->handle = us_handle_create(HANDLE_DATA_ITEM, item);
        complete = item->handle != NULL && tdt_add_item(dataset, item->handle);
    }
    if (!complete) {
        dataset->count = 0;
        return false;
    }
    message->count = 0;
    free(dataset->name);
    dataset->name = strdup(name);
    return true;
}

/* ---- channels ---- */

static void bury_channel(void *object)
{
    Channel *channel = object;
    us_mailbox_destroy(channel->mailbox, end_message);
    free(channel->name);
    free(channel);
}

static void *new_channel(const char *name, size_t capacity)
{
    Channel *channel = calloc(1, sizeof *channel);
    if (channel == NULL) {
        return NULL;
    }
    channel->mailbox = us_mailbox_create(capacity);
    channel->name = strdup(name);
    bool complete = channel->mailbox != NULL && channel->name != NULL;
    void *handle = complete ? us_handle_create(HANDLE_CHANNEL, channel) : NULL;
    if (handle == NULL) {
        if (channel->mailbox != NULL) {
            us_mailbox_destroy(channel->mailbox, end_message);
        }
        free(channel->name);
        free(channel);
    }
    return handle;
}

acltdtChannelHandle *acltdtCreateChannelWithCapacity(uint32_t deviceId, const char *name, size_t capacity)
{
    Call call = us_call_begin("acltdtCreateChannelWithCapacity");
    us_require(&call, name != NULL, "name", "null", ACL_ERROR_INVALID_PARAM, "name is NULL");
    us_require(&call, capacity >= LEAST_CAPACITY && capacity <= LARGEST_CAPACITY, "capacity", "range",
               ACL_ERROR_INVALID_PARAM, "capacity is %zu; it must be 2 to 8192", capacity);
    const Platform *platform = call.status == 0 ? ascend_platform() : NULL;
    int32_t count = platform != NULL ? platform->device_count : 0;
    us_require(&call, deviceId < (uint32_t)count, "deviceId", "range", ACL_ERROR_RT_INVALID_DEVICEID,
               "device %u does not exist: there are %d", (unsigned)deviceId, (int)count);
    void *handle = call.status == 0 ? new_channel(name, capacity) : NULL;
    us_require(&call, handle != NULL, "channel", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a channel");
    us_call_end(&call);
    return handle;
}

static Channel *require_channel(Call *call, const acltdtChannelHandle *handle)
{
    return tdt_require(call, "handle", handle, HANDLE_CHANNEL);
}

aclError acltdtStopChannel(acltdtChannelHandle *handle)
{
    Call call = us_call_begin("acltdtStopChannel");
    const Channel *channel = require_channel(&call, handle);
    if (channel != NULL) {
        us_mailbox_stop(channel->mailbox);
    }
    return us_call_end(&call);
}

aclError acltdtDestroyChannel(acltdtChannelHandle *handle)
{
    Call call = us_call_begin("acltdtDestroyChannel");
    Channel *channel = require_channel(&call, handle);
    tdt_require_end(&call, "handle", handle, HANDLE_CHANNEL);
    if (call.status == 0) {
        us_mailbox_stop(channel->mailbox); /* threads that are in it come out first */
        us_grace_bury(bury_channel, channel);
    }
    return us_call_end(&call);
}

aclError acltdtCleanChannel(acltdtChannelHandle *handle)
{
    Call call = us_call_begin("acltdtCleanChannel");
    const Channel *channel = require_channel(&call, handle);
    if (channel != NULL) {
        us_mailbox_clear(channel->mailbox, end_message);
    }
    return us_call_end(&call);
}

aclError acltdtQueryChannelSize(const acltdtChannelHandle *handle, size_t *size)
{
    Call call = us_call_begin("acltdtQueryChannelSize");
    us_require(&call, size != NULL, "size", "null", ACL_ERROR_INVALID_PARAM, "size is NULL");
    const Channel *channel = require_channel(&call, handle);
    if (channel != NULL) {
        *size = us_mailbox_count(channel->mailbox);
    }
    return us_call_end(&call);
}

static void require_passed(Call *call, MailStatus status, const char *rule, int32_t expired, int32_t timeout)
{
    us_require(call, status != MAIL_EXPIRED, "handle", rule, expired, "the channel is %s still after %d ms", rule,
               (int)timeout);
    us_require(call, status == MAIL_DONE, "handle", "stopped", ACL_ERROR_FAILURE, "the channel has been stopped");
}

aclError acltdtSendTensor(const acltdtChannelHandle *handle, const acltdtDataset *dataset, int32_t timeout)
{
    Call call = us_call_begin("acltdtSendTensor");
    const Channel *channel = require_channel(&call, handle);
    const Dataset *found = tdt_require(&call, "dataset", dataset, HANDLE_DATASET);
    int64_t timeout_us = tdt_require_timeout(&call, timeout);
    Message *message = call.status == 0 ? require_message(&call, found) : NULL;
    if (message != NULL) {
        MailStatus status = us_mailbox_put(channel->mailbox, message, timeout_us);
        require_passed(&call, status, "full", ACL_ERROR_RT_QUEUE_FULL, timeout);
        if (status != MAIL_DONE) {
            end_message(message);
        }
    }
    return us_call_end(&call);
}

aclError acltdtReceiveTensor(const acltdtChannelHandle *handle, acltdtDataset *dataset, int32_t timeout)
{
    Call call = us_call_begin("acltdtReceiveTensor");
    const Channel *channel = require_channel(&call, handle);
    Dataset *found = tdt_require(&call, "dataset", dataset, HANDLE_DATASET);
    us_require(&call, found->count == 0, "dataset", "filled", ACL_ERROR_INVALID_PARAM,
               "dataset has %zu items; only an empty one can receive", found->count);
    int64_t timeout_us = tdt_require_timeout(&call, timeout);
    if (call.status == 0) {
        void *message = NULL;
        MailStatus status = us_mailbox_take(channel->mailbox, &message, timeout_us);
        require_passed(&call, status, "empty", ACL_ERROR_RT_QUEUE_EMPTY, timeout);
        if (status == MAIL_DONE) {
            us_require(&call, deliver(message, found, channel->name), "message", "memory", ACL_ERROR_BAD_ALLOC,
                       "no host memory for the items");
            end_message(message);
        }
    }
    return us_call_end(&call);
}
