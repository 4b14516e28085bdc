#include "ascend/common/platform.h"

#include "ascend/common/objects.h"
#include "device/pool.h"

#include <string.h>

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* Core counts are those of the products' common parts; nothing but device queries and one tiling rule depends on
 * them. */
static const ProductProfile profiles[] = {
    {PRODUCT_A2, "Ascend910B", "Ascend910B1", "Atlas A2", 64 * GIB, 24, 48, 192 * MIB},
    {PRODUCT_910A, "Ascend910", "Ascend910A", "Atlas training series", 32 * GIB, 32, 32, 32 * MIB},
    {PRODUCT_A3, "Ascend910_93", "Ascend910_9391", "Atlas A3", 64 * GIB, 24, 48, 192 * MIB},
};

static const LeakKind leak_kinds[] = {
    {HANDLE_TENSOR, "aclTensor"},           {HANDLE_SCALAR, "aclScalar"},
    {HANDLE_INT_ARRAY, "aclIntArray"},      {HANDLE_FLOAT_ARRAY, "aclFloatArray"},
    {HANDLE_BOOL_ARRAY, "aclBoolArray"},    {HANDLE_TENSOR_LIST, "aclTensorList"},
    {HANDLE_SCALAR_LIST, "aclScalarList"},  {HANDLE_EXECUTOR, "aclOpExecutor"},
    {HANDLE_POOL, "memory pools"},          {HANDLE_COMMUNICATOR, "HcclComm"},
};

static const ProductProfile *profile_of_environment(void)
{
    const char *const choices[] = {profiles[0].soc, profiles[1].soc, profiles[2].soc, NULL};
    return &profiles[us_environment_choice("UNDERSTUDY_SOC", choices, 0)];
}

Platform *ascend_platform(void)
{
    Platform *known = us_platform_known(ASCEND_PLATFORM);
    if (known != NULL) {
        return known;
    }
    const ProductProfile *product = profile_of_environment();
    PlatformProfile profile = {.name = product->soc_name,
                               .memory_bytes = product->memory_bytes,
                               .leak_kinds = leak_kinds,
                               .leak_kind_count = sizeof leak_kinds / sizeof *leak_kinds,
                               .visible_devices = "ASCEND_RT_VISIBLE_DEVICES"};
    return us_platform(ASCEND_PLATFORM, &profile);
}

/* Asks the platform first: that costs nothing, and a process forked after use has none. */
const ProductProfile *ascend_product(void)
{
    Platform *platform = ascend_platform();
    for (size_t i = 0; platform != NULL && i < sizeof profiles / sizeof profiles[0]; i++) {
        if (strcmp(platform->profile.name, profiles[i].soc_name) == 0) {
            return &profiles[i];
        }
    }
    return profile_of_environment();
}

Stream *ascend_stream(const void *stream)
{
    Platform *platform = ascend_platform();
    if (stream != NULL) {
        Stream *found = us_stream_of_handle(stream);
        return found != NULL && found->context->device->platform == platform ? found : NULL;
    }
    Context *context = platform != NULL ? us_context_current(platform) : NULL;
    return context != NULL ? context->default_stream : NULL;
}
