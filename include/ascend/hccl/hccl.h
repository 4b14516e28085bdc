/* Stand-in for the header of the same name of the Ascend CANN toolkit 8.5, written from its published interface.
 * Only the settings of the process: communication between devices is not emulated. */
#ifndef HCCL_H_
#define HCCL_H_

#include "hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* HCCL_DETERMINISTIC: value 0 or 1. It is kept, and read back. */
extern HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue);
extern HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue *configValue);

#ifdef __cplusplus
}
#endif

#endif
