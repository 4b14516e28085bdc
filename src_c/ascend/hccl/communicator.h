/* What the files of this folder share. */
#ifndef HCCL_COMMUNICATOR_H
#define HCCL_COMMUNICATOR_H

#include "ascend/common/objects.h"
#include "ascend/common/platform.h"
#include "hccl/hccl.h"
#include "ranks/exchange.h"
#include "ranks/meeting.h"
#include "report/report.h"

/* A rank's place in a communicator. Behind a HcclComm. */
typedef struct Communicator {
    Room *room;
    Device *device;
    bool whole; /* not made of a part of another one */
    bool found; /* the room, since another rank tells how, in one of these two ways */
    Meeting *meeting;   /* until all ranks have joined: where this rank tells those of a rank table; or NULL */
    Room *announced_in; /* so long too: where this rank tells the others that are a part of that communicator; or NULL */
    uint64_t announced_as;
    char name[COMM_NAME_MAX_LENGTH];
} Communicator;

/* Rules comm/null and comm/dead. */
Communicator *hccl_require_communicator(Call *call, HcclComm comm);

/* ---- group.c: calls of this thread between HcclGroupStart and HcclGroupEnd ---- */

bool hccl_in_group(void);
/* Waits for the ranks of the room at the end; the communicator is the program's then. False: no memory. */
bool hccl_group_join(HcclComm comm);
/* A message that goes with the others of its communicator and stream at the end. False: no memory. */
bool hccl_group_message(HcclComm comm, aclrtStream stream, const HcclSendRecvItem *item);

/* ---- communicator.c ---- */

/* Until all ranks have joined; rules ranks/late, ranks/lost. Where that fails, or the call was refused before, the
 * communicator ends. */
void hccl_gather(Call *call, HcclComm comm);

/* ---- messages.c ---- */

/* Queues messages of one communicator and stream, which have been checked, as one operation. */
void hccl_exchange(Call *call, HcclComm comm, aclrtStream stream, const HcclSendRecvItem *items, uint32_t count);

#endif
