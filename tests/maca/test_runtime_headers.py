"""The runtime's headers as programs use them: include forms, languages, values (maca-runtime 1 to 3)."""

import pytest

from understudy import paths

from tests import native

C = ["gcc", "-x", "c", "-std=c11"]
CPP = ["g++", "-x", "c++", "-std=c++11"]
ROOT = paths.STACKS["maca"].root / "include"

# maca-runtime 3.1, without the prefix mcError.
ERRORS = """
0 Success; 1 InvalidValue; 2 MemoryAllocation; 3 InitializationError; 4 Deinitialized; 5 ProfilerDisabled;
6 ProfilerNotInitialized; 7 ProfilerAlreadyStarted; 8 ProfilerAlreadyStopped; 9 InvalidConfiguration;
12 InvalidPitchValue; 13 InvalidSymbol; 16 InvalidHostPointer; 17 InvalidDevicePointer; 18 InvalidTexture;
19 InvalidTextureBinding; 20 InvalidChannelDescriptor; 21 InvalidMemcpyDirection; 22 AddressOfConstant;
23 TextureFetchFailed; 24 TextureNotBound; 25 SynchronizationError; 26 InvalidFilterSetting;
27 InvalidNormSetting; 28 MixedDeviceExecution; 31 NotYetImplemented; 32 MemoryValueTooLarge; 34 StubLibrary;
35 InsufficientDriver; 36 CallRequiresNewerDriver; 37 InvalidSurface; 43 DuplicateVariableName;
44 DuplicateTextureName; 45 DuplicateSurfaceName; 46 DevicesUnavailable; 49 IncompatibleDriverContext;
52 MissingConfiguration; 53 PriorLaunchFailure; 65 LaunchMaxDepthExceeded; 66 LaunchFileScopedTex;
67 LaunchFileScopedSurf; 68 SyncDepthExceeded; 69 LaunchPendingCountExceeded; 98 InvalidDeviceFunction;
100 NoDevice; 101 InvalidDevice; 102 DeviceNotLicensed; 103 SoftwareValidityNotEstablished; 127 StartupFailure;
200 InvalidKernelImage; 201 DeviceUninitialized; 202 ContextAlreadyCurrent; 205 MapBufferObjectFailed;
206 UnmapBufferObjectFailed; 207 ArrayIsMapped; 208 AlreadyMapped; 209 NoKernelImageForDevice;
210 AlreadyAcquired; 211 NotMapped; 212 NotMappedAsArray; 213 NotMappedAsPointer; 214 ECCUncorrectable;
215 UnsupportedLimit; 216 DeviceAlreadyInUse; 217 PeerAccessUnsupported; 218 InvalidKernelFile;
219 InvalidGraphicsContext; 220 MxlinkUncorrectable; 221 JitCompilerNotFound; 222 UnsupportedKernelVersion;
223 JitCompilationDisabled; 224 UnsupportedExecAffinity; 300 InvalidSource; 301 FileNotFound;
302 SharedObjectSymbolNotFound; 303 SharedObjectInitFailed; 304 OperatingSystem; 400 InvalidResourceHandle;
401 IllegalState; 500 SymbolNotFound; 600 NotReady; 700 IllegalAddress; 701 LaunchOutOfResources;
702 LaunchTimeout; 703 LaunchIncompatibleTexturing; 704 PeerAccessAlreadyEnabled; 705 PeerAccessNotEnabled;
708 SetOnActiveProcess; 709 ContextIsDestroyed; 710 Assert; 711 TooManyPeers; 712 HostMemoryAlreadyRegistered;
713 HostMemoryNotRegistered; 714 HardwareStackError; 715 IllegalInstruction; 716 MisalignedAddress;
717 InvalidAddressSpace; 718 InvalidPc; 719 LaunchFailure; 720 CooperativeLaunchTooLarge; 800 NotPermitted;
801 NotSupported; 802 SystemNotReady; 803 SystemDriverMismatch; 804 CompatNotSupportedOnDevice;
805 MpsConnectionFailed; 806 MpsRpcFailure; 807 MpsServerNotReady; 808 MpsMaxClientsReached;
809 MpsMaxConnectionsReached; 900 StreamCaptureUnsupported; 901 StreamCaptureInvalidated;
902 StreamCaptureMerge; 903 StreamCaptureUnmatched; 904 StreamCaptureUnjoined; 905 StreamCaptureIsolation;
906 StreamCaptureImplicit; 907 CapturedEvent; 908 StreamCaptureWrongThread; 909 Timeout;
910 GraphExecUpdateFailure; 911 ExternalDevice; 912 GraphExecUpdateCommandDisMatch;
913 GraphExecUpdateNodeTypeChanged; 999 Unknown; 1003 DuplicateLoadModule; 1004 ModuleNotFound;
1005 DuplicateDevice; 1008 DumpBCfile; 1009 Recompile; 1010 ApplyRelocation; 1011 FileSaveFailed;
1012 NoBitcodeForGPU; 2000 InvalidKernel; 2001 DeviceNotFound; 2002 GetDeviceImageBase; 10000 ApiFailureBase;
10001 DockerDriverUnload; 10002 DriverWarmReset; 10003 DriverMismatch; 10004 InvalidParameter;
10005 InvalidHandle; 10006 InvalidUnit; 10007 NoMemory; 10008 BufferTooSmall; 10009 NotAddNbg;
10010 NotImplemented; 10011 Unavailable; 10012 OutOfResources; 10013 KernelIoChannelNotOpened;
10014 KernelCommunication; 10015 KernelAlreadyOpened; 10016 macaMMUUnvailable; 10017 WaitFailure;
10018 WaitTimeout; 10019 Internal; 10020 CommitFailure; 10021 MemoryAlreadyRegistered;
10022 MemoryNotRegistered; 10023 MemoryAlignment; 10024 Initialized; 10025 InvalidContext;
10026 ContextAlreadyInUse; 10027 NotFound; 10028 ContextIsDestroy; 10029 NeedMoreInput;
10030 DriverFunctionLevelReset; 10031 Busy; 10032 KernelExecTimeout
"""

# maca-runtime 3.4: the order is the value.
ATTRIBUTES = """
MaxThreadsPerBlock MaxBlockDimX MaxBlockDimY MaxBlockDimZ MaxGridDimX MaxGridDimY MaxGridDimZ MaxSharedMemoryPerBlock
TotalConstantMemory WarpSize WaveSize MaxRegistersPerBlock MaxRegistersPerMultiprocessor ClockRate MemoryClockRate
MemoryBusWidth MultiProcessorCount ComputeMode L2CacheSize MaxThreadsPerMultiProcessor - ComputeCapabilityMajor
ComputeCapabilityMinor ConcurrentKernels PciBusId PciDeviceId MaxSharedMemoryPerMultiprocessor IsMultiGpuBoard
Integrated
CooperativeLaunch CooperativeMultiDeviceLaunch MaxTexture1DWidth MaxTexture2DWidth MaxTexture2DHeight MaxTexture3DWidth
MaxTexture3DHeight MaxTexture3DDepth HdpMemFlushCntl HdpRegFlushCntl MaxPitch TextureAlignment TexturePitchAlignment
KernelExecTimeout CanMapHostMemory EccEnabled CooperativeMultiDeviceUnmatchedFunc CooperativeMultiDeviceUnmatchedGridDim
CooperativeMultiDeviceUnmatchedBlockDim CooperativeMultiDeviceUnmatchedSharedMem AsicRevision ManagedMemory
DirectManagedMemAccessFromHost ConcurrentManagedAccess PageableMemoryAccess PageableMemoryAccessUsesHostPageTables
VirtualMemoryManagementSupported HandleTypePosixFileDescriptorSupported HandleTypeWin32HandleSupported
GenericCompressionSupported CanUseStreamWaitValue CanUseStreamMemOps CanUseStreamWaitWaitValueNor CanFlushRemoteWrites
MemoryPoolsSupported UnifiedAddressing MaxAccessPolicyWindowSize MaxPersistingL2CacheSize GpuOverlap AsyncEngineCount
MemoryPoolSupportedHandleTypes Texture1DLinearWidth
"""

# maca-runtime 2, 3.2, 3.3.
CONSTANTS = {
    "mcMemcpyHostToHost": 0, "mcMemcpyHostToDevice": 1, "mcMemcpyDeviceToHost": 2, "mcMemcpyDeviceToDevice": 3,
    "mcMemcpyDefault": 4, "mcMemoryTypeUnregistered": 0, "mcMemoryTypeHost": 1, "mcMemoryTypeDevice": 2,
    "mcMemoryTypeManaged": 3, "mcStreamDefault": 0, "mcStreamNonBlocking": 1, "mcEventDefault": 0,
    "mcEventBlockingSync": 1, "mcEventDisableTiming": 2, "mcEventInterprocess": 4, "mcEventWaitDefault": 0,
    "mcEventRecordDefault": 0, "mcMallocHostDefault": 0, "mcMallocHostPortable": 1, "mcMallocHostMapped": 2,
    "mcMallocHostWriteCombined": 4, "mcHostRegisterDefault": 0, "mcHostRegisterPortable": 1, "mcHostRegisterMapped": 2,
    "mcHostRegisterIoMemory": 4, "mcMemAttachGlobal": 1, "mcMemAttachHost": 2, "mcMemAttachSingle": 4,
    "mcComputeModeDefault": 0, "mcComputeModeProhibited": 2, "mcStreamCaptureModeGlobal": 0,
    "mcStreamCaptureModeThreadLocal": 1, "mcStreamCaptureModeRelaxed": 2,
    "mcIpcMemLazyEnablePeerAccess": 1, "mcLimitStackSize": 0, "mcLimitPrintfFifoSize": 1, "mcLimitMallocHeapSize": 2,
    "mcLimitDevRuntimeSyncDepth": 3, "mcLimitDevRuntimePendingLaunchCount": 4, "mcLimitMaxL2FetchGranularity": 5,
    "mcLimitPersistingL2CacheSize": 6, "mcLimitMax": 7, "mcDevAttrMaxBlocksPerMultiprocessor": 20,
}  # fmt: skip


def compiles(language, source, folders):
    unit = native.work_folder() / "runtime-headers.txt"
    unit.write_text(source)
    native.check([*language, *native.STRICT, "-fsyntax-only", unit, *(f"-I{ROOT / folder}" for folder in folders)])


def expected_values():
    values = dict(CONSTANTS)
    for item in ERRORS.strip().replace("\n", " ").split(";"):
        code, name = item.split()
        values["mcSuccess" if name == "Success" else f"mcError{name}"] = int(code)
    names = ATTRIBUTES.split()
    values.update({f"mcDeviceAttribute{name}": i for i, name in enumerate(names) if name != "-"})
    return values


@pytest.mark.parametrize("language, check", [(C, "_Static_assert"), (CPP, "static_assert")], ids=["c", "c++"])
def test_values(language, check):
    asserts = "".join(f'{check}((long){name} == {value}, "{name}");\n' for name, value in expected_values().items())
    compiles(language, "#include <mc_runtime.h>\n" + asserts, ["mcr"])


@pytest.mark.parametrize("language", [C, CPP], ids=["c", "c++"])
@pytest.mark.parametrize("header, folders", [
    ("mc_runtime.h", ["mcr"]), ("mc_runtime_api.h", ["mcr"]), ("mc_runtime_types.h", ["mcr"]),
    ("mcr/mc_runtime.h", ["."]), ("mcr/mc_runtime_api.h", ["."]), ("mcr/mc_runtime_types.h", ["."]),
    ("mc_common.h", ["mcr"]), ("mcr/mc_common.h", ["."]),
    ("mcr/maca.h", ["."]), ("mcr/mc_runtime.h", [".", "mcr", "mcdnn"]),
])  # fmt: skip
def test_include_forms(header, folders, language):
    compiles(language, f"#include <{header}>\nmcStream_t stream; mcError_t error;\n", folders)


def test_headers_of_all_libraries_are_pedantic_c99():
    headers = ("mc_runtime.h", "mc_common.h", "mcdnn/mcdnn.h", "mcblas/mcblas.h", "mcblas/mcblasLt.h")
    compiles(["gcc", "-x", "c", "-std=c99"], "".join(f"#include <{header}>\n" for header in headers) + "int unit;\n",
             [".", "mcr"])  # fmt: skip


def test_the_guard_that_samples_test():
    for header in ("mc_runtime.h", "maca.h"):
        compiles(C, f"#include <{header}>\n#ifndef __INCLUDE_MC_RUNTIME_H__\n#error no guard\n#endif\n", ["mcr"])


C_PROGRAM = r"""
#include <mc_runtime.h>
int main(void)
{
    void *device = NULL;
    unsigned char *host = malloc(16);
    uint8_t small = 1;
    size_t size = 16;
    enum mcMemcpyKind kind = mcMemcpyHostToDevice;
    mcMemcpyKind same = kind;
    mcDeviceProp_t properties;
    mcPointerAttribute_t attribute;
    attribute.type = mcMemoryTypeHost;
    memset(host, small, size);
    if (mcMalloc(&device, size) != mcSuccess || mcMemcpy(device, host, size, same) != mcSuccess) {
        printf("%s\n", mcGetErrorString(mcGetLastError()));
    }
    if (mcMemcpyAsync(device, host, size, kind, mcStreamPerThread) != mcSuccess ||
        mcStreamSynchronize(mcStreamLegacy) != mcSuccess || mcGetDeviceProperties(&properties, 0) != mcSuccess) {
        return EXIT_FAILURE;
    }
    free(host);
    return attribute.memoryType == mcMemoryTypeHost ? mcFree(device) : 1;
}
"""

CPP_PROGRAM = r"""
#include <mc_runtime.h>
int main()
{
    float *typed = nullptr;
    void *plain = nullptr;
    mcEvent_t event;
    mcMemcpyKind kind = mcMemcpyKind::mcMemcpyDefault;
    mcError_t results[] = {
        mcMalloc(&typed, 16), mcMalloc((void **)&typed, 16), mcMalloc(&plain, 16),
        mcMallocHost(&typed, 16), mcMallocHost(&typed, 16, mcMallocHostMapped), mcMallocHost(&plain, 16),
        mcMallocManaged(&typed, 16), mcMallocManaged(&plain, 16), mcMallocManaged(&typed, 16, mcMemAttachHost),
        mcEventCreate(&event), mcEventCreate(&event, mcEventDisableTiming), mcEventRecord(event),
        mcStreamWaitEvent(0, event), mcMemcpyAsync(plain, typed, 16, kind), mcMemsetAsync(plain, 0, 16),
        mcMemcpyPeerAsync(plain, 0, plain, 0, 16), mcMemcpy2DAsync(plain, 4, typed, 4, 4, 4, kind)};
    int failed = 0;
    for (mcError_t result : results) {
        failed += result != mcSuccess;
    }
    printf("%d of %zu calls failed\n", failed, sizeof results / sizeof *results);
    return mcDeviceSynchronize() + failed;
}
"""


def test_a_c_program_needs_no_other_include():
    compiles(C, C_PROGRAM, ["mcr"])


def test_cpp_has_default_arguments_and_typed_forms():
    compiles(CPP, CPP_PROGRAM, ["mcr"])


@pytest.mark.parametrize("name, program, compiler", [("c_program.c", C_PROGRAM, "gcc"),
                                                     ("cpp_program.cpp", CPP_PROGRAM, "g++")])
def test_the_programs_run(name, program, compiler):
    source = native.work_folder() / name
    source.write_text(program)
    native.check([native.build_vendor(source, "maca", compiler=compiler)])


def test_c_has_no_default_arguments():
    unit = native.work_folder() / "no-defaults.c"
    unit.write_text("#include <mc_runtime.h>\nint f(mcEvent_t event) { return mcEventRecord(event); }\n")
    done = native.run(["gcc", "-fsyntax-only", unit, f"-I{ROOT / 'mcr'}"])
    assert done.returncode != 0 and "too few arguments" in done.stderr


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
@pytest.mark.parametrize("mode", ["async", "inline", "deferred"])
def test_the_example_prints_the_same_everywhere(compiler, mode):
    source = native.ROOT / "examples_c" / "maca" / "async_copy" / "async_copy.c"
    program = native.build_vendor(source, "maca", compiler=compiler, flags=tuple(native.STRICT))
    printed = native.check([program], {"UNDERSTUDY_STREAM": mode})
    pixels = [i % 100 for i in range(96 * 64)]
    for i in range(4):
        assert f"border sum[{i}] = {96 * 255}\n" in printed
        assert f"inside sum[{i}] = {sum(pixels[i * 1536 + 96 : (i + 1) * 1536])}\n" in printed
    for i in range(16):
        assert f"shared byte[{i}] = {2 if 4 <= i < 12 else 1}\n" in printed
    assert "errors = 1 1 0\n" in printed
