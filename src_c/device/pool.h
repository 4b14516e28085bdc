/* Memory pools: memory that streams take and give back in their order.
 *
 * A pool keeps a part of the device's capacity: what its blocks need, and what they needed and it has not given up yet. The
 * bytes of a block are no other block's while it lives, so that nothing queued can disturb them, and end when a stream comes
 * to giving them back; what is kept is room on the device, not addresses, and a use after that is told as any other. */
#ifndef UNDERSTUDY_POOL_H
#define UNDERSTUDY_POOL_H

#include "device/device.h"

enum { HANDLE_POOL = 0x0b };

typedef struct Pool {
    Device *device;
    void *handle;
} Pool;

/* Numbers of a pool. What a stream gives back counts as used until it is asked to give it back, not until it does. */
typedef enum PoolNumber {
    POOL_FOLLOWS_EVENTS, /* 1 or 0: kept, nothing else */
    POOL_TAKES_WHAT_IS_OVER, /* 1 or 0: what another stream has given back may be used at once; else when the host has waited */
    POOL_WAITS_FOR_OTHERS, /* 1 or 0: where nothing else is left, a stream waits for what another one will give back */
    POOL_THRESHOLD, /* bytes that us_pools_settle leaves */
    POOL_RESERVED,
    POOL_RESERVED_HIGH, /* the highest since it was set (to 0) */
    POOL_USED,
    POOL_USED_HIGH,
    POOL_NUMBERS,
} PoolNumber;

Pool *us_pool_create(Device *device, size_t limit); /* bytes; 0: none. NULL: no memory */
bool us_pool_destroy(Pool *pool); /* its blocks live on until they are given back. False: was not alive */
Pool *us_pool_of_handle(const void *handle);
uint64_t us_pool_number(const Pool *pool, PoolNumber number);
void us_pool_set_number(Pool *pool, PoolNumber number, uint64_t value);

/* A block that work of the stream may use from now on. EXHAUSTED: the pool's limit or the device's capacity. */
MemoryStatus us_pool_allocate(Pool *pool, Stream *stream, size_t size, const char *function, void **address);
/* Queued: the block goes back to its pool. NOT_FOUND: not the first byte of a block of a pool, or on its way back already. */
MemoryStatus us_pool_free(Stream *stream, void *address, const char *function, Explanation *why);

void us_pool_trim(Pool *pool, size_t keep); /* gives up what is not used, but for so many bytes in all */
void us_pools_settle(Device *device);       /* the host has waited for the device's streams: the same, by the thresholds */

#endif
