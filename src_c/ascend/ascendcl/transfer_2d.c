/* Rectangular copies (cann-runtime 9, doc 11-03). */
#include "ascend/ascendcl/transfer.h"

enum { WIDTH_LIMIT = 5000000, HEIGHT_LIMIT = 5 * 1024 * 1024 };

static void prepare_rectangle(Call *call, Copy *copy, aclrtMemcpyKind kind)
{
    us_require(call, copy->destination != NULL, "dst", "null", ACL_ERROR_INVALID_PARAM, "dst is NULL");
    us_require(call, copy->source != NULL, "src", "null", ACL_ERROR_INVALID_PARAM, "src is NULL");
    us_require(call, copy->width > 0, "width", "zero", ACL_ERROR_INVALID_PARAM, "width is 0; it must be at least 1");
    us_require(call, copy->height > 0, "height", "zero", ACL_ERROR_INVALID_PARAM, "height is 0; it must be at least 1");
    us_require(call, copy->width <= copy->destination_pitch, "width", "dpitch", ACL_ERROR_INVALID_PARAM,
               "width is %zu, but rows of dst are %zu bytes apart", copy->width, copy->destination_pitch);
    us_require(call, copy->width <= copy->source_pitch, "width", "spitch", ACL_ERROR_INVALID_PARAM,
               "width is %zu, but rows of src are %zu bytes apart", copy->width, copy->source_pitch);
    us_require(call, copy->width <= WIDTH_LIMIT, "width", "range", ACL_ERROR_INVALID_PARAM,
               "width is %zu; at most %d", copy->width, (int)WIDTH_LIMIT);
    us_require(call, copy->height <= HEIGHT_LIMIT, "height", "range", ACL_ERROR_INVALID_PARAM,
               "height is %zu; at most %d", copy->height, (int)HEIGHT_LIMIT);
    bool crosses = kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEFAULT;
    us_require(call, crosses, "kind", "range", ACL_ERROR_INVALID_PARAM,
               "kind is %d; a rectangle goes from host to device (1), back (2) or where the pointers say (4)",
               (int)kind);
    if (call->status == 0) {
        acl_sides_of_kind(kind, &copy->destination_side, &copy->source_side);
    }
}

aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                       aclrtMemcpyKind kind)
{
    Call call = us_call_begin("aclrtMemcpy2d");
    Copy copy = {dst, src, width, height, dpitch, spitch, SIDE_ANY, SIDE_ANY};
    prepare_rectangle(&call, &copy, kind);
    acl_run_copy(&call, &copy);
    return acl_end(&call);
}

aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                            aclrtMemcpyKind kind, aclrtStream stream)
{
    Call call = us_call_begin("aclrtMemcpy2dAsync");
    Copy copy = {dst, src, width, height, dpitch, spitch, SIDE_ANY, SIDE_ANY};
    prepare_rectangle(&call, &copy, kind);
    acl_queue_copy(&call, &copy, stream);
    return acl_end(&call);
}
