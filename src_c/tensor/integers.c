#include "tensor/integers.h"

#include <stdbool.h>

/* Modulo 2^n a result does not depend on its sign, so it is written as an unsigned number. */
typedef void Conversion(void *restrict to, const void *restrict from, int64_t count);

#define IS_TRUE(number) ((number) != 0)
#define AS_IT_IS(number) (number)

#define PAIR(from, FROM, READ, to, TO, WRITE) \
    static void from##_to_##to(void *restrict out, const void *restrict in, int64_t count) \
    { \
        const FROM *numbers = in; \
        TO *results = out; \
        for (int64_t i = 0; i < count; i++) { \
            results[i] = (TO)WRITE(READ(numbers[i])); \
        } \
    }
#define TO_ALL(from, FROM, READ) \
    PAIR(from, FROM, READ, truth, uint8_t, IS_TRUE) \
    PAIR(from, FROM, READ, 1, uint8_t, AS_IT_IS) \
    PAIR(from, FROM, READ, 2, uint16_t, AS_IT_IS) \
    PAIR(from, FROM, READ, 4, uint32_t, AS_IT_IS) \
    PAIR(from, FROM, READ, 8, uint64_t, AS_IT_IS)

TO_ALL(truth, uint8_t, IS_TRUE)
TO_ALL(int8, int8_t, AS_IT_IS)
TO_ALL(uint8, uint8_t, AS_IT_IS)
TO_ALL(int16, int16_t, AS_IT_IS)
TO_ALL(uint16, uint16_t, AS_IT_IS)
TO_ALL(int32, int32_t, AS_IT_IS)
TO_ALL(uint32, uint32_t, AS_IT_IS)
TO_ALL(uint64, uint64_t, AS_IT_IS)

enum { TO_TRUTH, TO_1, TO_2, TO_4, TO_8, TARGETS };

#define TARGETS_OF(from) {from##_to_truth, from##_to_1, from##_to_2, from##_to_4, from##_to_8}

static Conversion *const conversions[DTYPE_COUNT][TARGETS] = {
    [DTYPE_BOOL] = TARGETS_OF(truth),    [DTYPE_INT8] = TARGETS_OF(int8),     [DTYPE_UINT8] = TARGETS_OF(uint8),
    [DTYPE_INT16] = TARGETS_OF(int16),   [DTYPE_UINT16] = TARGETS_OF(uint16), [DTYPE_INT32] = TARGETS_OF(int32),
    [DTYPE_UINT32] = TARGETS_OF(uint32), [DTYPE_INT64] = TARGETS_OF(uint64),      [DTYPE_UINT64] = TARGETS_OF(uint64),
};

static int target_of(DType dtype)
{
    switch (us_dtype_size(dtype)) {
    case 1: return dtype == DTYPE_BOOL ? TO_TRUTH : TO_1;
    case 2: return TO_2;
    case 4: return TO_4;
    default: return TO_8;
    }
}

bool us_convert_integers(void *to, DType to_dtype, const void *from, DType from_dtype, int64_t count)
{
    if (conversions[from_dtype][TO_TRUTH] == NULL || conversions[to_dtype][TO_TRUTH] == NULL) {
        return false;
    }
    conversions[from_dtype][target_of(to_dtype)](to, from, count);
    return true;
}
