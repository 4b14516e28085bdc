/* The library handle: bound to a device, queues its work on one stream (mcdnn 7.1). */
#include "check.h"

#include "maca/common/platform.h"

#include <stdlib.h>

mcdnnStatus_t mcdnnCreate(mcdnnHandle_t *handle)
{
    Call call = us_call_begin("mcdnnCreate");
    check_given(&call, "handle", handle);
    Dnn dnn = {.device = call.status == 0 ? maca_device() : NULL};
    us_require(&call, dnn.device != NULL, "handle", "device", MCDNN_STATUS_NOT_INITIALIZED,
               "device %d does not exist or cannot be started", maca_device_ordinal());
    void *made = descriptor_create(&call, "handle", handle, HANDLE_DNN, &dnn, sizeof dnn);
    if (made != NULL)
        *handle = made;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnDestroy(mcdnnHandle_t handle)
{
    Call call = us_call_begin("mcdnnDestroy");
    check_handle(&call, handle);
    if (call.status == 0)
        us_handle_release(handle, HANDLE_DNN);
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnSetStream(mcdnnHandle_t handle, mcStream_t streamId)
{
    Call call = us_call_begin("mcdnnSetStream");
    Dnn *dnn = (Dnn *)check_handle(&call, handle);
    if (call.status == 0 && streamId != NULL && streamId != mcStreamLegacy) {
        Stream *stream = maca_stream(streamId);
        us_require(&call, stream != NULL, "streamId", "alive", MCDNN_STATUS_BAD_PARAM,
                   "streamId is %p, which is not a stream (destroyed before, or another thing)", (void *)streamId);
        us_require(&call, stream->context->device == dnn->device, "streamId", "device", MCDNN_STATUS_MAPPING_ERROR,
                   "the stream belongs to device %d, the handle to device %d", stream->context->device->ordinal,
                   dnn->device->ordinal);
    }
    if (call.status == 0)
        dnn->stream = streamId;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetStream(mcdnnHandle_t handle, mcStream_t *streamId)
{
    Call call = us_call_begin("mcdnnGetStream");
    const Dnn *dnn = check_handle(&call, handle);
    check_given(&call, "streamId", streamId);
    if (call.status == 0)
        *streamId = dnn->stream;
    return us_call_end(&call);
}
