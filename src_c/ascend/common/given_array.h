/* Arrays that a C++ program takes over. */
#ifndef ASCEND_GIVEN_ARRAY_H
#define ASCEND_GIVEN_ARRAY_H

#include "report/report.h"

/* Memory that the caller releases with C++ delete[]; NULL when there is none. */
void *new_array(size_t size);

/* Releases what no caller got. */
void delete_array(void *array);

/* Copies `count` numbers into an array that the caller releases with C++ delete[]. */
void give_array(Call *call, int32_t count, const int64_t *numbers, int64_t **array, uint64_t *array_count);

#endif
