/* Memory that comes and goes with each call, of any size. The allocator gives large pieces back to the system each time, whose
 * pages are then cleared anew: a few of them are kept for the next call instead. */
#ifndef UNDERSTUDY_BLOCKS_H
#define UNDERSTUDY_BLOCKS_H

#include <stddef.h>

/* At least *size bytes; *size becomes what they are. NULL: no memory. */
void *us_block_take(size_t *size);
void us_block_give(void *block, size_t size);

#endif
