/* What is behind aclOpExecutor *: a planned operator call (aclnn-base 6). Everything it holds lies in memory of its own,
 * taken piece by piece while the call is planned and released at once. */
#ifndef ASCEND_EXECUTOR_H
#define ASCEND_EXECUTOR_H

#include "ascend/common/objects.h"
#include "launch/launch.h"
#include "ranks/room.h"

/* A tensor of the call, in the order of the header; also those that were not given, and each tensor of a list. */
typedef struct Operand {
    const char *name; /* the vendor's parameter name: a literal */
    bool output;
    int32_t input_number;     /* position of its parameter among those that are read, */
    int32_t output_number;    /* and among those that are written; -1: it is none of these */
    int32_t item;             /* position in the list; -1: not of a list */
    aclDataType dtype;
    aclFormat format;
    bool unbound;             /* its storage shape does not bound its view */
    bool temporary;           /* no tensor: what one step leaves for another (op_steps.h) */
    int64_t offset;           /* elements from the tensor's address to view.data */
    const Shape *storage;     /* while the first function runs, as the next */
    const int64_t *strides;   /* as they were given */
    const View *blocks;       /* not NULL: the kernel gets a copy of this view, row-major, which `view` shows, */
    const struct Operand *given; /* and this is what the program gave */
    const aclTensor *handle;
    struct Operand *next;
    View view; /* absent when the program gave NULL; last, because axes that no operator has are not even zeroed */
} Operand;

/* Where its parameter stands among those of a kind; -1: it is none of these. What is updated in place has both. */
static inline int32_t operand_number(const Operand *operand, bool outputs)
{
    return outputs ? operand->output_number : operand->input_number;
}

typedef struct ExecutorMemory ExecutorMemory;

enum { ROOM_LIMIT = 2 };
typedef struct Executor {
    const char *function;
    bool repeatable;
    ExecutorMemory *memory;
    Operand *operands, **operands_end;
    int32_t input_parameters, output_parameters;
    LaunchTask task;          /* kernel NULL: nothing to do */
    View **views;             /* the task's: operands' own, or others of this executor's memory */
    const Operand **view_operands; /* which operand each view shows; NULL: none */
    Room *rooms[ROOM_LIMIT]; /* where the call meets other ranks: held */
} Executor;

Executor *executor_create(const char *function); /* NULL: no memory */
void executor_release(void *executor);           /* NULL is allowed */

/* Memory that lives as long as the executor, aligned to 16, of which so many bytes are zeroed, or all. NULL: none is left. */
void *executor_take_zeroed(Executor *executor, size_t size, size_t zeroed);
void *executor_take(Executor *executor, size_t size);

#endif
