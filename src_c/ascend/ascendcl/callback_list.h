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
    uint64_t told; /* which of Runtime.starts it was last called for; 0: none. CALLBACK_INIT */
} Callback;

enum { CALLBACK_LIMIT = 64 };
struct CallbackLists {
    pthread_mutex_t lock;
    Callback entries[CALLBACK_OCCASIONS][CALLBACK_LIMIT];
    size_t counts[CALLBACK_OCCASIONS];
};

/* Which entry is meant: the one of the same type that has the same name or, without a name, the same function. */

/* Adds an entry, or replaces the one that is meant; false: the list is full. */
bool callbacks_add(Runtime *runtime, CallbackOccasion occasion, const Callback *added);
/* Adds an entry unless there is one that is meant. */
typedef enum CallbackAdded { CALLBACK_IS_NEW, CALLBACK_IS_THERE, CALLBACKS_ARE_FULL } CallbackAdded;
CallbackAdded callbacks_add_new(Runtime *runtime, CallbackOccasion occasion, const Callback *added);
bool callbacks_remove(Runtime *runtime, CallbackOccasion occasion, const Callback *wanted); /* false: there is none */
/* What is registered now; the number. */
size_t callbacks_copy(Runtime *runtime, CallbackOccasion occasion, Callback copy[CALLBACK_LIMIT]);
/* Which of these, or only the one that is meant (NULL: all), the caller has to call: nobody else does at this start. */
size_t callbacks_claim(Runtime *runtime, CallbackOccasion occasion, const Callback *wanted, uint64_t start,
                       Callback copy[CALLBACK_LIMIT]);

#endif
