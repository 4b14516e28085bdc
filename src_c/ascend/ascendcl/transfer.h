/* Checks that synchronous and queued copies and fills share. */
#ifndef ASCENDCL_TRANSFER_H
#define ASCENDCL_TRANSFER_H

#include "ascend/ascendcl/runtime.h"

/* Checks the arguments of a plain copy and describes it. */
void acl_prepare_copy(Call *call, Copy *copy, void *dst, size_t destMax, const void *src, size_t count,
                      aclrtMemcpyKind kind);

/* Both ends of a copy by its kind; false when the value is no kind. */
bool acl_sides_of_kind(aclrtMemcpyKind kind, Side *destination, Side *source);

/* Checks the arguments of a fill and describes it. */
void acl_prepare_fill(Call *call, Fill *fill, void *devPtr, size_t maxCount, int32_t value, size_t count);

/* Refuses a transfer that does not fit its memory. Rules: kind, range, freed. */
void acl_refuse_transfer(Call *call, CopyFault fault, const Explanation *why);

#endif
