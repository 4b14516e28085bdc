#include "report/arrays.h"

#include "understudy/understudy.h"

static _Thread_local struct {
    const void *const *arrays;
    const uint64_t *bytes;
    int32_t count;
} expected;

void understudy_expect_arrays(const void *const *arrays, const uint64_t *bytes, int32_t count)
{
    expected.arrays = arrays;
    expected.bytes = bytes;
    expected.count = count;
}

bool us_expected_array(const void *address, size_t *left)
{
    *left = 0;
    for (int32_t i = 0; i < expected.count; i++) {
        const uintptr_t offset = (uintptr_t)address - (uintptr_t)expected.arrays[i];
        if (offset < expected.bytes[i] && expected.bytes[i] - offset > *left) { /* several may begin at one place */
            *left = (size_t)(expected.bytes[i] - offset);
        }
    }
    return *left > 0;
}
