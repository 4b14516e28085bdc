/* A pair of address and size (cann-runtime 9, doc 25-03). */
#include "ascend/ascendcl/runtime.h"
#include "report/grace.h"

#include <stdlib.h>

enum { HANDLE_DATA_BUFFER = 0x2f };

struct aclDataBuffer {
    void *data;
    size_t size;
};

static aclDataBuffer *live_buffer(const aclDataBuffer *handle)
{
    return us_handle_object(handle, HANDLE_DATA_BUFFER);
}

aclDataBuffer *aclCreateDataBuffer(void *data, size_t size)
{
    return us_handle_new(HANDLE_DATA_BUFFER, &(aclDataBuffer){data, size}, sizeof(aclDataBuffer));
}

aclError aclDestroyDataBuffer(const aclDataBuffer *dataBuffer)
{
    Call call = us_call_begin("aclDestroyDataBuffer");
    us_require(&call, dataBuffer != NULL, "dataBuffer", "null", ACL_ERROR_INVALID_PARAM, "dataBuffer is NULL");
    us_require(&call, us_handle_release(dataBuffer, HANDLE_DATA_BUFFER), "dataBuffer", "dead", ACL_ERROR_INVALID_PARAM,
               "dataBuffer %p was destroyed, or never came from this library", (const void *)dataBuffer);
    return acl_end(&call);
}

aclError aclUpdateDataBuffer(aclDataBuffer *dataBuffer, void *data, size_t size)
{
    Call call = us_call_begin("aclUpdateDataBuffer");
    us_require(&call, dataBuffer != NULL, "dataBuffer", "null", ACL_ERROR_INVALID_PARAM, "dataBuffer is NULL");
    aclDataBuffer *buffer = live_buffer(dataBuffer);
    us_require(&call, buffer != NULL, "dataBuffer", "dead", ACL_ERROR_INVALID_PARAM,
               "dataBuffer %p was destroyed, or never came from this library", (void *)dataBuffer);
    if (call.status == 0) {
        *buffer = (aclDataBuffer){data, size};
    }
    return acl_end(&call);
}

/* Another thread may destroy it meanwhile. Nothing is in one that is not alive. */
static aclDataBuffer contents_of(const aclDataBuffer *handle)
{
    us_grace_enter();
    const aclDataBuffer *buffer = live_buffer(handle);
    aclDataBuffer contents = buffer != NULL ? *buffer : (aclDataBuffer){NULL, 0};
    us_grace_leave();
    return contents;
}

void *aclGetDataBufferAddr(const aclDataBuffer *dataBuffer)
{
    return contents_of(dataBuffer).data;
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer *dataBuffer)
{
    return contents_of(dataBuffer).size;
}

uint32_t aclGetDataBufferSize(const aclDataBuffer *dataBuffer)
{
    return (uint32_t)aclGetDataBufferSizeV2(dataBuffer);
}
