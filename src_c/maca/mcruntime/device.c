/* Devices: the current one, waiting, reset, peers, limits, versions (maca-runtime 4, 5.10). */
#include "maca/mcruntime/product.h"
#include "device/graph.h"
#include "maca/mcruntime/runtime.h"

#include <stdatomic.h>

/* 0 when the platform cannot be set up. */
static int device_count(void)
{
    Platform *platform = maca_platform();
    return platform == NULL ? 0 : platform->device_count;
}

void require_ordinal(Call *call, int device)
{
    require_platform(call);
    us_require(call, device >= 0 && device < device_count(), "device", "range", mcErrorInvalidDevice,
               "device %d; %d devices exist, counted from 0", device, device_count());
}

mcError_t mcInit(unsigned int flags)
{
    Call call = us_call_begin("mcInit");
    us_require(&call, flags == 0, "flags", "range", mcErrorInvalidValue, "flags is %u, not 0", flags);
    return runtime_end(&call);
}

mcError_t mcGetDeviceCount(int *count)
{
    Call call = us_call_begin("mcGetDeviceCount");
    us_require(&call, count != NULL, "count", "null", mcErrorInvalidValue, "count must not be NULL");
    if (call.status == 0) {
        require_platform(&call);
        *count = device_count();
        us_require(&call, *count > 0, "device", "none", mcErrorNoDevice, "there is no device");
    }
    return runtime_end(&call);
}

mcError_t mcSetDevice(int device)
{
    Call call = us_call_begin("mcSetDevice");
    require_ordinal(&call, device);
    if (call.status == 0) {
        maca_set_device_ordinal(device);
    }
    return runtime_end(&call);
}

mcError_t mcGetDevice(int *device)
{
    Call call = us_call_begin("mcGetDevice");
    us_require(&call, device != NULL, "device", "null", mcErrorInvalidValue, "device must not be NULL");
    if (call.status == 0) {
        *device = maca_device_ordinal();
    }
    return runtime_end(&call);
}

mcError_t mcDeviceSynchronize(void)
{
    Call call = us_call_begin("mcDeviceSynchronize");
    Device *device = require_device(&call);
    us_require(&call, !us_capture_anywhere_in_context(us_context_primary(device), true), "device", "capture",
               mcErrorStreamCaptureUnsupported, "a stream of the device is being captured: its work does not run now");
    runtime_synchronize_device(&call, device);
    return runtime_end(&call);
}

mcError_t mcDeviceReset(void)
{
    Call call = us_call_begin("mcDeviceReset");
    require_outside_host_function(&call);
    if (call.status == 0) {
        Device *device = runtime_started_device(&call);
        if (device != NULL) {
            us_device_reset(device, true);
            runtime_end_events();
        }
    }
    return runtime_end(&call);
}

/* Limits concern device code, which does not exist here: a legal limit is taken and has no effect. */
mcError_t mcDeviceSetLimit(mcLimit_t limit, size_t value)
{
    Call call = us_call_begin("mcDeviceSetLimit");
    require_device(&call);
    us_require(&call, (unsigned int)limit < mcLimitMax, "limit", "range", mcErrorUnsupportedLimit,
               "limit %d (value %zu) does not exist", (int)limit, value);
    return runtime_end(&call);
}

/* ---- peers: every device reaches every other --------------------------------------------------------------------- */

mcError_t mcDeviceCanAccessPeer(int *can, int device, int peer)
{
    Call call = us_call_begin("mcDeviceCanAccessPeer");
    us_require(&call, can != NULL, "can", "null", mcErrorInvalidValue, "can must not be NULL");
    require_ordinal(&call, device);
    us_require(&call, peer >= 0 && peer < device_count(), "peer", "range", mcErrorInvalidDevice,
               "peer is device %d; %d devices exist, counted from 0", peer, device_count());
    if (call.status == 0) {
        *can = device != peer;
    }
    return runtime_end(&call);
}

/* False when the device had access already. */
static bool enable_peer(Device *device, int peer)
{
    uint64_t bit = (uint64_t)1 << peer;
    return (atomic_fetch_or(&device->peers, bit) & bit) == 0;
}

mcError_t mcDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    Call call = us_call_begin("mcDeviceEnablePeerAccess");
    Device *device = require_device(&call);
    us_require(&call, flags == 0, "flags", "range", mcErrorInvalidValue, "flags is %u, not 0", flags);
    us_require(&call, peer >= 0 && peer < device_count(), "peer", "range", mcErrorInvalidDevice,
               "peer is device %d; %d devices exist, counted from 0", peer, device_count());
    us_require(&call, peer != device->ordinal, "peer", "self", mcErrorInvalidDevice,
               "peer is the current device %d itself", peer);
    us_require(&call, enable_peer(device, peer), "peer", "enabled", mcErrorPeerAccessAlreadyEnabled,
               "device %d already has access to device %d", (int)device->ordinal, peer);
    return runtime_end(&call);
}

/* ---- versions ---------------------------------------------------------------------------------------------------- */

static mcError_t give_version(Call call, int *version)
{
    us_require(&call, version != NULL, "version", "null", mcErrorInvalidValue, "version must not be NULL");
    if (call.status == 0) {
        *version = PRODUCT_VERSION;
    }
    return runtime_end(&call);
}

mcError_t mcRuntimeGetVersion(int *version)
{
    return give_version(us_call_begin("mcRuntimeGetVersion"), version);
}

mcError_t mcDriverGetVersion(int *version)
{
    return give_version(us_call_begin("mcDriverGetVersion"), version);
}
