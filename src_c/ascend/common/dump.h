/* What the program wants dumped (cann-runtime-3 16): state of the process that three libraries share, so it hangs on the
 * platform. */
#ifndef ASCEND_DUMP_H
#define ASCEND_DUMP_H

#include "acl/acl_dump.h"
#include "ascend/common/platform.h"

#include <pthread.h>

enum { DUMP_PATH_BYTES = 4096 };
enum { DUMP_INPUTS = 1, DUMP_OUTPUTS = 2 };

/* An operator's types and shapes, as they are written; each text once. */
typedef struct DumpedCall {
    struct DumpedCall *next;
    const char *function; /* a literal */
    char text[];
} DumpedCall;

typedef struct DumpState {
    pthread_mutex_t lock;
    bool from_init;   /* aclInit switched something on */
    bool initialised; /* aclmdlInitDump */
    char path[DUMP_PATH_BYTES]; /* of the configuration, ending in '/'; "": none */
    int32_t scene;              /* acldumpType of failures; 0: none */
    bool overflow;
    _Atomic uint32_t operators; /* DUMP_…: what of the operators that run is dumped; 0: nothing */
    int32_t (*callback)(const acldumpChunk *, int32_t); /* gets the data instead of files */
    _Atomic bool collects;                /* aclopStartDumpArgs */
    char arguments_path[DUMP_PATH_BYTES]; /* where those go, ending in '/' */
    DumpedCall *calls;
    _Atomic uint64_t dumps; /* so far: part of the files' names */
} DumpState;

/* NULL: nothing was ever asked for. The second makes it; NULL: no memory. */
DumpState *ascend_dump_known(Platform *platform);
DumpState *ascend_dump(Platform *platform);

#endif
