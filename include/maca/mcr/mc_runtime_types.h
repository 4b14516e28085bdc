/* Types and constants of the MACA runtime. */
#ifndef MACA_MC_RUNTIME_TYPES_H
#define MACA_MC_RUNTIME_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- results ----------------------------------------------------------------------------------------------------- */

typedef enum mcError_t {
    mcSuccess = 0,
    mcErrorInvalidValue = 1,
    mcErrorMemoryAllocation = 2,
    mcErrorInitializationError = 3,
    mcErrorDeinitialized = 4,
    mcErrorProfilerDisabled = 5,
    mcErrorProfilerNotInitialized = 6,
    mcErrorProfilerAlreadyStarted = 7,
    mcErrorProfilerAlreadyStopped = 8,
    mcErrorInvalidConfiguration = 9,
    mcErrorInvalidPitchValue = 12,
    mcErrorInvalidSymbol = 13,
    mcErrorInvalidHostPointer = 16,
    mcErrorInvalidDevicePointer = 17,
    mcErrorInvalidTexture = 18,
    mcErrorInvalidTextureBinding = 19,
    mcErrorInvalidChannelDescriptor = 20,
    mcErrorInvalidMemcpyDirection = 21,
    mcErrorAddressOfConstant = 22,
    mcErrorTextureFetchFailed = 23,
    mcErrorTextureNotBound = 24,
    mcErrorSynchronizationError = 25,
    mcErrorInvalidFilterSetting = 26,
    mcErrorInvalidNormSetting = 27,
    mcErrorMixedDeviceExecution = 28,
    mcErrorNotYetImplemented = 31,
    mcErrorMemoryValueTooLarge = 32,
    mcErrorStubLibrary = 34,
    mcErrorInsufficientDriver = 35,
    mcErrorCallRequiresNewerDriver = 36,
    mcErrorInvalidSurface = 37,
    mcErrorDuplicateVariableName = 43,
    mcErrorDuplicateTextureName = 44,
    mcErrorDuplicateSurfaceName = 45,
    mcErrorDevicesUnavailable = 46,
    mcErrorIncompatibleDriverContext = 49,
    mcErrorMissingConfiguration = 52,
    mcErrorPriorLaunchFailure = 53,
    mcErrorLaunchMaxDepthExceeded = 65,
    mcErrorLaunchFileScopedTex = 66,
    mcErrorLaunchFileScopedSurf = 67,
    mcErrorSyncDepthExceeded = 68,
    mcErrorLaunchPendingCountExceeded = 69,
    mcErrorInvalidDeviceFunction = 98,
    mcErrorNoDevice = 100,
    mcErrorInvalidDevice = 101,
    mcErrorDeviceNotLicensed = 102,
    mcErrorSoftwareValidityNotEstablished = 103,
    mcErrorStartupFailure = 127,
    mcErrorInvalidKernelImage = 200,
    mcErrorDeviceUninitialized = 201,
    mcErrorContextAlreadyCurrent = 202,
    mcErrorMapBufferObjectFailed = 205,
    mcErrorUnmapBufferObjectFailed = 206,
    mcErrorArrayIsMapped = 207,
    mcErrorAlreadyMapped = 208,
    mcErrorNoKernelImageForDevice = 209,
    mcErrorAlreadyAcquired = 210,
    mcErrorNotMapped = 211,
    mcErrorNotMappedAsArray = 212,
    mcErrorNotMappedAsPointer = 213,
    mcErrorECCUncorrectable = 214,
    mcErrorUnsupportedLimit = 215,
    mcErrorDeviceAlreadyInUse = 216,
    mcErrorPeerAccessUnsupported = 217,
    mcErrorInvalidKernelFile = 218,
    mcErrorInvalidGraphicsContext = 219,
    mcErrorMxlinkUncorrectable = 220,
    mcErrorJitCompilerNotFound = 221,
    mcErrorUnsupportedKernelVersion = 222,
    mcErrorJitCompilationDisabled = 223,
    mcErrorUnsupportedExecAffinity = 224,
    mcErrorInvalidSource = 300,
    mcErrorFileNotFound = 301,
    mcErrorSharedObjectSymbolNotFound = 302,
    mcErrorSharedObjectInitFailed = 303,
    mcErrorOperatingSystem = 304,
    mcErrorInvalidResourceHandle = 400,
    mcErrorIllegalState = 401,
    mcErrorSymbolNotFound = 500,
    mcErrorNotReady = 600,
    mcErrorIllegalAddress = 700,
    mcErrorLaunchOutOfResources = 701,
    mcErrorLaunchTimeout = 702,
    mcErrorLaunchIncompatibleTexturing = 703,
    mcErrorPeerAccessAlreadyEnabled = 704,
    mcErrorPeerAccessNotEnabled = 705,
    mcErrorSetOnActiveProcess = 708,
    mcErrorContextIsDestroyed = 709,
    mcErrorAssert = 710,
    mcErrorTooManyPeers = 711,
    mcErrorHostMemoryAlreadyRegistered = 712,
    mcErrorHostMemoryNotRegistered = 713,
    mcErrorHardwareStackError = 714,
    mcErrorIllegalInstruction = 715,
    mcErrorMisalignedAddress = 716,
    mcErrorInvalidAddressSpace = 717,
    mcErrorInvalidPc = 718,
    mcErrorLaunchFailure = 719,
    mcErrorCooperativeLaunchTooLarge = 720,
    mcErrorNotPermitted = 800,
    mcErrorNotSupported = 801,
    mcErrorSystemNotReady = 802,
    mcErrorSystemDriverMismatch = 803,
    mcErrorCompatNotSupportedOnDevice = 804,
    mcErrorMpsConnectionFailed = 805,
    mcErrorMpsRpcFailure = 806,
    mcErrorMpsServerNotReady = 807,
    mcErrorMpsMaxClientsReached = 808,
    mcErrorMpsMaxConnectionsReached = 809,
    mcErrorStreamCaptureUnsupported = 900,
    mcErrorStreamCaptureInvalidated = 901,
    mcErrorStreamCaptureMerge = 902,
    mcErrorStreamCaptureUnmatched = 903,
    mcErrorStreamCaptureUnjoined = 904,
    mcErrorStreamCaptureIsolation = 905,
    mcErrorStreamCaptureImplicit = 906,
    mcErrorCapturedEvent = 907,
    mcErrorStreamCaptureWrongThread = 908,
    mcErrorTimeout = 909,
    mcErrorGraphExecUpdateFailure = 910,
    mcErrorExternalDevice = 911,
    mcErrorGraphExecUpdateCommandDisMatch = 912,
    mcErrorGraphExecUpdateNodeTypeChanged = 913,
    mcErrorUnknown = 999,
    mcErrorDuplicateLoadModule = 1003,
    mcErrorModuleNotFound = 1004,
    mcErrorDuplicateDevice = 1005,
    mcErrorDumpBCfile = 1008,
    mcErrorRecompile = 1009,
    mcErrorApplyRelocation = 1010,
    mcErrorFileSaveFailed = 1011,
    mcErrorNoBitcodeForGPU = 1012,
    mcErrorInvalidKernel = 2000,
    mcErrorDeviceNotFound = 2001,
    mcErrorGetDeviceImageBase = 2002,
    mcErrorApiFailureBase = 10000,
    mcErrorDockerDriverUnload = 10001,
    mcErrorDriverWarmReset = 10002,
    mcErrorDriverMismatch = 10003,
    mcErrorInvalidParameter = 10004,
    mcErrorInvalidHandle = 10005,
    mcErrorInvalidUnit = 10006,
    mcErrorNoMemory = 10007,
    mcErrorBufferTooSmall = 10008,
    mcErrorNotAddNbg = 10009,
    mcErrorNotImplemented = 10010,
    mcErrorUnavailable = 10011,
    mcErrorOutOfResources = 10012,
    mcErrorKernelIoChannelNotOpened = 10013,
    mcErrorKernelCommunication = 10014,
    mcErrorKernelAlreadyOpened = 10015,
    mcErrormacaMMUUnvailable = 10016,
    mcErrorWaitFailure = 10017,
    mcErrorWaitTimeout = 10018,
    mcErrorInternal = 10019,
    mcErrorCommitFailure = 10020,
    mcErrorMemoryAlreadyRegistered = 10021,
    mcErrorMemoryNotRegistered = 10022,
    mcErrorMemoryAlignment = 10023,
    mcErrorInitialized = 10024,
    mcErrorInvalidContext = 10025,
    mcErrorContextAlreadyInUse = 10026,
    mcErrorNotFound = 10027,
    mcErrorContextIsDestroy = 10028,
    mcErrorNeedMoreInput = 10029,
    mcErrorDriverFunctionLevelReset = 10030,
    mcErrorBusy = 10031,
    mcErrorKernelExecTimeout = 10032,
    mcErrorMax
} mcError_t;

/* ---- handles ----------------------------------------------------------------------------------------------------- */

typedef struct MCstream_st *mcStream_t;
typedef struct MCevent_st *mcEvent_t;
typedef struct MCmemPoolHandle_st *mcMemPool_t;
typedef struct MCctx_st *mcCtx_t;
typedef struct MCmod_st *mcModule_t;
typedef struct MCfunc_st *mcFunction_t;
typedef struct MCgraph_st *mcGraph_t;
typedef struct MCgraphExec_st *mcGraphExec_t;
typedef struct MCgraphNode_st *mcGraphNode_t;

typedef int MCdevice; /* a device by its number */
typedef MCdevice mcDevice_t;
typedef void *mcDeviceptr_t;

/* The default stream, ordered with blocking streams (handle 0 means it too), and the calling thread's own stream. */
#define mcStreamLegacy ((mcStream_t)0x1)
#define mcStreamPerThread ((mcStream_t)0x2)

/* ---- flags ------------------------------------------------------------------------------------------------------- */

#define mcStreamDefault 0x00     /* ordered with the legacy default stream */
#define mcStreamNonBlocking 0x01 /* not ordered with it */

#define mcEventDefault 0x00
#define mcEventBlockingSync 0x01  /* waiting threads sleep */
#define mcEventDisableTiming 0x02 /* no time is taken */
#define mcEventInterprocess 0x04  /* needs mcEventDisableTiming */
#define mcEventRecordDefault 0x00
#define mcEventWaitDefault 0x00

#define mcMallocHostDefault 0x00
#define mcMallocHostPortable 0x01
#define mcMallocHostMapped 0x02
#define mcMallocHostWriteCombined 0x04

#define mcHostRegisterDefault 0x00
#define mcHostRegisterPortable 0x01
#define mcHostRegisterMapped 0x02
#define mcHostRegisterIoMemory 0x04

#define mcMemAttachGlobal 0x01 /* every stream of every device may use the memory */
#define mcMemAttachHost 0x02   /* no stream uses it at first */
#define mcMemAttachSingle 0x04

#define mcIpcMemLazyEnablePeerAccess 0x01

#define mcComputeModeDefault 0
#define mcComputeModeProhibited 2

/* ---- enumerations ------------------------------------------------------------------------------------------------ */

typedef enum mcStreamCaptureMode {
    mcStreamCaptureModeGlobal = 0,
    mcStreamCaptureModeThreadLocal = 1,
    mcStreamCaptureModeRelaxed = 2
} mcStreamCaptureMode;

typedef enum mcStreamCaptureStatus {
    mcStreamCaptureStatusNone = 0,
    mcStreamCaptureStatusActive = 1,
    mcStreamCaptureStatusInvalidated = 2
} mcStreamCaptureStatus;

typedef enum mcGraphExecUpdateResult {
    mcGraphExecUpdateSuccess = 0,
    mcGraphExecUpdateError = 1,
    mcGraphExecUpdateErrorTopologyChanged = 2
} mcGraphExecUpdateResult;

typedef enum mcMemcpyKind {
    mcMemcpyHostToHost = 0,
    mcMemcpyHostToDevice = 1,
    mcMemcpyDeviceToHost = 2,
    mcMemcpyDeviceToDevice = 3,
    mcMemcpyDefault = 4 /* the direction follows from the pointers */
} mcMemcpyKind;

typedef enum mcMemoryType {
    mcMemoryTypeUnregistered = 0, /* ordinary host memory */
    mcMemoryTypeHost = 1,         /* page-locked host memory */
    mcMemoryTypeDevice = 2,
    mcMemoryTypeManaged = 3,
    mcMemoryTypeArray = 4
} mcMemoryType;

typedef enum mcLimit_t {
    mcLimitStackSize = 0,
    mcLimitPrintfFifoSize = 1,
    mcLimitMallocHeapSize = 2,
    mcLimitDevRuntimeSyncDepth = 3,
    mcLimitDevRuntimePendingLaunchCount = 4,
    mcLimitMaxL2FetchGranularity = 5,
    mcLimitPersistingL2CacheSize = 6,
    mcLimitMax = 7
} mcLimit_t;

typedef enum mcDeviceAttribute_t {
    mcDeviceAttributeMaxThreadsPerBlock = 0,
    mcDeviceAttributeMaxBlockDimX,
    mcDeviceAttributeMaxBlockDimY,
    mcDeviceAttributeMaxBlockDimZ,
    mcDeviceAttributeMaxGridDimX,
    mcDeviceAttributeMaxGridDimY,
    mcDeviceAttributeMaxGridDimZ,
    mcDeviceAttributeMaxSharedMemoryPerBlock,
    mcDeviceAttributeTotalConstantMemory,
    mcDeviceAttributeWarpSize,
    mcDeviceAttributeWaveSize,
    mcDeviceAttributeMaxRegistersPerBlock,
    mcDeviceAttributeMaxRegistersPerMultiprocessor,
    mcDeviceAttributeClockRate,
    mcDeviceAttributeMemoryClockRate,
    mcDeviceAttributeMemoryBusWidth,
    mcDeviceAttributeMultiProcessorCount,
    mcDeviceAttributeComputeMode,
    mcDeviceAttributeL2CacheSize,
    mcDeviceAttributeMaxThreadsPerMultiProcessor,
    mcDevAttrMaxBlocksPerMultiprocessor,
    mcDeviceAttributeComputeCapabilityMajor,
    mcDeviceAttributeComputeCapabilityMinor,
    mcDeviceAttributeConcurrentKernels,
    mcDeviceAttributePciBusId,
    mcDeviceAttributePciDeviceId,
    mcDeviceAttributeMaxSharedMemoryPerMultiprocessor,
    mcDeviceAttributeIsMultiGpuBoard,
    mcDeviceAttributeIntegrated,
    mcDeviceAttributeCooperativeLaunch,
    mcDeviceAttributeCooperativeMultiDeviceLaunch,
    mcDeviceAttributeMaxTexture1DWidth,
    mcDeviceAttributeMaxTexture2DWidth,
    mcDeviceAttributeMaxTexture2DHeight,
    mcDeviceAttributeMaxTexture3DWidth,
    mcDeviceAttributeMaxTexture3DHeight,
    mcDeviceAttributeMaxTexture3DDepth,
    mcDeviceAttributeHdpMemFlushCntl,
    mcDeviceAttributeHdpRegFlushCntl,
    mcDeviceAttributeMaxPitch,
    mcDeviceAttributeTextureAlignment,
    mcDeviceAttributeTexturePitchAlignment,
    mcDeviceAttributeKernelExecTimeout,
    mcDeviceAttributeCanMapHostMemory,
    mcDeviceAttributeEccEnabled,
    mcDeviceAttributeCooperativeMultiDeviceUnmatchedFunc,
    mcDeviceAttributeCooperativeMultiDeviceUnmatchedGridDim,
    mcDeviceAttributeCooperativeMultiDeviceUnmatchedBlockDim,
    mcDeviceAttributeCooperativeMultiDeviceUnmatchedSharedMem,
    mcDeviceAttributeAsicRevision,
    mcDeviceAttributeManagedMemory,
    mcDeviceAttributeDirectManagedMemAccessFromHost,
    mcDeviceAttributeConcurrentManagedAccess,
    mcDeviceAttributePageableMemoryAccess,
    mcDeviceAttributePageableMemoryAccessUsesHostPageTables,
    mcDeviceAttributeVirtualMemoryManagementSupported,
    mcDeviceAttributeHandleTypePosixFileDescriptorSupported,
    mcDeviceAttributeHandleTypeWin32HandleSupported,
    mcDeviceAttributeGenericCompressionSupported,
    mcDeviceAttributeCanUseStreamWaitValue,
    mcDeviceAttributeCanUseStreamMemOps,
    mcDeviceAttributeCanUseStreamWaitWaitValueNor,
    mcDeviceAttributeCanFlushRemoteWrites,
    mcDeviceAttributeMemoryPoolsSupported,
    mcDeviceAttributeUnifiedAddressing,
    mcDeviceAttributeMaxAccessPolicyWindowSize,
    mcDeviceAttributeMaxPersistingL2CacheSize,
    mcDeviceAttributeGpuOverlap,
    mcDeviceAttributeAsyncEngineCount,
    mcDeviceAttributeMemoryPoolSupportedHandleTypes,
    mcDeviceAttributeTexture1DLinearWidth,
    mcDeviceAttributePciDomainId,
    mcDeviceAttributeTccDriver,
    mcDeviceAttributeUnknow,
    mcDeviceAttributeMax
} mcDeviceAttribute_t;

typedef enum mcMemAllocationType {
    mcMemAllocationTypeInvalid = 0,
    mcMemAllocationTypePinned = 1, /* stays on its device: the only type */
    mcMemAllocationTypeMax = 0x7fffffff
} mcMemAllocationType;

typedef enum mcMemAllocationHandleType {
    mcMemHandleTypeNone = 0,
    mcMemHandleTypePosixFileDescriptor = 1
} mcMemAllocationHandleType;

typedef enum mcMemLocationType {
    mcMemLocationTypeInvalid = 0,
    mcMemLocationTypeDevice = 1
} mcMemLocationType;

/* ---- structures -------------------------------------------------------------------------------------------------- */

typedef struct mcUuid_t {
    char bytes[16];
} mcUuid_t;

typedef struct mcDeviceArch_t {
    unsigned int reserved;
} mcDeviceArch_t;

/* Sizes in bytes, clocks in kHz, bus width in bits. */
typedef struct mcDeviceProp_t {
    char name[256];
    size_t totalGlobalMem;
    size_t sharedMemPerBlock;
    int warpSize;
    int waveSize;
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
    int clockRate;
    int memoryClockRate;
    int memoryBusWidth;
    int major;
    int minor;
    int multiProcessorCount;
    int l2CacheSize;
    int computeMode;
    int pciDomainID;
    int pciBusID;
    int pciDeviceID;
    int integrated;
    int unifiedAddressing;
    int managedMemory;
    mcDeviceArch_t arch;
} mcDeviceProp_t;

typedef struct mcPointerAttribute_t {
    __extension__ union { /* C99 has none without a name */
        mcMemoryType type;
        mcMemoryType memoryType; /* the older name */
    };
    int device;          /* -2 for ordinary host memory */
    void *devicePointer; /* the address kernels use, NULL when they cannot */
    void *hostPointer;   /* the address the host uses, NULL when it cannot */
    int isManaged;
} mcPointerAttribute_t;

typedef struct mcMemLocation {
    mcMemLocationType type;
    int id;
} mcMemLocation;

/* Clear the structure before filling it in. */
typedef struct mcMemPoolProps {
    mcMemAllocationType allocType;
    mcMemAllocationHandleType handleTypes;
    mcMemLocation location;
    void *win32SecurityAttributes;
    unsigned char reserved[64];
} mcMemPoolProps;

typedef struct mcIpcMemHandle_t {
    char reserved[64];
} mcIpcMemHandle_t;

typedef struct mcIpcEventHandle_t {
    char reserved[64];
} mcIpcEventHandle_t;

#ifdef __cplusplus
}
#endif

#endif
