/* Shared by the files of this folder: making, checking and ending the objects behind handles. Every check is sticky. */
#ifndef ASCEND_NNOPBASE_H
#define ASCEND_NNOPBASE_H

#include "ascend/common/given_array.h"
#include "ascend/common/objects.h"
#include "report/report.h"

/* Ends a call that creates: a handle for `object`. NULL when the call was refused; refuses for lack of memory when
 * `object` is NULL without an earlier refusal, or when no handle is left (the object is freed then). */
void *created(Call *call, HandleKind kind, void *object);

/* The object behind a handle; refuses NULL with 161001 and anything that is not alive with 161002. */
void *require_object(Call *call, const char *parameter, const void *handle, HandleKind kind);

/* Refuses a NULL address of a result with 161001. */
void require_result(Call *call, const char *parameter, const void *result);

/* Ends and frees the object. NULL is allowed. */
void end_object(Call *call, const char *parameter, const void *handle, HandleKind kind);

#endif
