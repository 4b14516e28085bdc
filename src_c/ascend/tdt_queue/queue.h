/* What queues and routes know of each other. */
#ifndef ASCEND_TDT_QUEUE_H
#define ASCEND_TDT_QUEUE_H

#include "acl/acl_tdt_queue.h"
#include "ascend/tdt_channel/tdt.h"

/* Guards all queues and bound routes. */
void tdt_queues_lock(void);
void tdt_queues_unlock(void);

bool tdt_queue_exists(uint32_t id);   /* with the lock held */
void tdt_routes_forget(uint32_t id);  /* with the lock held: the queue ends */
/* The destination of route 0, 1 … from a queue; false: there are no more. Takes the lock. */
bool tdt_route_from(uint32_t source, size_t index, uint32_t *destination);

/* A value of a type from 0 on, each of which has its size: rules type/range, len/range. */
void tdt_require_size(Call *call, int type, const size_t *sizes, int types, size_t len);

#endif
