/* Stand-in for the header of the same name of the Ascend CANN toolkit 8.5: what the PyTorch adapter takes from it. */
#ifndef TOOLCHAIN_PROF_API_H_
#define TOOLCHAIN_PROF_API_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct MsprofApi;
typedef int32_t (*ProfCommandHandle)(uint32_t type, void *data, uint32_t len);

/* There is no profiler to report to: these refuse with -1. */
int32_t MsprofRegisterCallback(uint32_t moduleId, ProfCommandHandle handle);
int32_t MsprofReportApi(uint32_t nonPersistantFlag, const struct MsprofApi *api);
int32_t MsprofReportCompactInfo(uint32_t nonPersistantFlag, void *const data, uint32_t length);
int32_t MsprofReportAdditionalInfo(uint32_t nonPersistantFlag, void *const data, uint32_t length);

/* A number for a text of length bytes: equal texts have equal numbers. 0: hashInfo is NULL. */
uint64_t MsprofGetHashId(const char *hashInfo, size_t length);
/* Nanoseconds of a clock that only runs forward. */
uint64_t MsprofSysCycleTime(void);

#ifdef __cplusplus
}
#endif

#endif
