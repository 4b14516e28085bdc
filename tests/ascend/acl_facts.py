"""Facts of the CANN 8.5 runtime ABI (cann-runtime 3 to 6, 8, 9): what the headers are held against."""

# type: constants
ENUMERATIONS = """
aclDataType: ACL_DT_UNDEFINED=-1 ACL_FLOAT=0 ACL_FLOAT16=1 ACL_INT8=2 ACL_INT32=3 ACL_UINT8=4 ACL_INT16=6
  ACL_UINT16=7 ACL_UINT32=8 ACL_INT64=9 ACL_UINT64=10 ACL_DOUBLE=11 ACL_BOOL=12 ACL_STRING=13 ACL_COMPLEX64=16
  ACL_COMPLEX128=17 ACL_BF16=27 ACL_INT4=29 ACL_UINT1=30 ACL_COMPLEX32=33 ACL_HIFLOAT8=34 ACL_FLOAT8_E5M2=35
  ACL_FLOAT8_E4M3FN=36 ACL_FLOAT8_E8M0=37 ACL_FLOAT6_E3M2=38 ACL_FLOAT6_E2M3=39 ACL_FLOAT4_E2M1=40
  ACL_FLOAT4_E1M2=41
aclFormat: ACL_FORMAT_UNDEFINED=-1 ACL_FORMAT_NCHW=0 ACL_FORMAT_NHWC=1 ACL_FORMAT_ND=2 ACL_FORMAT_NC1HWC0=3
  ACL_FORMAT_FRACTAL_Z=4 ACL_FORMAT_NC1HWC0_C04=12 ACL_FORMAT_HWCN=16 ACL_FORMAT_NDHWC=27 ACL_FORMAT_FRACTAL_NZ=29
  ACL_FORMAT_NCDHW=30 ACL_FORMAT_NDC1HWC0=32 ACL_FRACTAL_Z_3D=33 ACL_FORMAT_NC=35 ACL_FORMAT_NCL=47
  ACL_FORMAT_FRACTAL_NZ_C0_16=50 ACL_FORMAT_FRACTAL_NZ_C0_32=51 ACL_FORMAT_FRACTAL_NZ_C0_2=52
  ACL_FORMAT_FRACTAL_NZ_C0_4=53 ACL_FORMAT_FRACTAL_NZ_C0_8=54
aclMemType: ACL_MEMTYPE_DEVICE=0 ACL_MEMTYPE_HOST=1 ACL_MEMTYPE_HOST_COMPILE_INDEPENDENT=2
aclLogLevel: ACL_DEBUG=0 ACL_INFO=1 ACL_WARNING=2 ACL_ERROR=3
aclSysParamOpt: ACL_OPT_DETERMINISTIC=0 ACL_OPT_ENABLE_DEBUG_KERNEL=1 ACL_OPT_STRONG_CONSISTENCY=2
aclCannAttr: ACL_CANN_ATTR_UNDEFINED=-1 ACL_CANN_ATTR_INF_NAN=0 ACL_CANN_ATTR_BF16=1 ACL_CANN_ATTR_JIT_COMPILE=2
aclDeviceInfo: ACL_DEVICE_INFO_UNDEFINED=-1 ACL_DEVICE_INFO_AI_CORE_NUM=0 ACL_DEVICE_INFO_VECTOR_CORE_NUM=1
  ACL_DEVICE_INFO_L2_SIZE=2
aclrtRunMode: ACL_DEVICE=0 ACL_HOST=1
aclrtTsId: ACL_TS_ID_AICORE=0 ACL_TS_ID_AIVECTOR=1 ACL_TS_ID_RESERVED=2
aclrtEventStatus: ACL_EVENT_STATUS_COMPLETE=0 ACL_EVENT_STATUS_NOT_READY=1 ACL_EVENT_STATUS_RESERVED=2
aclrtEventRecordedStatus: ACL_EVENT_RECORDED_STATUS_NOT_READY=0 ACL_EVENT_RECORDED_STATUS_COMPLETE=1
aclrtEventWaitStatus: ACL_EVENT_WAIT_STATUS_COMPLETE=0 ACL_EVENT_WAIT_STATUS_NOT_READY=1
  ACL_EVENT_WAIT_STATUS_RESERVED=0xFFFF
aclrtStreamStatus: ACL_STREAM_STATUS_COMPLETE=0 ACL_STREAM_STATUS_NOT_READY=1 ACL_STREAM_STATUS_RESERVED=0xFFFF
aclrtCallbackBlockType: ACL_CALLBACK_NO_BLOCK=0 ACL_CALLBACK_BLOCK=1
aclrtMemcpyKind: ACL_MEMCPY_HOST_TO_HOST=0 ACL_MEMCPY_HOST_TO_DEVICE=1 ACL_MEMCPY_DEVICE_TO_HOST=2
  ACL_MEMCPY_DEVICE_TO_DEVICE=3 ACL_MEMCPY_DEFAULT=4 ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE=5
  ACL_MEMCPY_INNER_DEVICE_TO_DEVICE=6 ACL_MEMCPY_INTER_DEVICE_TO_DEVICE=7
aclrtMemMallocPolicy: ACL_MEM_MALLOC_HUGE_FIRST=0 ACL_MEM_MALLOC_HUGE_ONLY=1 ACL_MEM_MALLOC_NORMAL_ONLY=2
  ACL_MEM_MALLOC_HUGE_FIRST_P2P=3 ACL_MEM_MALLOC_HUGE_ONLY_P2P=4 ACL_MEM_MALLOC_NORMAL_ONLY_P2P=5
  ACL_MEM_MALLOC_HUGE1G_ONLY=6 ACL_MEM_MALLOC_HUGE1G_ONLY_P2P=7 ACL_MEM_TYPE_LOW_BAND_WIDTH=0x100
  ACL_MEM_TYPE_HIGH_BAND_WIDTH=0x1000 ACL_MEM_ACCESS_USER_SPACE_READONLY=0x100000
aclrtMemAttr: ACL_DDR_MEM=0 ACL_HBM_MEM=1 ACL_DDR_MEM_HUGE=2 ACL_DDR_MEM_NORMAL=3 ACL_HBM_MEM_HUGE=4
  ACL_HBM_MEM_NORMAL=5 ACL_DDR_MEM_P2P_HUGE=6 ACL_DDR_MEM_P2P_NORMAL=7 ACL_HBM_MEM_P2P_HUGE=8
  ACL_HBM_MEM_P2P_NORMAL=9 ACL_HBM_MEM_HUGE1G=10 ACL_HBM_MEM_P2P_HUGE1G=11 ACL_MEM_NORMAL=12 ACL_MEM_HUGE=13
  ACL_MEM_HUGE1G=14 ACL_MEM_P2P_NORMAL=15 ACL_MEM_P2P_HUGE=16 ACL_MEM_P2P_HUGE1G=17
aclrtMemLocationType: ACL_MEM_LOCATION_TYPE_HOST=0 ACL_MEM_LOCATION_TYPE_DEVICE=1
  ACL_MEM_LOCATION_TYPE_UNREGISTERED=2 ACL_MEM_LOCATION_TYPE_HOST_NUMA=4
aclrtMemAllocationType: ACL_MEM_ALLOCATION_TYPE_PINNED=0
aclrtMemHandleType: ACL_MEM_HANDLE_TYPE_NONE=0
aclrtMemGranularityOptions: ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM=0 ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED=1
  ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF=0xFFFF
aclrtHostRegisterType: ACL_HOST_REGISTER_MAPPED=0
aclrtMallocAttrType: ACL_RT_MEM_ATTR_RSV=0 ACL_RT_MEM_ATTR_MODULE_ID=1 ACL_RT_MEM_ATTR_DEVICE_ID=2
  ACL_RT_MEM_ATTR_VA_FLAG=3
aclrtDeviceStatus: ACL_RT_DEVICE_STATUS_NORMAL=0 ACL_RT_DEVICE_STATUS_ABNORMAL=1 ACL_RT_DEVICE_STATUS_END=0xFFFF
aclrtFloatOverflowMode: ACL_RT_OVERFLOW_MODE_SATURATION=0 ACL_RT_OVERFLOW_MODE_INFNAN=1 ACL_RT_OVERFLOW_MODE_UNDEF=2
aclrtStreamConfigAttr: ACL_RT_STREAM_WORK_ADDR_PTR=0 ACL_RT_STREAM_WORK_SIZE=1 ACL_RT_STREAM_FLAG=2
  ACL_RT_STREAM_PRIORITY=3
aclrtLastErrLevel: ACL_RT_THREAD_LEVEL=0
aclrtGroupAttr: ACL_GROUP_AICORE_INT=0 ACL_GROUP_AIV_INT=1 ACL_GROUP_AIC_INT=2 ACL_GROUP_SDMANUM_INT=3
  ACL_GROUP_ASQNUM_INT=4 ACL_GROUP_GROUPID_INT=5
aclrtCmoType: ACL_RT_CMO_TYPE_PREFETCH=0 ACL_RT_CMO_TYPE_WRITEBACK=1 ACL_RT_CMO_TYPE_INVALID=2
  ACL_RT_CMO_TYPE_FLUSH=3
aclrtBinaryLoadOptionType: ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD=1 ACL_RT_BINARY_LOAD_OPT_LAZY_MAGIC=2
  ACL_RT_BINARY_LOAD_OPT_MAGIC=2 ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE=3
aclrtLaunchKernelAttrId: ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE=1 ACL_RT_LAUNCH_KERNEL_ATTR_LOCAL_MEMORY_SIZE=2
  ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE=3 ACL_RT_LAUNCH_KERNEL_ATTR_BLOCKDIM_OFFSET=4
  ACL_RT_LAUNCH_KERNEL_ATTR_BLOCK_TASK_PREFETCH=5 ACL_RT_LAUNCH_KERNEL_ATTR_DATA_DUMP=6
  ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT=7 ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US=8
aclCANNPackageName: ACL_PKG_NAME_CANN=0 ACL_PKG_NAME_RUNTIME=1 ACL_PKG_NAME_COMPILER=2 ACL_PKG_NAME_HCCL=3
  ACL_PKG_NAME_TOOLKIT=4 ACL_PKG_NAME_OPP=5 ACL_PKG_NAME_OPP_KERNEL=6 ACL_PKG_NAME_DRIVER=7
aclmdlRICaptureMode: ACL_MODEL_RI_CAPTURE_MODE_GLOBAL=0 ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL=1
  ACL_MODEL_RI_CAPTURE_MODE_RELAXED=2
aclmdlRICaptureStatus: ACL_MODEL_RI_CAPTURE_STATUS_NONE=0 ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE=1
  ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED=2
aclopEngineType: ACL_ENGINE_SYS=0 ACL_ENGINE_AICORE=1 ACL_ENGINE_VECTOR=2
aclrtMemPgType: NORMAL_PAGE_TYPE=0 HUGE_PAGE_TYPE=1 HUGE1G_PAGE_TYPE=2
aclrtMemType: HBM_TYPE=0 DDR_TYPE=1 P2P_HBM_TYPE=2 P2P_DDR_TYPE=3
aclrtIpcMemAttrType: ACL_RT_IPC_MEM_ATTR_ACCESS_LINK=0
aclrtMemSharedHandleType: ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT=1 ACL_MEM_SHARE_HANDLE_TYPE_FABRIC=2
aclrtErrorType: ACL_RT_NO_ERROR=0 ACL_RT_ERROR_MEMORY=1 ACL_RT_ERROR_L2=2 ACL_RT_ERROR_AICORE=3 ACL_RT_ERROR_LINK=4
  ACL_RT_ERROR_OTHERS=0xFFFF
aclrtAicoreErrorType: ACL_RT_AICORE_ERROR_UNKNOWN=0 ACL_RT_AICORE_ERROR_SW=1 ACL_RT_AICORE_ERROR_HW_LOCAL=2
aclrtEngineType: ACL_RT_ENGINE_TYPE_AIC=0 ACL_RT_ENGINE_TYPE_AIV=1
aclrtStreamAttr: ACL_STREAM_ATTR_FAILURE_MODE=1 ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK=2
  ACL_STREAM_ATTR_USER_CUSTOM_TAG=3 ACL_STREAM_ATTR_CACHE_OP_INFO=4
aclrtDevAttr: ACL_DEV_ATTR_AICPU_CORE_NUM=1 ACL_DEV_ATTR_AICORE_CORE_NUM=101 ACL_DEV_ATTR_CUBE_CORE_NUM=102
  ACL_DEV_ATTR_VECTOR_CORE_NUM=201 ACL_DEV_ATTR_WARP_SIZE=202 ACL_DEV_ATTR_MAX_THREAD_PER_VECTOR_CORE=203
  ACL_DEV_ATTR_LOCAL_MEM_PER_VECTOR_CORE=204 ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE=301 ACL_DEV_ATTR_L2_CACHE_SIZE=302
  ACL_DEV_ATTR_SMP_ID=401 ACL_DEV_ATTR_PHY_CHIP_ID=402 ACL_DEV_ATTR_SUPER_POD_DEVIDE_ID=403
  ACL_DEV_ATTR_SUPER_POD_SERVER_ID=404 ACL_DEV_ATTR_SUPER_POD_ID=405 ACL_DEV_ATTR_CUST_OP_PRIVILEGE=406
  ACL_DEV_ATTR_MAINBOARD_ID=407 ACL_DEV_ATTR_IS_VIRTUAL=501
aclrtDevFeatureType: ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV=1 ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV=21
aclrtReduceKind: ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM=10 ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX=11
  ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN=12 ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL=13
aclrtDevResLimitType: ACL_RT_DEV_RES_CUBE_CORE=0 ACL_RT_DEV_RES_VECTOR_CORE=1
aclrtCondition: ACL_RT_EQUAL=0 ACL_RT_NOT_EQUAL=1 ACL_RT_GREATER=2 ACL_RT_GREATER_OR_EQUAL=3 ACL_RT_LESS=4
  ACL_RT_LESS_OR_EQUAL=5
aclrtCompareDataType: ACL_RT_SWITCH_INT32=0 ACL_RT_SWITCH_INT64=1
aclrtRandomNumFuncType: ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK=0 ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS=1
  ACL_RT_RANDOM_NUM_FUNC_TYPE_NORMAL_DIS=2 ACL_RT_RANDOM_NUM_FUNC_TYPE_TRUNCATED_NORMAL_DIS=3
aclrtDeviceTaskAbortStage: ACL_RT_DEVICE_TASK_ABORT_PRE=0 ACL_RT_DEVICE_TASK_ABORT_POST=1
aclrtUpdateTaskAttrId: ACL_RT_UPDATE_RANDOM_TASK=1 ACL_RT_UPDATE_AIC_AIV_TASK=2
aclrtDeviceState: ACL_RT_DEVICE_STATE_SET_PRE=0 ACL_RT_DEVICE_STATE_SET_POST=1 ACL_RT_DEVICE_STATE_RESET_PRE=2
  ACL_RT_DEVICE_STATE_RESET_POST=3
aclrtStreamState: ACL_RT_STREAM_STATE_CREATE_POST=1 ACL_RT_STREAM_STATE_DESTROY_PRE=2
aclrtFuncAttribute: ACL_FUNC_ATTR_KERNEL_TYPE=1
aclrtKernelType: ACL_KERNEL_TYPE_AICORE=0 ACL_KERNEL_TYPE_CUBE=1 ACL_KERNEL_TYPE_VECTOR=2 ACL_KERNEL_TYPE_MIX=3
  ACL_KERNEL_TYPE_AICPU=100
aclrtCntNotifyRecordMode: ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE=0 ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE=1
  ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE=2 ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE=4
aclrtCntNotifyWaitMode: ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE=0 ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE=1
  ACL_RT_CNT_NOTIFY_WAIT_BIGGER_MODE=2 ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE=3
  ACL_RT_CNT_NOTIFY_WAIT_EQUAL_WITH_BITMASK_MODE=4
aclrtMemAccessFlags: ACL_RT_MEM_ACCESS_FLAGS_NONE=0 ACL_RT_MEM_ACCESS_FLAGS_READ=1
  ACL_RT_MEM_ACCESS_FLAGS_READWRITE=3
aclRegisterCallbackType: ACL_REG_TYPE_ACL_MODEL=0 ACL_REG_TYPE_ACL_OP_EXECUTOR=1 ACL_REG_TYPE_ACL_OP_CBLAS=2
  ACL_REG_TYPE_ACL_OP_COMPILER=3 ACL_REG_TYPE_ACL_TDT_CHANNEL=4 ACL_REG_TYPE_ACL_TDT_QUEUE=5 ACL_REG_TYPE_ACL_DVPP=6
  ACL_REG_TYPE_ACL_RETR=7 ACL_REG_TYPE_OTHER=0xFFFF
aclrtProcessState: ACL_RT_PROCESS_STATE_RUNNING=0 ACL_RT_PROCESS_STATE_LOCKED=1
"""

MACROS = """
ACL_STREAM_FAST_LAUNCH=0x1 ACL_STREAM_FAST_SYNC=0x2 ACL_STREAM_PERSISTENT=0x4 ACL_STREAM_HUGE=0x8
ACL_STREAM_CPU_SCHEDULE=0x10 ACL_STREAM_DEVICE_USE_ONLY=0x20 ACL_CONTINUE_ON_FAILURE=0x0 ACL_STOP_ON_FAILURE=0x1
ACL_EVENT_SYNC=0x1 ACL_EVENT_CAPTURE_STREAM_PROGRESS=0x2 ACL_EVENT_TIME_LINE=0x8 ACL_EVENT_DEVICE_USE_ONLY=0x10
ACL_EVENT_EXTERNAL=0x20 ACL_EVENT_IPC=0x40 ACL_STREAM_WAIT_VALUE_GEQ=0x0 ACL_STREAM_WAIT_VALUE_EQ=0x1
ACL_STREAM_WAIT_VALUE_AND=0x2 ACL_STREAM_WAIT_VALUE_NOR=0x3 ACL_NOTIFY_DEFAULT=0x0 ACL_NOTIFY_DEVICE_USE_ONLY=0x1
ACL_HOST_REG_MAPPED=0x2 ACL_HOST_REG_PINNED=0x10000000 ACL_PKG_VERSION_MAX_SIZE=128 ACL_PKG_VERSION_PARTS_MAX_SIZE=64
ACL_TENSOR_SHAPE_RANGE_NUM=2 ACL_TENSOR_VALUE_RANGE_NUM=2 ACL_UNKNOWN_RANK=0xFFFFFFFFFFFFFFFE UCE_INFO_RESERVED_SIZE=14
MAX_MEM_UCE_INFO_ARRAY_SIZE=128 ACL_IPC_EVENT_HANDLE_SIZE=64 ACL_RT_CMO_MAX_BARRIER_NUM=6 ACL_RT_MEM_UCE_INFO_MAX_NUM=20
ACL_MAJOR_VERSION=1 ACL_MINOR_VERSION=16 ACL_PATCH_VERSION=0
"""

# Names without the prefix ACL_ERROR_.
STATUS_CODES = """
100000 INVALID_PARAM, 100001 UNINITIALIZE, 100002 REPEAT_INITIALIZE, 100003 INVALID_FILE, 100004 WRITE_FILE, 100005
INVALID_FILE_SIZE, 100006 PARSE_FILE, 100007 FILE_MISSING_ATTR, 100008 FILE_ATTR_INVALID, 100009
INVALID_DUMP_CONFIG, 100010 INVALID_PROFILING_CONFIG, 100011 INVALID_MODEL_ID, 100012 DESERIALIZE_MODEL, 100013
PARSE_MODEL, 100014 READ_MODEL_FAILURE, 100015 MODEL_SIZE_INVALID, 100016 MODEL_MISSING_ATTR, 100017
MODEL_INPUT_NOT_MATCH, 100018 MODEL_OUTPUT_NOT_MATCH, 100019 MODEL_NOT_DYNAMIC, 100020 OP_TYPE_NOT_MATCH, 100021
OP_INPUT_NOT_MATCH, 100022 OP_OUTPUT_NOT_MATCH, 100023 OP_ATTR_NOT_MATCH, 100024 OP_NOT_FOUND, 100025
OP_LOAD_FAILED, 100026 UNSUPPORTED_DATA_TYPE, 100027 FORMAT_NOT_MATCH, 100028 BIN_SELECTOR_NOT_REGISTERED, 100029
KERNEL_NOT_FOUND, 100030 BIN_SELECTOR_ALREADY_REGISTERED, 100031 KERNEL_ALREADY_REGISTERED, 100032 INVALID_QUEUE_ID,
100033 REPEAT_SUBSCRIBE, 100034 STREAM_NOT_SUBSCRIBE, 100035 THREAD_NOT_SUBSCRIBE, 100036 WAIT_CALLBACK_TIMEOUT,
100037 REPEAT_FINALIZE, 100038 NOT_STATIC_AIPP, 100039 COMPILING_STUB_MODE, 100040 GROUP_NOT_SET, 100041
GROUP_NOT_CREATE, 100042 PROF_ALREADY_RUN, 100043 PROF_NOT_RUN, 100044 DUMP_ALREADY_RUN, 100045 DUMP_NOT_RUN, 148046
PROF_REPEAT_SUBSCRIBE, 148047 PROF_API_CONFLICT, 148048 INVALID_MAX_OPQUEUE_NUM_CONFIG, 148049 INVALID_OPP_PATH,
148050 OP_UNSUPPORTED_DYNAMIC, 148051 RELATIVE_RESOURCE_NOT_CLEARED, 148052 UNSUPPORTED_JPEG, 148053
INVALID_BUNDLE_MODEL_ID, 200000 BAD_ALLOC, 200001 API_NOT_SUPPORT, 200002 INVALID_DEVICE, 200003
MEMORY_ADDRESS_UNALIGNED, 200004 RESOURCE_NOT_MATCH, 200005 INVALID_RESOURCE_HANDLE, 200006 FEATURE_UNSUPPORTED,
200007 PROF_MODULES_UNSUPPORTED, 300000 STORAGE_OVER_LIMIT, 500000 INTERNAL_ERROR, 500001 FAILURE, 500002
GE_FAILURE, 500003 RT_FAILURE, 500004 DRV_FAILURE, 500005 PROFILING_FAILURE, 107000 RT_PARAM_INVALID, 107001
RT_INVALID_DEVICEID, 107002 RT_CONTEXT_NULL, 107003 RT_STREAM_CONTEXT, 107004 RT_MODEL_CONTEXT, 107005
RT_STREAM_MODEL, 107006 RT_EVENT_TIMESTAMP_INVALID, 107007 RT_EVENT_TIMESTAMP_REVERSAL, 107008 RT_ADDR_UNALIGNED,
107009 RT_FILE_OPEN, 107010 RT_FILE_WRITE, 107011 RT_STREAM_SUBSCRIBE, 107012 RT_THREAD_SUBSCRIBE, 107013
RT_GROUP_NOT_SET, 107014 RT_GROUP_NOT_CREATE, 107015 RT_STREAM_NO_CB_REG, 107016 RT_INVALID_MEMORY_TYPE, 107017
RT_INVALID_HANDLE, 107018 RT_INVALID_MALLOC_TYPE, 107019 RT_WAIT_TIMEOUT, 107020 RT_TASK_TIMEOUT, 107021
RT_SYSPARAMOPT_NOT_SET, 107022 RT_DEVICE_TASK_ABORT, 107023 RT_STREAM_ABORT, 107024 RT_CAPTURE_DEPENDENCY, 107025
RT_STREAM_UNJOINED, 107026 RT_MODEL_CAPTURED, 107027 RT_STREAM_CAPTURED, 107028 RT_EVENT_CAPTURED, 107029
RT_STREAM_NOT_CAPTURED, 107030 RT_CAPTURE_MODE_NOT_SUPPORT, 107031 RT_STREAM_CAPTURE_IMPLICIT, 107032
STREAM_CAPTURE_CONFLICT, 107033 STREAM_TASK_GROUP_STATUS, 107034 STREAM_TASK_GROUP_INTR, 107035 RT_TASK_ABORT_STOP,
107036 RT_STREAM_CAPTURE_UNMATCHED, 107037 RT_MODEL_RUNNING, 107038 RT_STREAM_CAPTURE_WRONG_THREAD, 207000
RT_FEATURE_NOT_SUPPORT, 207001 RT_MEMORY_ALLOCATION, 207002 RT_MEMORY_FREE, 207003 RT_AICORE_OVER_FLOW, 207004
RT_NO_DEVICE, 207005 RT_RESOURCE_ALLOC_FAIL, 207006 RT_NO_PERMISSION, 207007 RT_NO_EVENT_RESOURCE, 207008
RT_NO_STREAM_RESOURCE, 207009 RT_NO_NOTIFY_RESOURCE, 207010 RT_NO_MODEL_RESOURCE, 207011 RT_NO_CDQ_RESOURCE, 207012
RT_OVER_LIMIT, 207013 RT_QUEUE_EMPTY, 207014 RT_QUEUE_FULL, 207015 RT_REPEATED_INIT, 207016 RT_AIVEC_OVER_FLOW,
207017 RT_OVER_FLOW, 207018 RT_DEVICE_OOM, 207019 RT_FEATURE_NOT_SUPPORT_UPDATE_OP, 507000 RT_INTERNAL_ERROR, 507001
RT_TS_ERROR, 507002 RT_STREAM_TASK_FULL, 507003 RT_STREAM_TASK_EMPTY, 507004 RT_STREAM_NOT_COMPLETE, 507005
RT_END_OF_SEQUENCE, 507006 RT_EVENT_NOT_COMPLETE, 507007 RT_CONTEXT_RELEASE_ERROR, 507008 RT_SOC_VERSION, 507009
RT_TASK_TYPE_NOT_SUPPORT, 507010 RT_LOST_HEARTBEAT, 507011 RT_MODEL_EXECUTE, 507012 RT_REPORT_TIMEOUT, 507013
RT_SYS_DMA, 507014 RT_AICORE_TIMEOUT, 507015 RT_AICORE_EXCEPTION, 507016 RT_AICORE_TRAP_EXCEPTION, 507017
RT_AICPU_TIMEOUT, 507018 RT_AICPU_EXCEPTION, 507019 RT_AICPU_DATADUMP_RSP_ERR, 507020 RT_AICPU_MODEL_RSP_ERR, 507021
RT_PROFILING_ERROR, 507022 RT_IPC_ERROR, 507023 RT_MODEL_ABORT_NORMAL, 507024 RT_KERNEL_UNREGISTERING, 507025
RT_RINGBUFFER_NOT_INIT, 507026 RT_RINGBUFFER_NO_DATA, 507027 RT_KERNEL_LOOKUP, 507028 RT_KERNEL_DUPLICATE, 507029
RT_DEBUG_REGISTER_FAIL, 507030 RT_DEBUG_UNREGISTER_FAIL, 507031 RT_LABEL_CONTEXT, 507032 RT_PROGRAM_USE_OUT, 507033
RT_DEV_SETUP_ERROR, 507034 RT_VECTOR_CORE_TIMEOUT, 507035 RT_VECTOR_CORE_EXCEPTION, 507036
RT_VECTOR_CORE_TRAP_EXCEPTION, 507037 RT_CDQ_BATCH_ABNORMAL, 507038 RT_DIE_MODE_CHANGE_ERROR, 507039
RT_DIE_SET_ERROR, 507040 RT_INVALID_DIEID, 507041 RT_DIE_MODE_NOT_SET, 507042 RT_AICORE_TRAP_READ_OVERFLOW, 507043
RT_AICORE_TRAP_WRITE_OVERFLOW, 507044 RT_VECTOR_CORE_TRAP_READ_OVERFLOW, 507045 RT_VECTOR_CORE_TRAP_WRITE_OVERFLOW,
507046 RT_STREAM_SYNC_TIMEOUT, 507047 RT_EVENT_SYNC_TIMEOUT, 507048 RT_FFTS_PLUS_TIMEOUT, 507049
RT_FFTS_PLUS_EXCEPTION, 507050 RT_FFTS_PLUS_TRAP_EXCEPTION, 507051 RT_SEND_MSG, 507052 RT_COPY_DATA, 507053
RT_DEVICE_MEM_ERROR, 507054 RT_HBM_MULTI_BIT_ECC_ERROR, 507055 RT_SUSPECT_DEVICE_MEM_ERROR, 507056 RT_LINK_ERROR,
507057 RT_SUSPECT_REMOTE_ERROR, 507899 RT_DRV_INTERNAL_ERROR, 507900 RT_AICPU_INTERNAL_ERROR, 507901
RT_SOCKET_CLOSE, 507902 RT_AICPU_INFO_LOAD_RSP_ERR, 507903 RT_STREAM_CAPTURE_INVALIDATED, 507904
RT_COMM_OP_RETRY_FAIL, 507905 SNAPSHOT_LOCK_TIMEOUT, 507906 SNAPSHOT_LOCK_FAILED, 507907 SNAPSHOT_UNLOCK_FAILED,
507908 SNAPSHOT_BACKUP_FAILED, 507909 SNAPSHOT_RESTORE_FAILED, 507910 HOST_MEMORY_ALREADY_REGISTERED, 507911
HOST_MEMORY_NOT_REGISTERED, 145000 GE_PARAM_INVALID, 145001 GE_EXEC_NOT_INIT, 145002 GE_EXEC_MODEL_PATH_INVALID,
145003 GE_EXEC_MODEL_ID_INVALID, 145006 GE_EXEC_MODEL_DATA_SIZE_INVALID, 145007 GE_EXEC_MODEL_ADDR_INVALID, 145008
GE_EXEC_MODEL_QUEUE_ID_INVALID, 145009 GE_EXEC_LOAD_MODEL_REPEATED, 145011 GE_DYNAMIC_INPUT_ADDR_INVALID, 145012
GE_DYNAMIC_INPUT_LENGTH_INVALID, 145013 GE_DYNAMIC_BATCH_SIZE_INVALID, 145014 GE_AIPP_BATCH_EMPTY, 145015
GE_AIPP_NOT_EXIST, 145016 GE_AIPP_MODE_INVALID, 145017 GE_OP_TASK_TYPE_INVALID, 145018 GE_OP_KERNEL_TYPE_INVALID,
145019 GE_PLGMGR_PATH_INVALID, 145020 GE_FORMAT_INVALID, 145021 GE_SHAPE_INVALID, 145022 GE_DATATYPE_INVALID, 245000
GE_MEMORY_ALLOCATION, 245001 GE_MEMORY_OPERATE_FAILED, 245002 GE_DEVICE_MEMORY_OPERATE_FAILED, 345102 GE_SUBHEALTHY,
345103 GE_USER_RAISE_EXCEPTION, 345104 GE_DATA_NOT_ALIGNED, 545000 GE_INTERNAL_ERROR, 545001 GE_LOAD_MODEL, 545002
GE_EXEC_LOAD_MODEL_PARTITION_FAILED, 545003 GE_EXEC_LOAD_WEIGHT_PARTITION_FAILED, 545004
GE_EXEC_LOAD_TASK_PARTITION_FAILED, 545005 GE_EXEC_LOAD_KERNEL_PARTITION_FAILED, 545006 GE_EXEC_RELEASE_MODEL_DATA,
545007 GE_COMMAND_HANDLE, 545008 GE_GET_TENSOR_INFO, 545009 GE_UNLOAD_MODEL, 545601 GE_MODEL_EXECUTE_TIMEOUT, 545602
GE_REDEPLOYING
"""

# type size: offset field, …
LAYOUTS = """
aclrtMemLocation 8: 0 id, 4 type
aclrtPtrAttributes 28: 0 location, 8 pageSize, 12 rsv
aclrtPhysicalMemProp 32: 0 handleType, 4 allocationType, 8 memAttr, 12 location, 24 reserve
aclrtMallocAttrValue 8: 0 moduleId, 0 deviceId, 0 vaFlag, 0 rsv
aclrtMallocAttribute 12: 0 attr, 4 value
aclrtMallocConfig 16: 0 attrs, 8 numAttrs
aclrtStreamConfigHandle 32: 0 workptr, 8 workSize, 16 flag, 24 priority
aclrtUtilizationInfo 24: 0 cubeUtilization, 4 vectorUtilization, 8 aicpuUtilization, 12 memoryUtilization, 16
  utilizationExtend
aclrtMemUceInfo 128: 0 addr, 8 len, 16 reserved
aclrtBinaryLoadOptionValue 16: 0 isLazyLoad, 0 magic, 0 cpuKernelMode, 0 rsv
aclrtBinaryLoadOption 20: 0 type, 4 value
aclrtBinaryLoadOptions 16: 0 options, 8 numOpt
aclrtLaunchKernelAttr 20: 0 id, 4 value
aclrtLaunchKernelCfg 16: 0 attrs, 8 numAttrs
aclCANNPackageVersion 512: 0 version, 128 majorVersion, 192 minorVersion, 256 releaseVersion, 320 patchVersion, 384
  reserved
aclrtMemUsageInfo 112: 0 name, 32 curMemSize, 40 memPeakSize, 48 reserved
aclrtStreamAttrValue 16: 0 failureMode, 0 overflowSwitch, 0 userCustomTag, 0 cacheOpInfoSwitch, 0 reserve
aclrtUuid 16: 0 bytes
aclrtMemFabricHandle 128: 0 data
aclrtIpcEventHandle 64: 0 reserved
aclrtMemcpyBatchAttr 32: 0 dstLoc, 8 srcLoc, 16 rsv
aclrtMemAccessDesc 24: 0 flags, 4 location, 12 rsv
aclrtErrorInfo 2576: 0 tryRepair, 1 hasDetail, 2 reserved, 4 errorType, 8 detail
aclrtPlaceHolderInfo 8: 0 addrOffset, 4 dataOffset
aclrtServerPid 24: 0 sdid, 8 pid, 16 num
aclrtTimeoutUs 8: 0 timeoutLow, 4 timeoutHigh
"""

# Every function of tiers 1 and 2 but those that the server library only declares, and those of later versions.
SIGNATURES = """
aclError aclrtSetDevice(int32_t deviceId);
aclError aclrtCreateStream(aclrtStream *stream);
aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy);
aclError aclrtSynchronizeStream(aclrtStream stream);
aclError aclrtDestroyStream(aclrtStream stream);
aclError aclrtFree(void *devPtr);
aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind);
aclError aclInit(const char *configPath);
aclError aclrtResetDevice(int32_t deviceId);
aclError aclFinalize(void);
const char* aclGetRecentErrMsg(void);
aclFloat16 aclFloatToFloat16(float value);
aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count);
float aclFloat16ToFloat(aclFloat16 value);
const char* aclrtGetSocName(void);
aclError aclrtDestroyContext(aclrtContext context);
aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId);
size_t aclDataTypeSize(aclDataType dataType);
aclError aclrtMallocHost(void **hostPtr, size_t size);
aclError aclrtFreeHost(void *hostPtr);
aclError aclFinalizeReference(uint64_t *refCount);
aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion);
aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version);
aclError aclsysGetVersionStr(char *pkgName, char *versionStr);
aclError aclsysGetVersionNum(char *pkgName, int32_t *versionNum);
aclError aclrtGetRunMode(aclrtRunMode *runMode);
void aclAppLog(aclLogLevel logLevel, const char *func, const char *file, uint32_t line, const char *fmt, ...);
aclError aclrtPeekAtLastError(aclrtLastErrLevel level);
aclError aclrtGetLastError(aclrtLastErrLevel level);
aclError aclGetCannAttributeList(const aclCannAttr **cannAttrList, size_t *num);
aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t *value);
aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t *value);
aclDataBuffer* aclCreateDataBuffer(void *data, size_t size);
aclError aclDestroyDataBuffer(const aclDataBuffer *dataBuffer);
aclError aclUpdateDataBuffer(aclDataBuffer *dataBuffer, void *data, size_t size);
void* aclGetDataBufferAddr(const aclDataBuffer *dataBuffer);
size_t aclGetDataBufferSizeV2(const aclDataBuffer *dataBuffer);
uint32_t aclGetDataBufferSize(const aclDataBuffer *dataBuffer);
aclError aclrtResetDeviceForce(int32_t deviceId);
aclError aclrtGetDevice(int32_t *deviceId);
aclError aclrtGetDeviceCount(uint32_t *count);
aclError aclrtSetTsDevice(aclrtTsId tsId);
aclError aclrtSynchronizeDevice(void);
aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout);
aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus *deviceStatus);
aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo *utilizationInfo);
aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value);
aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags, int32_t *active);
aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId);
aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags);
aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId);
aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value);
aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t *value);
aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value);
aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t *value);
aclError aclrtSetCurrentContext(aclrtContext context);
aclError aclrtGetCurrentContext(aclrtContext *context);
aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream);
aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag);
aclError aclrtDestroyStreamForce(aclrtStream stream);
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);
aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status);
aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority);
aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags);
aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId);
aclError aclrtGetStreamAvailableNum(uint32_t *streamCount);
aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType, aclrtStreamAttrValue *value);
aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType, aclrtStreamAttrValue *value);
aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode);
aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag);
aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t *flag);
aclError aclrtStreamAbort(aclrtStream stream);
aclError aclrtActiveStream(aclrtStream activeStream, aclrtStream stream);
aclError aclrtCreateEvent(aclrtEvent *event);
aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag);
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag);
aclError aclrtDestroyEvent(aclrtEvent event);
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);
aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout);
aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status);
aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status);
aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status);
aclError aclrtSynchronizeEvent(aclrtEvent event);
aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout);
aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent);
aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp);
aclError aclrtGetEventId(aclrtEvent event, uint32_t *eventId);
aclError aclrtGetEventAvailNum(uint32_t *eventCount);
aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy);
aclError aclrtMallocCached(void **devPtr, size_t size, aclrtMemMallocPolicy policy);
aclError aclrtMallocWithCfg(void **devPtr, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg);
aclError aclrtMallocForTaskScheduler(void **devPtr, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg);
aclError aclrtFreeWithDevSync(void *devPtr);
aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size, aclrtMallocConfig *cfg);
aclError aclrtFreeHostWithDevSync(void *hostPtr);
aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total);
aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo *memUsageInfo, size_t inputNum, size_t *outputNum);
aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes);
aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr);
aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag);
aclError aclrtHostGetDevicePointer(void *pHost, void **pDevice, uint32_t flag);
aclError aclrtHostUnregister(void *ptr);
aclError aclrtMemFlush(void *devPtr, size_t size);
aclError aclrtMemInvalidate(void *devPtr, size_t size);
aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind, aclrtStream
    stream);
aclError aclrtMemcpyAsyncWithCondition(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
    aclrtStream stream);
aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream);
aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
    aclrtMemcpyKind kind);
aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
    aclrtMemcpyKind kind, aclrtStream stream);
aclError aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
    aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs, size_t *failIndex);
aclError aclrtMemcpyBatchAsync(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
    aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs, size_t *failIndex, aclrtStream stream);
aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment, void *expectPtr, uint64_t flags);
aclError aclrtReleaseMemAddress(void *virPtr);
aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size, const aclrtPhysicalMemProp *prop, uint64_t
    flags);
aclError aclrtFreePhysical(aclrtDrvMemHandle handle);
aclError aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags);
aclError aclrtUnmapMem(void *virPtr);
aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop, aclrtMemGranularityOptions option, size_t
    *granularity);
aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType, uint64_t flags,
    uint64_t *shareableHandle);
aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId, aclrtDrvMemHandle *handle);
aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t *pid, size_t pidNum);
aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream);
aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType, aclrtStream stream);
aclError aclrtProcessReport(int32_t timeout);
aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream);
aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args);
aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback);
aclError aclrtSetOpWaitTimeout(uint32_t timeout);
aclError aclrtSetOpExecuteTimeOut(uint32_t timeout);
aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout);
aclError aclrtGetOverflowStatus(void *outputAddr, size_t outputSize, aclrtStream stream);
aclError aclrtResetOverflowStatus(aclrtStream stream);
aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode);
aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode);
"""
