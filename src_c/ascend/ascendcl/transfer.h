/* What synchronous, queued, plain and rectangular copies and fills share. */
#ifndef ASCENDCL_TRANSFER_H
#define ASCENDCL_TRANSFER_H

#include "ascend/ascendcl/runtime.h"

/* Checks the arguments of a plain copy and describes it. */
void acl_prepare_copy(Call *call, Copy *copy, void *dst, size_t destMax, const void *src, size_t count,
                      aclrtMemcpyKind kind);

/* Both ends of a copy by its kind; false when the value is no kind. */
bool acl_sides_of_kind(aclrtMemcpyKind kind, Side *destination, Side *source);

/* Runs a described copy or fill now; refuses one that does not fit its memory. Rules: kind/direction, count/bounds,
 * memory/freed. Do nothing after a refusal. */
void acl_run_copy(Call *call, const Copy *copy);
void acl_run_fill(Call *call, const Fill *fill);

/* The same as work of the stream. A copy from or to pageable host memory has run when the call returns, after what the
 * stream still had to do (cann-runtime 9, aclrtMemcpyAsync). */
void acl_queue_copy(Call *call, const Copy *copy, aclrtStream stream);
void acl_queue_fill(Call *call, const Fill *fill, aclrtStream stream);

#endif
