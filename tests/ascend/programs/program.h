/* What the programs of this folder share: they are written as a vendor's user writes them. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "acl/acl.h"

#include <stdio.h>
#include <stdlib.h>

#define OK(call)                                                                                \
    do {                                                                                        \
        aclError status_ = (call);                                                              \
        if (status_ != ACL_SUCCESS) {                                                           \
            const char *text_ = aclGetRecentErrMsg();                                           \
            fprintf(stderr, "%s:%d: %s gave %d: %s\n", __FILE__, __LINE__, #call, (int)status_, text_ ? text_ : ""); \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

static inline void *device_memory(size_t size)
{
    void *made = NULL;
    OK(aclrtMalloc(&made, size, ACL_MEM_MALLOC_HUGE_FIRST));
    return made;
}

static inline void upload(void *to, const void *from, size_t size)
{
    OK(aclrtMemcpy(to, size, from, size, ACL_MEMCPY_HOST_TO_DEVICE));
}

static inline void print_floats(const char *name, const void *from, size_t count)
{
    float values[16];
    OK(aclrtMemcpy(values, sizeof values, from, count * sizeof *values, ACL_MEMCPY_DEVICE_TO_HOST));
    printf("%s", name);
    for (size_t i = 0; i < count; i++) {
        printf(" %g", (double)values[i]);
    }
    printf("\n");
}

#endif
