/* The JSON files that aclInit and aclmdlSetDump may be given. */
#ifndef ASCENDCL_CONFIGURATION_H
#define ASCENDCL_CONFIGURATION_H

#include "ascend/common/dump.h"
#include "report/report.h"

#include <stdbool.h>
#include <stdint.h>

/* A value that somebody looks for: member `name` of the outermost object (`outer` is "") or of that member of it. */
typedef struct Wanted {
    const char *outer, *name;
    bool given;
    char value[DUMP_PATH_BYTES - 1]; /* a text without its quotes, anything else as it is written; cut */
} Wanted;

/* The file's text, for the caller to free; NULL after a refusal: rules configPath/missing, memory, size, json. */
char *acl_read_json(Call *call, const char *path, Wanted *wanted, size_t count, size_t *length);

/* What is dumped (dump.c). */
typedef struct DumpSettings {
    char path[DUMP_PATH_BYTES]; /* ends in '/'; "": none */
    uint32_t operators;         /* DUMP_… */
    int32_t scene;              /* acldumpType; 0: none */
    bool overflow;
} DumpSettings;
enum { DUMP_WANTED = 7 };
void acl_want_dump(Wanted wanted[DUMP_WANTED]);
/* Rules configPath/dump-path, dump-unwritable, dump-switch, dump-mode, dump-scene. */
void acl_require_dump(Call *call, const Wanted wanted[DUMP_WANTED], DumpSettings *settings);
/* Switches on what aclInit found. */
void acl_apply_dump(Platform *platform, const DumpSettings *settings);

typedef struct Configuration {
    uint64_t fingerprint;   /* of the file's text; 0 without a file */
    int32_t default_device; /* {"defaultDevice": {"default_device": "0"}}; -1: not given */
    char *text; /* the file's, for the caller to free; NULL without a file */
    size_t size;
    bool messages_of_process; /* {"err_msg_mode": "1"}: aclGetRecentErrMsg gives those of all threads */
    bool profiles;            /* {"profiler": {"switch": "on"}} */
    DumpSettings dump;
} Configuration;

/* Reads and checks the file. path NULL or "": nothing to read. Other keys are checked as JSON and otherwise ignored. */
void acl_read_configuration(Call *call, const char *path, Configuration *configuration);

#endif
