/* Stand-in for the header of the same name of the Ascend CANN toolkit, written from its published interface: communicators,
 * whose functions libhcomm.so has too. */
#ifndef HCCL_COMM_H_
#define HCCL_COMM_H_

#include <acl/acl.h>
#include <string.h>

#include "hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* On one rank; the program brings rootInfo to the others. Of those that not all ranks have joined, a process's newest 256 can be
 * joined. */
extern HcclResult HcclGetRootInfo(HcclRootInfo *rootInfo);
/* Wait until all nRanks ranks (at most 256) have joined: HCCL_CONNECT_TIMEOUT, 120 to 7200 seconds, 120 if not set.
 * Several ranks may be of one device: the pages exclude that of HcclCommInitAll alone, and programs of many ranks so run where
 * there is one device. */
extern HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank, HcclComm *comm);
extern HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank,
                                             const HcclCommConfig *config, HcclComm *comm);
/* The same, of the ranks in a rank table, a JSON file whose devices have a "rank_id" each. All are on this machine. */
extern HcclResult HcclCommInitClusterInfo(const char *clusterInfo, uint32_t rank, HcclComm *comm);
extern HcclResult HcclCommInitClusterInfoConfig(const char *clusterInfo, uint32_t rank, HcclCommConfig *config,
                                                HcclComm *comm);
/* For devices of this process: a communicator each. */
extern HcclResult HcclCommInitAll(uint32_t ndev, int32_t *devices, HcclComm *comms);
/* For some ranks of a communicator, in ascending order. The others pass NULL and 0xFFFFFFFF as subCommId. */
extern HcclResult HcclCreateSubCommConfig(HcclComm *comm, uint32_t rankNum, uint32_t *rankIds, uint64_t subCommId,
                                          uint32_t subCommRankId, HcclCommConfig *config, HcclComm *subComm);
extern HcclResult HcclCommDestroy(HcclComm comm);
extern HcclResult HcclGetRankSize(HcclComm comm, uint32_t *rankSize);
extern HcclResult HcclGetRankId(HcclComm comm, uint32_t *rank);
/* commName: room for 128 bytes. */
extern HcclResult HcclGetCommName(HcclComm comm, char *commName);
/* HCCL_E_REMOTE once an operation has failed on this rank or another one. */
extern HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult *asyncError);
extern const char *HcclGetErrorString(HcclResult code);
/* A HcclCommConfigCapability below this number is there. */
extern uint32_t HcclGetCommConfigCapability(void);

/* HCCL_DETERMINISTIC: value 0 or 1. It is kept, and read back. */
extern HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue);
extern HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue *configValue);

/* What stands between them is done at the end: sends and receives at once, so that none waits for another one; joining ranks
 * wait for each other, so that one thread may join for several devices. */
extern HcclResult HcclGroupStart(void);
extern HcclResult HcclGroupEnd(void);

static inline void HcclCommConfigInit(HcclCommConfig *config)
{
    const uint64_t size = sizeof *config;
    memset(config, 0, sizeof *config);
    memcpy(config->reserved, &size, sizeof size);
    config->hcclBufferSize = 0xffffffff; /* not set, as below */
    config->hcclDeterministic = 0xffffffff;
    config->hcclRdmaTrafficClass = 0xffffffff;
    config->hcclRdmaServiceLevel = 0xffffffff;
    config->hcclExecTimeOut = -1;
}

/* Queued: the stream waits until all ranks have come so far. */
extern HcclResult HcclBarrier(HcclComm comm, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
