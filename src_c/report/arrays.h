/* Host arrays whose lengths the caller has told (understudy_expect_arrays). */
#ifndef UNDERSTUDY_ARRAYS_H
#define UNDERSTUDY_ARRAYS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether an address lies in one of the calling thread's arrays, and the bytes from it to the array's end. */
bool us_expected_array(const void *address, size_t *left);

#endif
