#include "ascend/common/given_array.h"

#include "ascend/common/status.h"

#include <stdlib.h>
#include <string.h>

/* The program's C++ operator new[], the form that does not throw where there is one: what it gives is right for
 * delete[] even when the program replaces the operators. Without a C++ run time in sight, delete[] comes down to
 * free. */
extern void *_ZnamRKSt9nothrow_t(size_t size, const void *nothrow) __attribute__((weak));
extern void *_Znam(size_t size) __attribute__((weak));
extern void _ZdaPv(void *array) __attribute__((weak));

void *new_array(size_t size)
{
    static const char nothrow = 0; /* an empty object: only its type counts */
    if (_ZnamRKSt9nothrow_t != NULL) {
        return _ZnamRKSt9nothrow_t(size, &nothrow);
    }
    return _Znam != NULL ? _Znam(size) : malloc(size > 0 ? size : 1);
}

void delete_array(void *array)
{
    if (_ZdaPv != NULL) {
        _ZdaPv(array);
    } else {
        free(array);
    }
}

void give_array(Call *call, int32_t count, const int64_t *numbers, int64_t **array, uint64_t *array_count)
{
    size_t size = (size_t)count * sizeof *numbers;
    /* A scalar gets an array of length 0, which delete[] takes as well. */
    int64_t *copy = new_array(size);
    us_require(call, copy != NULL, "memory", "exhausted", ACLNN_ERR_INNER_NULLPTR, "no host memory for the array");
    if (copy == NULL) {
        return;
    }
    memcpy(copy, numbers, size);
    *array = copy;
    *array_count = (uint64_t)count;
}
