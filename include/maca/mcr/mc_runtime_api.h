/* Functions of the MACA runtime. Library: libmcruntime.so.
 *
 * Every function returns mcSuccess or an error, and remembers an error for the calling thread (mcGetLastError). A fault
 * of queued work (mcErrorIllegalAddress …) comes out of the next call that touches the device and of every later one
 * until mcDeviceReset. A NULL or out-of-range argument gives mcErrorInvalidValue unless something else is said.
 * Stream 0 is the legacy default stream of the current device. */
#ifndef MACA_MC_RUNTIME_API_H
#define MACA_MC_RUNTIME_API_H

#include "mc_runtime_types.h"

/* Default arguments exist in C++ only. */
#ifdef __cplusplus
#define MC_DEFAULT(value) = value
extern "C" {
#else
#define MC_DEFAULT(value)
#endif

/* ---- devices: each host thread has a current device, at first device 0 ------------------------------------------- */

mcError_t mcInit(unsigned int flags); /* flags 0; the other functions initialise by themselves */
mcError_t mcGetDeviceCount(int *count); /* mcErrorNoDevice when there is none */
mcError_t mcSetDevice(int device);      /* mcErrorInvalidDevice when out of range */
mcError_t mcGetDevice(int *device);
mcError_t mcGetDeviceProperties(mcDeviceProp_t *prop, int device);
mcError_t mcDeviceGetAttribute(int *value, mcDeviceAttribute_t attr, int device);
mcError_t mcDeviceGetName(char *name, int len, MCdevice dev); /* cut to len - 1 characters */
mcError_t mcDeviceGetPCIBusId(char *busId, int len, int device); /* "0000:01:00.0": len >= 13 */
mcError_t mcDeviceGetByPCIBusId(int *device, const char *busId);
mcError_t mcDeviceSynchronize(void); /* waits for all streams of the device */
mcError_t mcDeviceReset(void);       /* ends all memory, streams and events of the device, and its faults */
mcError_t mcDeviceSetLimit(mcLimit_t limit, size_t value); /* limits concern device code only */
mcError_t mcDeviceCanAccessPeer(int *can, int device, int peer);
mcError_t mcDeviceEnablePeerAccess(int peer, unsigned int flags); /* flags 0 */
mcError_t mcRuntimeGetVersion(int *version); /* major * 1000 + minor * 10 + patch */
mcError_t mcDriverGetVersion(int *version);

/* ---- errors ------------------------------------------------------------------------------------------------------ */

mcError_t mcGetLastError(void);    /* the thread's last error, which is forgotten then */
mcError_t mcPeekAtLastError(void); /* the same without forgetting */
const char *mcGetErrorString(mcError_t e); /* never NULL */
const char *mcGetErrorName(mcError_t e);

/* ---- memory: sizes in bytes -------------------------------------------------------------------------------------- */

/* Device memory; not cleared; size 0 gives NULL. mcErrorMemoryAllocation when there is not enough. */
mcError_t mcMalloc(void **p, size_t size);
mcError_t mcFree(void *p); /* waits for the device's work; also frees managed memory; NULL is allowed */

/* Page-locked host memory that kernels can use too. */
mcError_t mcMallocHost(void **p, size_t size, unsigned int flags MC_DEFAULT(mcMallocHostDefault));
mcError_t mcFreeHost(void *p);

/* Memory that host and devices use at the same address. flags: mcMemAttachGlobal or mcMemAttachHost. */
mcError_t mcMallocManaged(void **p, size_t size, unsigned int flags MC_DEFAULT(mcMemAttachGlobal));

/* Copies. A kind that does not exist gives mcErrorInvalidMemcpyDirection; a pointer of the wrong side, a range that
 * leaves its allocation or is freed gives mcErrorInvalidValue. n 0 does nothing. */
mcError_t mcMemcpy(void *dst, const void *src, size_t n, mcMemcpyKind kind);
mcError_t mcMemcpyAsync(void *dst, const void *src, size_t n, mcMemcpyKind kind, mcStream_t s MC_DEFAULT(0));
mcError_t mcMemcpyPeerAsync(void *dst, int dstDev, const void *src, int srcDev, size_t n, mcStream_t s MC_DEFAULT(0));

/* height rows of width bytes, pitches from row to row (mcErrorInvalidPitchValue when smaller than width). */
mcError_t mcMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                     mcMemcpyKind kind);
mcError_t mcMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                          mcMemcpyKind kind, mcStream_t s MC_DEFAULT(0));

/* Sets n bytes of memory that the device can reach to the low byte of value. */
mcError_t mcMemset(void *p, int value, size_t n);
mcError_t mcMemsetAsync(void *p, int value, size_t n, mcStream_t s MC_DEFAULT(0));

mcError_t mcMemGetInfo(size_t *freeBytes, size_t *totalBytes); /* of the current device */

/* Page-locks existing host memory. mcErrorHostMemoryAlreadyRegistered, mcErrorHostMemoryNotRegistered. */
mcError_t mcHostRegister(void *p, size_t n, unsigned int flags);
mcError_t mcHostUnregister(void *p);
mcError_t mcHostGetDevicePointer(void **dev, void *host, unsigned int flags); /* flags 0 */
mcError_t mcPointerGetAttributes(mcPointerAttribute_t *attr, const void *p);

/* Stream-ordered device memory: valid for the stream's later work, freed behind its earlier work. */
mcError_t mcMallocAsync(void **p, size_t n, mcStream_t s);
mcError_t mcFreeAsync(void *p, mcStream_t s);
mcError_t mcMemPoolCreate(mcMemPool_t *pool, const mcMemPoolProps *props);
mcError_t mcMemPoolDestroy(mcMemPool_t pool); /* memory taken from it stays valid until freed */
mcError_t mcMallocFromPoolAsync(void **p, size_t n, mcMemPool_t pool, mcStream_t s);

/* ---- streams: a handle that is not alive gives mcErrorInvalidResourceHandle -------------------------------------- */

mcError_t mcStreamCreate(mcStream_t *s);
mcError_t mcStreamCreateWithFlags(mcStream_t *s, unsigned int flags); /* mcStreamDefault, mcStreamNonBlocking */
mcError_t mcStreamCreateWithPriority(mcStream_t *s, unsigned int flags, int priority); /* clamped to the range */
mcError_t mcDeviceGetStreamPriorityRange(int *least, int *greatest); /* lower numbers are more urgent; NULL allowed */
mcError_t mcStreamDestroy(mcStream_t s); /* its queued work is done first */
mcError_t mcStreamSynchronize(mcStream_t s);
mcError_t mcStreamQuery(mcStream_t s); /* mcSuccess or mcErrorNotReady */
mcError_t mcStreamWaitEvent(mcStream_t s, mcEvent_t e, unsigned int flags MC_DEFAULT(mcEventWaitDefault));
mcError_t mcLaunchHostFunc(mcStream_t s, void (*fn)(void *), void *userData); /* fn must not call the runtime */

/* ---- events: a handle that is not alive gives mcErrorInvalidResourceHandle --------------------------------------- */

mcError_t mcEventCreate(mcEvent_t *e);
mcError_t mcEventCreateWithFlags(mcEvent_t *e, unsigned int flags);
mcError_t mcEventRecord(mcEvent_t e, mcStream_t s MC_DEFAULT(0)); /* event and stream of one device */
mcError_t mcEventRecordWithFlags(mcEvent_t e, mcStream_t s, unsigned int flags);
mcError_t mcEventSynchronize(mcEvent_t e); /* returns at once when never recorded */
mcError_t mcEventQuery(mcEvent_t e);       /* mcSuccess or mcErrorNotReady */
mcError_t mcEventElapsedTime(float *ms, mcEvent_t start, mcEvent_t stop); /* milliseconds */
mcError_t mcEventDestroy(mcEvent_t e); /* does not wait */

/* ---- graphs: a captured stream's work is recorded instead of run; an event carries the capture to other streams,
 *      which must come back before its end ------------------------------------------------------------------------- */

mcError_t mcStreamBeginCapture(mcStream_t s, mcStreamCaptureMode mode);
mcError_t mcStreamEndCapture(mcStream_t s, mcGraph_t *graph);
mcError_t mcStreamIsCapturing(mcStream_t s, mcStreamCaptureStatus *status);
mcError_t mcThreadExchangeStreamCaptureMode(mcStreamCaptureMode *mode); /* the calling thread's; gives the old one */
mcError_t mcGraphDestroy(mcGraph_t graph);
mcError_t mcGraphClone(mcGraph_t *clone, mcGraph_t graph);
mcError_t mcGraphGetNodes(mcGraph_t graph, mcGraphNode_t *nodes, size_t *numNodes); /* nodes NULL: the number only */
/* errorNode, logBuffer: NULL allowed. */
mcError_t mcGraphInstantiate(mcGraphExec_t *graphExec, mcGraph_t graph, mcGraphNode_t *errorNode, char *logBuffer,
                             size_t bufferSize);
mcError_t mcGraphExecDestroy(mcGraphExec_t graphExec); /* launches that are queued still run */
mcError_t mcGraphLaunch(mcGraphExec_t graphExec, mcStream_t s);
/* Gives the executable graph the arguments of a graph with the same nodes; else mcErrorGraphExecUpdateFailure. */
mcError_t mcGraphExecUpdate(mcGraphExec_t graphExec, mcGraph_t graph, mcGraphNode_t *errorNode,
                            mcGraphExecUpdateResult *result);

/* ---- memory and events of several processes: a handle may be sent to another process as bytes --------------------- */

mcError_t mcIpcGetMemHandle(mcIpcMemHandle_t *handle, void *devPtr); /* of mcMalloc; freeing it ends the handle */
/* In another process; flags mcIpcMemLazyEnablePeerAccess. Opening a handle again gives the same address, to be closed too. */
mcError_t mcIpcOpenMemHandle(void **devPtr, mcIpcMemHandle_t handle, unsigned int flags);
mcError_t mcIpcCloseMemHandle(void *devPtr); /* waits for the device's work */
mcError_t mcIpcGetEventHandle(mcIpcEventHandle_t *handle, mcEvent_t event); /* made with mcEventInterprocess */
mcError_t mcIpcOpenEventHandle(mcEvent_t *event, mcIpcEventHandle_t handle);

#ifdef __cplusplus
}
#endif
#undef MC_DEFAULT

#include "mc_runtime_api_template_wrapper.h"

#endif
