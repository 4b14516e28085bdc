/* Stand-in for the header of the same name of the Ascend CANN toolkit 8.5, written from its published interface. */
#ifndef HCCL_TYPES_H_
#define HCCL_TYPES_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum HcclResult {
    HCCL_SUCCESS = 0,
    HCCL_E_PARA = 1,
    HCCL_E_PTR = 2,
    HCCL_E_NOT_SUPPORT = 5,
} HcclResult;

typedef enum HcclConfig {
    HCCL_DETERMINISTIC = 0, /* 0: reductions in any order, 1: always in the same */
    HCCL_ACCELERATOR = 1,
} HcclConfig;

union HcclConfigValue {
    int32_t value;
};

#ifdef __cplusplus
}
#else
typedef union HcclConfigValue HcclConfigValue;
#endif

#endif
