/* Arrays of numbers that a C++ program takes over. */
#ifndef ASCEND_GIVEN_ARRAY_H
#define ASCEND_GIVEN_ARRAY_H

#include "report/report.h"

/* Copies `count` numbers into an array that the caller releases with C++ delete[]. */
void give_array(Call *call, int32_t count, const int64_t *numbers, int64_t **array, uint64_t *array_count);

#endif
