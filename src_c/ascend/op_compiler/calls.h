/* Operators by name that are one aclnn function: its arguments, and the two calls. */
#ifndef ASCEND_OP_COMPILER_CALLS_H
#define ASCEND_OP_COMPILER_CALLS_H

#include "ascend/op_compiler/named.h"

/* What the call makes ends with it. */
enum { CALL_OBJECTS = 16 };
typedef void EndObject(void *object);
typedef struct CallObject {
    void *object;
    EndObject *end;
} CallObject;

typedef struct AclnnCall {
    Named *named;
    aclFormat format; /* of the tensors; 0 is NCHW, which most functions take as ND */
    CallObject objects[CALL_OBJECTS];
    int object_count;
    uint64_t workspace_size;
    aclOpExecutor *executor;
} AclnnCall;

static inline bool call_refused(const AclnnCall *call)
{
    return call->named->call.status != 0;
}

/* Operands as they are described; an input that is absent, or has no place, is NULL. */
aclTensor *call_input(AclnnCall *call, int32_t index);
aclTensor *call_output(AclnnCall *call, int32_t index);
/* A view of the operand's elements, `offset` from its first one on; shape/reach: it leaves them. */
aclTensor *call_view(AclnnCall *call, bool input, int32_t index, const View *view, int64_t offset);
aclIntArray *call_array(AclnnCall *call, const int64_t *values, uint64_t count);
aclBoolArray *call_bools(AclnnCall *call, const bool *values, uint64_t count);
aclScalar *call_float(AclnnCall *call, float value);
aclScalar *call_scalar(AclnnCall *call, int32_t index); /* of an input that the host knows: its first element */

/* Runs what was planned, or refuses as its first function did (opType/refused, 500002), and ends the objects. */
void call_end(AclnnCall *call, aclnnStatus planned, AclnnRun *run);

/* The whole call: its arguments are not looked at where something has been refused before. */
#define CALL_ACLNN(made, function, ...) \
    call_end((made), call_refused(made) ? 0 \
                     : function##GetWorkspaceSize(__VA_ARGS__, &(made)->workspace_size, &(made)->executor), function)

/* ---- host values of inputs ---- */

/* int32 or int64 elements of an input that the host knows; their count. inputs/host: it lies in device memory. */
int32_t call_integers(Named *named, int32_t index, int64_t *values, int32_t limit);
/* A real number: an input without dimensions. */
double call_number(Named *named, int32_t index);

#endif
