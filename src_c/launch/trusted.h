/* Indices, lengths and masks: kernels look at them first and trust them then, so no output may change them. */
#ifndef UNDERSTUDY_TRUSTED_H
#define UNDERSTUDY_TRUSTED_H

#include "launch/launch.h"

/* Lists of more integers are of numbers to calculate with. */
enum { TRUSTED_LIMIT = 16 };

typedef struct Trusted {
    int32_t count;
    char *copies[TRUSTED_LIMIT];
} Trusted;

/* Opened views of integers and truths that are only read become views of a copy, where they share memory with one that
 * is written and is not the very same view; whatever is read beside them in that memory, too. False: no memory. */
bool us_trusted_begin(Trusted *trusted, int32_t count, View *views, const ViewAccess *access);
void us_trusted_end(Trusted *trusted); /* also after a failure */

#endif
