/* What communicators say of themselves. */
#include "ascend/hccl/communicator.h"

#include <string.h>

/* Rules of the communicator, and <parameter>/null. */
static const Communicator *require_answer(Call *call, HcclComm comm, const char *parameter, const void *answer)
{
    const Communicator *found = hccl_require_communicator(call, comm);
    us_require(call, answer != NULL, parameter, "null", HCCL_E_PTR, "%s is NULL", parameter);
    return call->status == 0 ? found : NULL;
}

HcclResult HcclGetRankSize(HcclComm comm, uint32_t *rankSize)
{
    Call call = us_call_begin("HcclGetRankSize");
    const Communicator *found = require_answer(&call, comm, "rankSize", rankSize);
    if (found != NULL) {
        *rankSize = (uint32_t)found->room->ranks;
    }
    return (HcclResult)us_call_end(&call);
}

HcclResult HcclGetRankId(HcclComm comm, uint32_t *rank)
{
    Call call = us_call_begin("HcclGetRankId");
    const Communicator *found = require_answer(&call, comm, "rank", rank);
    if (found != NULL) {
        *rank = (uint32_t)found->room->rank;
    }
    return (HcclResult)us_call_end(&call);
}

HcclResult HcclGetCommName(HcclComm comm, char *commName)
{
    Call call = us_call_begin("HcclGetCommName");
    const Communicator *found = require_answer(&call, comm, "commName", commName);
    if (found != NULL) {
        memcpy(commName, found->name, sizeof found->name);
    }
    return (HcclResult)us_call_end(&call);
}

HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult *asyncError)
{
    Call call = us_call_begin("HcclGetCommAsyncError");
    const Communicator *found = require_answer(&call, comm, "asyncError", asyncError);
    if (found != NULL) {
        *asyncError = us_room_has_failed(found->room, NULL) ? HCCL_E_REMOTE : HCCL_SUCCESS;
    }
    return (HcclResult)us_call_end(&call);
}

uint32_t HcclGetCommConfigCapability(void)
{
    return HCCL_COMM_CONFIG_RESERVED;
}

const char *HcclGetErrorString(HcclResult code)
{
    static const char *const texts[] = {
        "no error", "parameter error", "empty pointer", "memory error", "internal error", "feature not supported",
        "resource not found", "resource unavailable", "error of a system call", "timeout", "a file could not be opened",
        "error of a TCP connection", "error of a RoCE connection", "error of a TCP transfer", "error of a RoCE transfer",
        "error of a runtime call", "error of a driver call", "error of a profiling call", "error of a CCE call",
        "error of a network call", "try again", "error of a remote completion", "the communicator is suspended",
        "the operation could not be repeated", "out of memory",
    };
    const unsigned number = (unsigned)code;
    return number < sizeof texts / sizeof *texts ? texts[number]
           : code == HCCL_E_IN_STATUS            ? "the error is in the status"
                                                 : "unknown error";
}
