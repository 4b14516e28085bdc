/* Stand-in for the header of the same name of the Ascend CANN toolkit 8.5: what the PyTorch adapter takes from it.
 * Device code is not emulated: all of these refuse. */
#ifndef CCE_RUNTIME_KERNEL_H
#define CCE_RUNTIME_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t rtError_t; /* 0, or a code of acl/error_codes/rt_error_codes.h */
typedef void *rtStream_t;
typedef struct tagRtDevBinary rtDevBinary_t;
typedef struct tagRtSmDesc rtSmDesc_t;

rtError_t rtDevBinaryRegister(const rtDevBinary_t *bin, void **hdl);
rtError_t rtFunctionRegister(void *binHandle, const void *stubFunc, const char *stubName, const void *kernelInfo,
                             uint32_t funcMode);
rtError_t rtKernelLaunch(const void *stubFunc, uint32_t blockDim, void *args, uint32_t argsSize, rtSmDesc_t *smDesc,
                         rtStream_t stm);
rtError_t rtGetC2cCtrlAddr(uint64_t *addr, uint32_t *len);

#ifdef __cplusplus
}
#endif

#endif
