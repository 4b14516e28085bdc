/* What a device is: properties, attributes, name, place on the bus (maca-runtime 2.1, 3.4). */
#include "maca/mcruntime/product.h"
#include "maca/mcruntime/runtime.h"

#include <stdio.h>
#include <string.h>

/* Bytes of memory that the device has here: its profile, capped by the host's memory. */
static size_t device_memory(int ordinal)
{
    Device *device = us_device(maca_platform(), ordinal);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    if (device != NULL) {
        us_memory_info(device, &free_bytes, &total_bytes);
    }
    return total_bytes;
}

mcError_t mcGetDeviceProperties(mcDeviceProp_t *prop, int device)
{
    Call call = us_call_begin("mcGetDeviceProperties");
    us_require(&call, prop != NULL, "prop", "null", mcErrorInvalidValue, "prop must not be NULL");
    require_ordinal(&call, device);
    if (call.status == 0) {
        *prop = (mcDeviceProp_t){
            .totalGlobalMem = device_memory(device),
            .sharedMemPerBlock = PRODUCT_SHARED_MEMORY,
            .warpSize = PRODUCT_WAVE_SIZE,
            .waveSize = PRODUCT_WAVE_SIZE,
            .maxThreadsPerBlock = PRODUCT_MAX_THREADS,
            .maxThreadsDim = {PRODUCT_MAX_THREADS, PRODUCT_MAX_THREADS, PRODUCT_MAX_THREADS},
            .maxGridSize = {PRODUCT_MAX_GRID, PRODUCT_MAX_GRID_YZ, PRODUCT_MAX_GRID_YZ},
            .clockRate = PRODUCT_CLOCK_KHZ,
            .memoryClockRate = PRODUCT_MEMORY_CLOCK_KHZ,
            .memoryBusWidth = PRODUCT_MEMORY_BUS_BITS,
            .major = PRODUCT_MAJOR,
            .minor = PRODUCT_MINOR,
            .multiProcessorCount = PRODUCT_PROCESSORS,
            .l2CacheSize = PRODUCT_L2_CACHE,
            .computeMode = mcComputeModeDefault,
            .pciBusID = product_bus(device),
            .unifiedAddressing = 1,
            .managedMemory = 1,
        };
        memcpy(prop->name, product_name, sizeof product_name);
    }
    return runtime_end(&call);
}

/* Attributes whose value is not 0. Textures, cooperative launches and stream memory operations do not exist here. */
typedef struct AttributeValue {
    mcDeviceAttribute_t attribute;
    int value;
} AttributeValue;

static const AttributeValue attribute_values[] = {
    {mcDeviceAttributeMaxThreadsPerBlock, PRODUCT_MAX_THREADS},
    {mcDeviceAttributeMaxBlockDimX, PRODUCT_MAX_THREADS},
    {mcDeviceAttributeMaxBlockDimY, PRODUCT_MAX_THREADS},
    {mcDeviceAttributeMaxBlockDimZ, PRODUCT_MAX_THREADS},
    {mcDeviceAttributeMaxGridDimX, PRODUCT_MAX_GRID},
    {mcDeviceAttributeMaxGridDimY, PRODUCT_MAX_GRID_YZ},
    {mcDeviceAttributeMaxGridDimZ, PRODUCT_MAX_GRID_YZ},
    {mcDeviceAttributeMaxSharedMemoryPerBlock, PRODUCT_SHARED_MEMORY},
    {mcDeviceAttributeTotalConstantMemory, PRODUCT_CONSTANT_MEMORY},
    {mcDeviceAttributeWarpSize, PRODUCT_WAVE_SIZE},
    {mcDeviceAttributeWaveSize, PRODUCT_WAVE_SIZE},
    {mcDeviceAttributeMaxRegistersPerBlock, PRODUCT_REGISTERS},
    {mcDeviceAttributeMaxRegistersPerMultiprocessor, PRODUCT_REGISTERS},
    {mcDeviceAttributeClockRate, PRODUCT_CLOCK_KHZ},
    {mcDeviceAttributeMemoryClockRate, PRODUCT_MEMORY_CLOCK_KHZ},
    {mcDeviceAttributeMemoryBusWidth, PRODUCT_MEMORY_BUS_BITS},
    {mcDeviceAttributeMultiProcessorCount, PRODUCT_PROCESSORS},
    {mcDeviceAttributeComputeMode, mcComputeModeDefault},
    {mcDeviceAttributeL2CacheSize, PRODUCT_L2_CACHE},
    {mcDeviceAttributeMaxThreadsPerMultiProcessor, PRODUCT_MAX_THREADS_PER_PROCESSOR},
    {mcDevAttrMaxBlocksPerMultiprocessor, PRODUCT_MAX_BLOCKS_PER_PROCESSOR},
    {mcDeviceAttributeComputeCapabilityMajor, PRODUCT_MAJOR},
    {mcDeviceAttributeComputeCapabilityMinor, PRODUCT_MINOR},
    {mcDeviceAttributeConcurrentKernels, 1},
    {mcDeviceAttributeMaxSharedMemoryPerMultiprocessor, PRODUCT_SHARED_MEMORY},
    {mcDeviceAttributeMaxPitch, PRODUCT_MAX_PITCH},
    {mcDeviceAttributeCanMapHostMemory, 1},
    {mcDeviceAttributeManagedMemory, 1},
    {mcDeviceAttributeDirectManagedMemAccessFromHost, 1},
    {mcDeviceAttributeConcurrentManagedAccess, 1},
    {mcDeviceAttributeMemoryPoolsSupported, 1},
    {mcDeviceAttributeUnifiedAddressing, 1},
    {mcDeviceAttributeGpuOverlap, 1},
    {mcDeviceAttributeAsyncEngineCount, 1},
};

enum { ATTRIBUTE_COUNT = sizeof attribute_values / sizeof attribute_values[0] };

static int attribute_value(mcDeviceAttribute_t attribute, int device)
{
    if (attribute == mcDeviceAttributePciBusId) {
        return product_bus(device);
    }
    for (int i = 0; i < ATTRIBUTE_COUNT; i++) {
        if (attribute_values[i].attribute == attribute) {
            return attribute_values[i].value;
        }
    }
    return 0;
}

mcError_t mcDeviceGetAttribute(int *value, mcDeviceAttribute_t attr, int device)
{
    Call call = us_call_begin("mcDeviceGetAttribute");
    us_require(&call, value != NULL, "value", "null", mcErrorInvalidValue, "value must not be NULL");
    us_require(&call, (unsigned int)attr < mcDeviceAttributeUnknow, "attr", "range", mcErrorInvalidValue,
               "attribute %d does not exist", (int)attr);
    require_ordinal(&call, device);
    if (call.status == 0) {
        *value = attribute_value(attr, device);
    }
    return runtime_end(&call);
}

mcError_t mcDeviceGetName(char *name, int len, MCdevice dev)
{
    Call call = us_call_begin("mcDeviceGetName");
    us_require(&call, name != NULL, "name", "null", mcErrorInvalidValue, "name must not be NULL");
    us_require(&call, len > 0, "len", "range", mcErrorInvalidValue, "len is %d, the text needs at least 1", len);
    require_ordinal(&call, dev);
    if (call.status == 0) {
        snprintf(name, (size_t)len, "%s", product_name);
    }
    return runtime_end(&call);
}

mcError_t mcDeviceGetPCIBusId(char *busId, int len, int device)
{
    enum { NEEDED = sizeof "0000:00:00.0" };
    Call call = us_call_begin("mcDeviceGetPCIBusId");
    us_require(&call, busId != NULL, "busId", "null", mcErrorInvalidValue, "busId must not be NULL");
    us_require(&call, len >= NEEDED, "len", "range", mcErrorInvalidValue, "len is %d, the text needs %d", len, NEEDED);
    require_ordinal(&call, device);
    if (call.status == 0) {
        snprintf(busId, (size_t)len, "0000:%02x:00.0", (unsigned int)product_bus(device) & 0xff);
    }
    return runtime_end(&call);
}

typedef struct BusPlace {
    unsigned int domain, bus, slot, function;
} BusPlace;

/* Reads one to four hexadecimal digits; NULL when there are none. */
static const char *read_number(const char *text, unsigned int *number)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *start = text;
    *number = 0;
    while (*text != '\0' && strchr(digits, *text) != NULL && text < start + 4) {
        *number = *number * 16 + (unsigned int)(strchr(digits, *text) - digits) % 16;
        text++;
    }
    return text == start ? NULL : text;
}

/* "[domain:]bus:device[.function]" */
static bool parse_bus_id(const char *text, BusPlace *place)
{
    unsigned int parts[3] = {0};
    int count = 0;
    const char *at = read_number(text, &parts[count++]);
    while (at != NULL && *at == ':' && count < 3) {
        at = read_number(at + 1, &parts[count++]);
    }
    if (at == NULL || count < 2) {
        return false;
    }
    *place = (BusPlace){.domain = count == 3 ? parts[0] : 0, .bus = parts[count - 2], .slot = parts[count - 1]};
    if (*at == '.') {
        at = read_number(at + 1, &place->function);
    }
    return at != NULL && *at == '\0';
}

mcError_t mcDeviceGetByPCIBusId(int *device, const char *busId)
{
    Call call = us_call_begin("mcDeviceGetByPCIBusId");
    us_require(&call, device != NULL, "device", "null", mcErrorInvalidValue, "device must not be NULL");
    us_require(&call, busId != NULL, "busId", "null", mcErrorInvalidValue, "busId must not be NULL");
    BusPlace place = {0};
    us_require(&call, parse_bus_id(busId, &place), "busId", "format", mcErrorInvalidValue,
               "\"%.32s\" is not [domain:]bus:device[.function]", busId);
    Platform *platform = maca_platform();
    bool exists = place.domain == 0 && place.slot == 0 && place.function == 0 && place.bus >= 1 && platform != NULL &&
                  place.bus <= (unsigned int)platform->device_count;
    us_require(&call, exists, "busId", "found", mcErrorInvalidDevice, "no device at %.32s", busId);
    if (call.status == 0) {
        *device = (int)place.bus - 1;
    }
    return runtime_end(&call);
}
