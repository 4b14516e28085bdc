/* Buffers with a data area in device memory, a small private area, and chains of them (cann-runtime-3 12). Several handles
 * may have one data area. */
#include "ascend/ascendcl/runtime.h"

#include <stdlib.h>
#include <string.h>

enum { HANDLE_SHARED_BUFFER = 0x1e, USER_BYTES = 96, CHAIN_LIMIT = 128 };
static const size_t SIZE_LIMIT = (size_t)4 << 30;

typedef struct DataArea {
    Platform *platform;
    void *address;
    size_t size;
    size_t references; /* buffers */
} DataArea;

/* All fields are guarded by the platform's lock. */
typedef struct Buffer {
    void *handle;
    DataArea *data;
    size_t length;
    unsigned char user[USER_BYTES];
    struct Buffer *head; /* whose chain it is in; NULL: none, or its own */
    struct Buffer *next; /* in the chain */
} Buffer;

static void require_argument(Call *call, const char *name, const void *value)
{
    us_require(call, value != NULL, name, "null", ACL_ERROR_INVALID_PARAM, "%s is NULL", name);
}

/* The buffer, with the platform's lock taken: the caller releases it with let_go, whatever comes. */
static Buffer *take(Call *call, const char *name, const void *handle)
{
    require_argument(call, name, handle);
    Platform *platform = acl_require_platform(call);
    if (platform == NULL) {
        return NULL;
    }
    us_platform_lock(platform);
    Buffer *buffer = us_handle_object(handle, HANDLE_SHARED_BUFFER);
    us_require(call, buffer != NULL, name, "dead", ACL_ERROR_RT_INVALID_HANDLE, "%s %p is not alive", name, handle);
    if (buffer == NULL) {
        us_platform_unlock(platform);
    }
    return buffer;
}

static void let_go(const Buffer *buffer)
{
    if (buffer != NULL) {
        us_platform_unlock(buffer->data->platform);
    }
}

/* With the lock held, or unknown to anybody else. NULL: no memory. */
static Buffer *new_buffer(DataArea *data)
{
    Buffer *buffer = calloc(1, sizeof *buffer);
    void *handle = buffer != NULL ? us_handle_create(HANDLE_SHARED_BUFFER, buffer) : NULL;
    if (handle == NULL) {
        free(buffer);
        return NULL;
    }
    buffer->handle = handle;
    buffer->data = data;
    data->references++;
    return buffer;
}

aclError aclrtAllocBuf(aclrtMbuf *buf, size_t size)
{
    Call call = us_call_begin("aclrtAllocBuf");
    require_argument(&call, "buf", buf);
    us_require(&call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    us_require(&call, size <= SIZE_LIMIT, "size", "range", ACL_ERROR_RT_PARAM_INVALID,
               "size is %zu; at most 4 GiB are allowed", size);
    Context *context = acl_require_context(&call, "context", "none");
    void *address = NULL;
    us_require(&call,
               us_memory_allocate(context->device, MEMORY_DEVICE, us_exactly(size), "aclrtAllocBuf", &address) == MEMORY_OK,
               "size", "memory", ACL_ERROR_RT_MEMORY_ALLOCATION, "device %d has no %zu bytes left",
               (int)context->device->ordinal, size);
    DataArea *data = call.status == 0 ? calloc(1, sizeof *data) : NULL;
    if (data != NULL) {
        *data = (DataArea){context->device->platform, address, size, 0};
    }
    Buffer *buffer = data != NULL ? new_buffer(data) : NULL;
    us_require(&call, buffer != NULL, "buf", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a buffer");
    if (call.status == 0) {
        *buf = buffer->handle;
    } else if (address != NULL) {
        us_memory_free(context->device->platform, MEMORY_DEVICE, address, NULL);
        free(data);
    }
    return acl_end(&call);
}

/* With the lock held; gives the data area when this was the last buffer that has it. */
static DataArea *end_buffer(Buffer *buffer)
{
    DataArea *data = --buffer->data->references == 0 ? buffer->data : NULL;
    us_handle_release(buffer->handle, HANDLE_SHARED_BUFFER);
    return data;
}

static void end_area(DataArea *data)
{
    if (data != NULL) {
        Explanation why;
        us_memory_free(data->platform, MEMORY_DEVICE, data->address, &why); /* a reset may have freed it */
        free(data);
    }
}

aclError aclrtFreeBuf(aclrtMbuf buf)
{
    Call call = us_call_begin("aclrtFreeBuf");
    Buffer *buffer = take(&call, "buf", buf);
    us_require(&call, buffer->head == NULL, "buf", "chained", ACL_ERROR_RT_PARAM_INVALID,
               "buf is in the chain of another buffer and ends with that");
    DataArea *areas[CHAIN_LIMIT] = {NULL};
    size_t count = 0;
    Platform *platform = buffer != NULL ? buffer->data->platform : NULL;
    for (Buffer *member = call.status == 0 ? buffer : NULL; member != NULL;) {
        Buffer *next = member->next;
        areas[count++] = end_buffer(member);
        member = next;
    }
    if (platform != NULL) {
        us_platform_unlock(platform);
    }
    for (size_t i = 0; i < count; i++) {
        end_area(areas[i]);
    }
    return acl_end(&call);
}

/* ---- the areas ---- */

aclError aclrtGetBufData(const aclrtMbuf buf, void **dataPtr, size_t *size)
{
    Call call = us_call_begin("aclrtGetBufData");
    require_argument(&call, "dataPtr", dataPtr);
    require_argument(&call, "size", size);
    const Buffer *buffer = take(&call, "buf", buf);
    if (call.status == 0) {
        *dataPtr = buffer->data->address;
        *size = buffer->data->size;
    }
    let_go(buffer);
    return acl_end(&call);
}

aclError aclrtSetBufDataLen(aclrtMbuf buf, size_t len)
{
    Call call = us_call_begin("aclrtSetBufDataLen");
    Buffer *buffer = take(&call, "buf", buf);
    us_require(&call, len < buffer->data->size, "len", "range", ACL_ERROR_RT_PARAM_INVALID,
               "len is %zu; it must be smaller than the buffer's size, %zu", len, buffer->data->size);
    if (call.status == 0) {
        buffer->length = len;
    }
    let_go(buffer);
    return acl_end(&call);
}

aclError aclrtGetBufDataLen(aclrtMbuf buf, size_t *len)
{
    Call call = us_call_begin("aclrtGetBufDataLen");
    require_argument(&call, "len", len);
    const Buffer *buffer = take(&call, "buf", buf);
    if (call.status == 0) {
        *len = buffer->length;
    }
    let_go(buffer);
    return acl_end(&call);
}

static void require_part(Call *call, const void *pointer, size_t size, size_t offset)
{
    require_argument(call, "dataPtr", pointer);
    us_require(call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    us_require(call, offset <= USER_BYTES && size <= USER_BYTES - offset, "size", "range", ACL_ERROR_RT_PARAM_INVALID,
               "bytes %zu to %zu are not all in the private area, which has %d", offset, offset + size, USER_BYTES);
}

aclError aclrtSetBufUserData(aclrtMbuf buf, const void *dataPtr, size_t size, size_t offset)
{
    Call call = us_call_begin("aclrtSetBufUserData");
    require_part(&call, dataPtr, size, offset);
    Buffer *buffer = take(&call, "buf", buf);
    if (call.status == 0) {
        memcpy(buffer->user + offset, dataPtr, size);
    }
    let_go(buffer);
    return acl_end(&call);
}

aclError aclrtGetBufUserData(const aclrtMbuf buf, void *dataPtr, size_t size, size_t offset)
{
    Call call = us_call_begin("aclrtGetBufUserData");
    require_part(&call, dataPtr, size, offset);
    const Buffer *buffer = take(&call, "buf", buf);
    if (call.status == 0) {
        memcpy(dataPtr, buffer->user + offset, size);
    }
    let_go(buffer);
    return acl_end(&call);
}

aclError aclrtCopyBufRef(const aclrtMbuf buf, aclrtMbuf *newBuf)
{
    Call call = us_call_begin("aclrtCopyBufRef");
    require_argument(&call, "newBuf", newBuf);
    const Buffer *buffer = take(&call, "buf", buf);
    Buffer *copy = call.status == 0 ? new_buffer(buffer->data) : NULL;
    us_require(&call, copy != NULL, "newBuf", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a buffer");
    if (call.status == 0) {
        copy->length = buffer->length;
        memcpy(copy->user, buffer->user, sizeof copy->user);
        *newBuf = copy->handle;
    }
    let_go(buffer);
    return acl_end(&call);
}

/* ---- chains; with the lock held ---- */

static size_t chain_length(const Buffer *head)
{
    size_t count = 0;
    for (const Buffer *member = head; member != NULL; member = member->next) {
        count++;
    }
    return count;
}

static void append(Buffer *head, Buffer *buffer)
{
    Buffer *last = head;
    while (last->next != NULL) {
        last = last->next;
    }
    last->next = buffer;
    buffer->head = head;
}

aclError aclrtAppendBufChain(aclrtMbuf headBuf, aclrtMbuf buf)
{
    Call call = us_call_begin("aclrtAppendBufChain");
    require_argument(&call, "buf", buf);
    Buffer *head = take(&call, "headBuf", headBuf);
    Buffer *buffer = call.status == 0 ? us_handle_object(buf, HANDLE_SHARED_BUFFER) : NULL;
    us_require(&call, buffer != NULL, "buf", "dead", ACL_ERROR_RT_INVALID_HANDLE, "buf %p is not alive", buf);
    us_require(&call, head->head == NULL, "headBuf", "chained", ACL_ERROR_RT_PARAM_INVALID,
               "headBuf is in the chain of another buffer");
    us_require(&call, buffer != head && buffer->head == NULL && buffer->next == NULL, "buf", "chained",
               ACL_ERROR_RT_PARAM_INVALID, "buf is headBuf, or in a chain, or has one");
    us_require(&call, chain_length(head) < CHAIN_LIMIT, "headBuf", "limit", ACL_ERROR_RT_PARAM_INVALID,
               "the chain has %d buffers already", CHAIN_LIMIT);
    if (call.status == 0) {
        append(head, buffer);
    }
    let_go(head);
    return acl_end(&call);
}

aclError aclrtGetBufChainNum(aclrtMbuf headBuf, uint32_t *num)
{
    Call call = us_call_begin("aclrtGetBufChainNum");
    require_argument(&call, "num", num);
    const Buffer *head = take(&call, "headBuf", headBuf);
    if (call.status == 0) {
        *num = (uint32_t)chain_length(head);
    }
    let_go(head);
    return acl_end(&call);
}

aclError aclrtGetBufFromChain(aclrtMbuf headBuf, uint32_t index, aclrtMbuf *buf)
{
    Call call = us_call_begin("aclrtGetBufFromChain");
    require_argument(&call, "buf", buf);
    const Buffer *head = take(&call, "headBuf", headBuf);
    us_require(&call, index < chain_length(head), "index", "range", ACL_ERROR_RT_PARAM_INVALID,
               "index is %u; the chain has %zu buffers", (unsigned)index, chain_length(head));
    if (call.status == 0) {
        const Buffer *member = head;
        for (uint32_t i = 0; i < index; i++) {
            member = member->next;
        }
        *buf = member->handle;
    }
    let_go(head);
    return acl_end(&call);
}
