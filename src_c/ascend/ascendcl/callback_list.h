/* Functions of the program that the runtime calls when something happens (cann-runtime-3 6): a list for each occasion, in the
 * order of registration. They are called without any lock, in the thread where it happens, and may call the runtime. */
#ifndef ASCENDCL_CALLBACK_LIST_H
#define ASCENDCL_CALLBACK_LIST_H

#include "ascend/ascendcl/runtime.h"

typedef enum CallbackOccasion {
    CALLBACK_STREAM_STATE,
    CALLBACK_DEVICE_STATE,
    CALLBACK_TASK_ABORT,
    CALLBACK_EXCEPTION,
    CALLBACK_INIT,
    CALLBACK_FINALIZE,
    CALLBACK_SNAPSHOT,
    CALLBACK_OCCASIONS
} CallbackOccasion;

typedef void AnyFunction(void);
typedef struct Callback {
    char name[128];
    int32_t type; /* aclRegisterCallbackType, aclrtSnapShotStage */
    AnyFunction *function;
    void *arguments;
} Callback;

enum { CALLBACK_LIMIT = 64 };
struct CallbackLists {
    pthread_mutex_t lock;
    Callback entries[CALLBACK_OCCASIONS][CALLBACK_LIMIT];
    size_t counts[CALLBACK_OCCASIONS];
};

/* Which entry is meant: same name, type, and (unless it is NULL) function. */
bool callbacks_have(Runtime *runtime, CallbackOccasion occasion, const Callback *wanted);
/* Adds an entry, or replaces the arguments of the one that is meant; false: the list is full. */
bool callbacks_add(Runtime *runtime, CallbackOccasion occasion, const Callback *added);
void callbacks_remove(Runtime *runtime, CallbackOccasion occasion, const Callback *wanted);
/* What is registered now; the number. */
size_t callbacks_copy(Runtime *runtime, CallbackOccasion occasion, Callback copy[CALLBACK_LIMIT]);

#endif
