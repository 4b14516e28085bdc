/* Queues of bytes (cann-runtime-3 17). */
#include "ascend/tdt_queue/queue.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 128, USER_DATA_BYTES = 96, DEFAULT_DEPTH = 8, DEPTH_LIMIT = 8192, QUEUE_LIMIT = 4096 };

typedef struct QueueAttribute {
    char name[NAME_BYTES];
    uint32_t depth;
} QueueAttribute;

typedef struct Queue {
    struct Queue *next;
    uint32_t id;
    QueueAttribute attribute;
    Mailbox *mailbox;
    int users; /* calls that are in it */
    bool destroyed;
} Queue;

typedef struct Message {
    size_t size, user_size;
    char user[USER_DATA_BYTES];
    char bytes[];
} Message;

/* Of the process; the library exists once in it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Queue *queues;
static uint32_t next_id;
static size_t queue_count;

void tdt_queues_lock(void)
{
    pthread_mutex_lock(&lock);
}

void tdt_queues_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* ---- attributes ---- */

acltdtQueueAttr *acltdtCreateQueueAttr(void)
{
    Call call = us_call_begin("acltdtCreateQueueAttr");
    void *handle = us_handle_new(HANDLE_QUEUE_ATTRIBUTE, &(QueueAttribute){.depth = DEFAULT_DEPTH}, sizeof(QueueAttribute));
    us_require(&call, handle != NULL, "attr", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for an attribute");
    us_call_end(&call);
    return handle;
}

aclError acltdtDestroyQueueAttr(const acltdtQueueAttr *attr)
{
    Call call = us_call_begin("acltdtDestroyQueueAttr");
    tdt_release(&call, "attr", attr, HANDLE_QUEUE_ATTRIBUTE);
    return us_call_end(&call);
}

/* The size of a parameter: rules type/range, len/range. */
void tdt_require_size(Call *call, int type, const size_t *sizes, int types, size_t len)
{
    us_require(call, type >= 0 && type < types, "type", "range", ACL_ERROR_INVALID_PARAM,
               "type is %d; it must be 0 to %d", type, types - 1);
    us_require(call, len == sizes[type], "len", "range", ACL_ERROR_INVALID_PARAM,
               "len is %zu; a parameter of type %d has %zu bytes", len, type, sizes[type]);
}

static const size_t ATTRIBUTE_SIZES[] = {sizeof(char *), sizeof(uint32_t)};

aclError acltdtSetQueueAttr(acltdtQueueAttr *attr, acltdtQueueAttrType type, size_t len, const void *param)
{
    Call call = us_call_begin("acltdtSetQueueAttr");
    us_require(&call, param != NULL, "param", "null", ACL_ERROR_INVALID_PARAM, "param is NULL");
    QueueAttribute *attribute = tdt_require(&call, "attr", attr, HANDLE_QUEUE_ATTRIBUTE);
    tdt_require_size(&call, (int)type, ATTRIBUTE_SIZES, 2, len);
    if (call.status == 0 && type == ACL_TDT_QUEUE_NAME_PTR) {
        const char *name = *(const char *const *)param;
        us_require(&call, name != NULL && strnlen(name, NAME_BYTES) < NAME_BYTES, "param", "name",
                   ACL_ERROR_INVALID_PARAM, "the name is NULL, or longer than %d characters", NAME_BYTES - 1);
        if (call.status == 0) {
            strcpy(attribute->name, name);
        }
    } else if (call.status == 0) {
        uint32_t depth = *(const uint32_t *)param;
        us_require(&call, depth >= 2 && depth <= DEPTH_LIMIT, "param", "depth", ACL_ERROR_INVALID_PARAM,
                   "the depth is %u; it must be 2 to %d", (unsigned)depth, DEPTH_LIMIT);
        if (call.status == 0) {
            attribute->depth = depth;
        }
    }
    return us_call_end(&call);
}

aclError acltdtGetQueueAttr(const acltdtQueueAttr *attr, acltdtQueueAttrType type, size_t len, size_t *paramRetSize,
                            void *param)
{
    Call call = us_call_begin("acltdtGetQueueAttr");
    us_require(&call, param != NULL, "param", "null", ACL_ERROR_INVALID_PARAM, "param is NULL");
    us_require(&call, paramRetSize != NULL, "paramRetSize", "null", ACL_ERROR_INVALID_PARAM, "paramRetSize is NULL");
    const QueueAttribute *attribute = tdt_require(&call, "attr", attr, HANDLE_QUEUE_ATTRIBUTE);
    tdt_require_size(&call, (int)type, ATTRIBUTE_SIZES, 2, len);
    if (call.status == 0) {
        const char *name = attribute->name;
        memcpy(param, type == ACL_TDT_QUEUE_NAME_PTR ? (const void *)&name : &attribute->depth, len);
        *paramRetSize = len;
    }
    return us_call_end(&call);
}

/* ---- queues ---- */

static Queue **find(uint32_t id)
{
    Queue **link = &queues;
    while (*link != NULL && (*link)->id != id) {
        link = &(*link)->next;
    }
    return link;
}

bool tdt_queue_exists(uint32_t id)
{
    return *find(id) != NULL;
}

static bool is_named(const char *name)
{
    const Queue *queue = queues;
    while (queue != NULL && strcmp(queue->attribute.name, name) != 0) {
        queue = queue->next;
    }
    return queue != NULL;
}

/* With the lock held: a queue with a name that no other has. NULL: no memory. */
static Queue *add_queue(const QueueAttribute *attribute)
{
    Queue *queue = calloc(1, sizeof *queue);
    Mailbox *mailbox = queue != NULL ? us_mailbox_create(attribute->depth) : NULL;
    if (mailbox == NULL) {
        free(queue);
        return NULL;
    }
    *queue = (Queue){.next = queues, .id = next_id++, .attribute = *attribute, .mailbox = mailbox};
    while (queue->attribute.name[0] == '\0' || (attribute->name[0] == '\0' && is_named(queue->attribute.name))) {
        static uint32_t next_name;
        snprintf(queue->attribute.name, NAME_BYTES, "queue-%u", (unsigned)next_name++);
    }
    queues = queue;
    queue_count++;
    return queue;
}

aclError acltdtCreateQueue(const acltdtQueueAttr *attr, uint32_t *qid)
{
    Call call = us_call_begin("acltdtCreateQueue");
    us_require(&call, qid != NULL, "qid", "null", ACL_ERROR_INVALID_PARAM, "qid is NULL");
    const QueueAttribute *attribute = tdt_require(&call, "attr", attr, HANDLE_QUEUE_ATTRIBUTE);
    pthread_mutex_lock(&lock);
    us_require(&call, attribute->name[0] == '\0' || !is_named(attribute->name), "attr", "name", ACL_ERROR_INVALID_PARAM,
               "a queue is called %s already", attribute->name);
    us_require(&call, queue_count < QUEUE_LIMIT, "attr", "limit", ACL_ERROR_INVALID_PARAM, "there are %d queues already",
               QUEUE_LIMIT);
    const Queue *queue = call.status == 0 ? add_queue(attribute) : NULL;
    us_require(&call, queue != NULL, "attr", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a queue");
    if (call.status == 0) {
        *qid = queue->id;
    }
    pthread_mutex_unlock(&lock);
    return us_call_end(&call);
}

static void refuse_unknown(Call *call, uint32_t id)
{
    us_refuse(call, "qid", "unknown", ACL_ERROR_INVALID_QUEUE_ID, "there is no queue %u", (unsigned)id);
}

/* With the lock held: nobody is in it any more. */
static void end_if_unused(Queue *queue)
{
    if (queue->destroyed && queue->users == 0) {
        us_mailbox_destroy(queue->mailbox, free);
        free(queue);
    }
}

aclError acltdtDestroyQueue(uint32_t qid)
{
    Call call = us_call_begin("acltdtDestroyQueue");
    pthread_mutex_lock(&lock);
    Queue **link = find(qid);
    Queue *queue = *link;
    if (queue != NULL) {
        *link = queue->next;
        queue_count--;
        tdt_routes_forget(qid);
        queue->destroyed = true;
        us_mailbox_stop(queue->mailbox);
        end_if_unused(queue);
    } else {
        refuse_unknown(&call, qid);
    }
    pthread_mutex_unlock(&lock);
    return us_call_end(&call);
}

static Queue *enter(uint32_t id)
{
    pthread_mutex_lock(&lock);
    Queue *queue = *find(id);
    if (queue != NULL) {
        queue->users++;
    }
    pthread_mutex_unlock(&lock);
    return queue;
}

static void leave(Queue *queue)
{
    if (queue != NULL) {
        pthread_mutex_lock(&lock);
        queue->users--;
        end_if_unused(queue);
        pthread_mutex_unlock(&lock);
    }
}

/* ---- data ---- */

static Message *copy_message(const Message *message)
{
    Message *copy = malloc(sizeof *copy + message->size);
    if (copy != NULL) {
        memcpy(copy, message, sizeof *copy + message->size);
    }
    return copy;
}

/* Into the queue, or, where routes lead on from it, into the queues at their ends. The message becomes theirs when the
 * result is MAIL_DONE. */
static MailStatus put(Queue *queue, Message *message, int64_t timeout_us)
{
    uint32_t id = 0;
    if (!tdt_route_from(queue->id, 0, &id)) {
        return us_mailbox_put(queue->mailbox, message, timeout_us);
    }
    MailStatus status = MAIL_DONE;
    for (size_t i = 0; status == MAIL_DONE && tdt_route_from(queue->id, i, &id); i++) {
        Queue *end = enter(id);
        Message *copy = end != NULL ? copy_message(message) : NULL;
        if (copy != NULL) {
            status = put(end, copy, timeout_us); /* routes have no cycle */
        }
        if (status != MAIL_DONE) {
            free(copy);
        }
        leave(end);
    }
    if (status == MAIL_DONE) {
        free(message);
    }
    return status;
}

static void require_passed(Call *call, MailStatus status, uint32_t id, int32_t timeout, bool full)
{
    us_require(call, status != MAIL_EXPIRED || !full, "qid", "full", ACL_ERROR_RT_QUEUE_FULL,
               "queue %u is full still after %d ms", (unsigned)id, (int)timeout);
    us_require(call, status != MAIL_EXPIRED, "qid", "empty", ACL_ERROR_RT_QUEUE_EMPTY,
               "queue %u is empty still after %d ms", (unsigned)id, (int)timeout);
    us_require(call, status == MAIL_DONE, "qid", "destroyed", ACL_ERROR_INVALID_QUEUE_ID,
               "queue %u was destroyed meanwhile", (unsigned)id);
}

aclError acltdtEnqueueData(uint32_t qid, const void *data, size_t dataSize, const void *userData, size_t userDataSize,
                           int32_t timeout, uint32_t rsv)
{
    (void)rsv;
    Call call = us_call_begin("acltdtEnqueueData");
    us_require(&call, data != NULL, "data", "null", ACL_ERROR_INVALID_PARAM, "data is NULL");
    us_require(&call, dataSize > 0 && dataSize <= SIZE_MAX / 2, "dataSize", "range", ACL_ERROR_INVALID_PARAM,
               "dataSize is %zu; it must be at least 1", dataSize);
    us_require(&call, userDataSize <= USER_DATA_BYTES && (userData != NULL || userDataSize == 0), "userData", "range",
               ACL_ERROR_INVALID_PARAM, "userData is NULL, or its %zu bytes are more than 96", userDataSize);
    int64_t timeout_us = tdt_require_timeout(&call, timeout);
    Queue *queue = call.status == 0 ? enter(qid) : NULL;
    if (call.status == 0 && queue == NULL) {
        refuse_unknown(&call, qid);
    }
    Message *message = call.status == 0 ? calloc(1, sizeof *message + dataSize) : NULL;
    us_require(&call, message != NULL, "data", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for %zu bytes", dataSize);
    if (call.status == 0) {
        message->size = dataSize;
        message->user_size = userDataSize;
        memcpy(message->bytes, data, dataSize);
        if (userDataSize > 0) {
            memcpy(message->user, userData, userDataSize);
        }
        MailStatus status = put(queue, message, timeout_us);
        require_passed(&call, status, qid, timeout, true);
        if (status != MAIL_DONE) {
            free(message);
        }
    }
    leave(queue);
    return us_call_end(&call);
}

aclError acltdtDequeueData(uint32_t qid, void *data, size_t dataSize, size_t *retDataSize, void *userData,
                           size_t userDataSize, int32_t timeout)
{
    Call call = us_call_begin("acltdtDequeueData");
    us_require(&call, data != NULL, "data", "null", ACL_ERROR_INVALID_PARAM, "data is NULL");
    us_require(&call, retDataSize != NULL, "retDataSize", "null", ACL_ERROR_INVALID_PARAM, "retDataSize is NULL");
    us_require(&call, userDataSize <= USER_DATA_BYTES && (userData != NULL || userDataSize == 0), "userData", "range",
               ACL_ERROR_INVALID_PARAM, "userData is NULL, or its %zu bytes are more than 96", userDataSize);
    int64_t timeout_us = tdt_require_timeout(&call, timeout);
    Queue *queue = call.status == 0 ? enter(qid) : NULL;
    if (call.status == 0 && queue == NULL) {
        refuse_unknown(&call, qid);
    }
    if (call.status == 0) {
        void *taken = NULL;
        MailStatus status = us_mailbox_take(queue->mailbox, &taken, timeout_us);
        require_passed(&call, status, qid, timeout, false);
        const Message *message = taken;
        us_require(&call, message->size <= dataSize, "dataSize", "limit", ACL_ERROR_INVALID_PARAM,
                   "the message has %zu bytes, data has room for %zu; it is lost", message->size, dataSize);
        if (call.status == 0) {
            memcpy(data, message->bytes, message->size);
            *retDataSize = message->size;
            if (userDataSize > 0) {
                memcpy(userData, message->user, userDataSize);
            }
        }
        free(taken);
    }
    leave(queue);
    return us_call_end(&call);
}
