#include "ascend/nnopbase/nnopbase.h"
#include "ascend/common/status.h"

#include <stdlib.h>
#include <string.h>

void *created(Call *call, HandleKind kind, void *object)
{
    void *handle = object != NULL ? us_handle_create(kind, object) : NULL;
    if (handle == NULL) {
        free(object);
        us_refuse(call, "memory", "exhausted", ACLNN_ERR_INNER_NULLPTR, "no host memory for the object");
    }
    us_call_end(call);
    return handle;
}

void *require_object(Call *call, const char *parameter, const void *handle, HandleKind kind)
{
    us_require(call, handle != NULL, parameter, "null", ACLNN_ERR_PARAM_NULLPTR, "%s is NULL", parameter);
    if (call->status != 0) {
        return NULL;
    }
    void *object = us_handle_object(handle, kind);
    us_require(call, object != NULL, parameter, "handle", ACLNN_ERR_PARAM_INVALID,
               "%s (%p) is not alive: destroyed, or never created by this library", parameter, handle);
    return object;
}

void require_result(Call *call, const char *parameter, const void *result)
{
    us_require(call, result != NULL, parameter, "null", ACLNN_ERR_PARAM_NULLPTR, "%s is NULL", parameter);
}

void end_object(Call *call, const char *parameter, const void *handle, HandleKind kind)
{
    if (handle == NULL) {
        return;
    }
    us_require(call, us_handle_release(handle, kind), parameter, "handle", ACLNN_ERR_PARAM_INVALID,
               "%s (%p) is not alive: destroyed before, or never created by this library", parameter, handle);
}

/* The program's C++ operator new[], the form that does not throw where there is one: what it gives is right for
 * delete[] even when the program replaces the operators. Without a C++ run time in sight, delete[] comes down to
 * free. */
extern void *_ZnamRKSt9nothrow_t(size_t size, const void *nothrow) __attribute__((weak));
extern void *_Znam(size_t size) __attribute__((weak));

static void *new_array(size_t size)
{
    static const char nothrow = 0; /* an empty object: only its type counts */
    if (_ZnamRKSt9nothrow_t != NULL) {
        return _ZnamRKSt9nothrow_t(size, &nothrow);
    }
    return _Znam != NULL ? _Znam(size) : malloc(size > 0 ? size : 1);
}

void give_array(Call *call, int32_t count, const int64_t *numbers, int64_t **array, uint64_t *array_count)
{
    size_t size = (size_t)count * sizeof *numbers;
    /* A scalar gets an array of length 0, which delete[] takes as well. */
    int64_t *copy = new_array(size);
    us_require(call, copy != NULL, "memory", "exhausted", ACLNN_ERR_INNER_NULLPTR, "no host memory for the array");
    if (copy == NULL) {
        return;
    }
    memcpy(copy, numbers, size);
    *array = copy;
    *array_count = (uint64_t)count;
}
