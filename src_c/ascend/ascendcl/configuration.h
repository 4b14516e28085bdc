/* The JSON file that aclInit may be given. */
#ifndef ASCENDCL_CONFIGURATION_H
#define ASCENDCL_CONFIGURATION_H

#include "report/report.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Configuration {
    uint64_t fingerprint;   /* of the file's text; 0 without a file */
    int32_t default_device; /* {"defaultDevice": {"default_device": "0"}}; -1: not given */
    char *text; /* the file's, for the caller to free; NULL without a file */
    size_t size;
    bool messages_of_process; /* {"err_msg_mode": "1"}: aclGetRecentErrMsg gives those of all threads */
} Configuration;

/* Reads and checks the file. path NULL or "": nothing to read. Keys that concern dumps, profiling and the like are
 * checked as JSON and otherwise ignored. */
void acl_read_configuration(Call *call, const char *path, Configuration *configuration);

#endif
