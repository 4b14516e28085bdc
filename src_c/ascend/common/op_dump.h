/* The tensors of operators in files, or for the program's callback; their types and shapes (cann-runtime-3 16). */
#ifndef ASCEND_OP_DUMP_H
#define ASCEND_OP_DUMP_H

#include "ascend/common/executor.h"

/* Queues what the program wants of the operator's inputs (before it) or outputs (behind it). */
void op_dump_tensors(const Executor *plan, Stream *stream, bool outputs);
/* Remembers what the operator was called with. */
void op_dump_arguments(const Executor *plan, Platform *platform);

#endif
