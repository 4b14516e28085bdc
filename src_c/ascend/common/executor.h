/* What is behind aclOpExecutor *: a planned operator call (aclnn-base 6). */
#ifndef ASCEND_EXECUTOR_H
#define ASCEND_EXECUTOR_H

#include "ascend/common/objects.h"
#include "launch/launch.h"

/* A tensor parameter of the operator, in the order of its header; also those that were not given. */
typedef struct Operand {
    const char *name; /* the vendor's parameter name: a literal */
    bool output;
    aclDataType dtype;
    aclFormat format;
    int64_t offset;           /* elements from the tensor's address to view.data */
    int64_t storage_elements; /* -1: the storage shape is no shape */
    View view;                /* absent when the program gave NULL */
} Operand;

typedef struct Executor {
    bool repeatable;
    int32_t operand_count;
    Launch launch; /* its views stand for the operands, in the same order */
    Operand operands[LAUNCH_VIEW_LIMIT];
} Executor;

#endif
