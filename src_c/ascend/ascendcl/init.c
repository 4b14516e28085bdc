/* aclInit, aclFinalize (cann-runtime 8). */
#include "ascend/ascendcl/configuration.h"
#include "ascend/ascendcl/runtime.h"
#include "device/check.h"

#include <stdatomic.h>
#include <stdlib.h>

/* The PyTorch adapter runs an operator by name where no library has its function (op_compiler). It may ask for that when it
 * first does so: at its start it would look for the files of the vendor's compiler. */
static void allow_operators_by_name(void)
{
    setenv("ACL_OP_INIT_MODE", "1", 0);
}

/* With the platform's lock held. */
static void apply(Runtime *runtime, Configuration *configuration)
{
    free(runtime->configuration_text);
    runtime->configuration_text = configuration->text;
    runtime->configuration_size = configuration->size;
    configuration->text = NULL;
    runtime->configuration = configuration->fingerprint;
    atomic_store(&runtime->default_device, configuration->default_device);
    atomic_store(&runtime->messages_of_process, configuration->messages_of_process);
    runtime->platform->options[PROFILED_OPTION] = configuration->profiles;
}

aclError aclInit(const char *configPath)
{
    Call call = us_call_begin("aclInit");
    Configuration configuration = {.default_device = -1};
    acl_require_platform(&call);
    acl_read_configuration(&call, configPath, &configuration);
    Runtime *runtime = acl_runtime();
    us_require(&call, runtime != NULL, "runtime", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for the runtime");
    if (call.status != 0) {
        free(configuration.text);
        return acl_end(&call);
    }
    Platform *platform = runtime->platform;
    us_platform_lock(platform);
    bool first = platform->initialisations == 0;
    if (first) {
        runtime->starts++;
        apply(runtime, &configuration);
        allow_operators_by_name();
        platform->initialisations = 1;
        platform->finalised = false;
    } else {
        bool same = configuration.text == NULL || configuration.fingerprint == runtime->configuration;
        us_require(&call, same, "configPath", "changed", ACL_ERROR_INVALID_PARAM,
                   "the first aclInit read another configuration than %s now holds", configPath);
        us_require(&call, (platform->initialisations++, false), "runtime", "repeated", ACL_ERROR_REPEAT_INITIALIZE,
                   "aclInit has been called before; calls so far: %d", (int)platform->initialisations);
    }
    us_platform_unlock(platform);
    free(configuration.text);
    if (first) {
        acl_apply_dump(platform, &configuration.dump);
        acl_tell_init(&call, runtime);
    }
    return acl_end(&call);
}

/* With the platform's lock held. */
static void finalize(Platform *platform)
{
    platform->initialisations = 0;
    platform->finalised = true;
    platform->options[PROFILED_OPTION] = false;
}

aclError aclFinalize(void)
{
    Call call = us_call_begin("aclFinalize");
    Platform *platform = acl_require_platform(&call);
    if (platform == NULL) {
        return acl_end(&call);
    }
    us_platform_lock(platform);
    us_require(&call, !platform->finalised, "runtime", "repeated", ACL_ERROR_REPEAT_FINALIZE,
               "aclFinalize has been called already, with no aclInit since");
    if (call.status == 0) {
        finalize(platform);
    }
    us_platform_unlock(platform);
    Runtime *runtime = call.status == 0 ? acl_runtime() : NULL;
    if (runtime != NULL) {
        acl_apply_dump(platform, &(const DumpSettings){.scene = 0});
        acl_tell_finalize(&call, runtime);
        us_check_leaks(platform);
    }
    return acl_end(&call);
}

aclError aclFinalizeReference(uint64_t *refCount)
{
    Call call = us_call_begin("aclFinalizeReference");
    Platform *platform = acl_require_platform(&call);
    if (platform == NULL) {
        return acl_end(&call);
    }
    us_platform_lock(platform);
    us_require(&call, platform->initialisations > 0, "runtime", "repeated", ACL_ERROR_REPEAT_FINALIZE,
               "there is no aclInit left to undo");
    bool last = call.status == 0 && --platform->initialisations == 0;
    if (last) {
        finalize(platform);
    }
    if (call.status == 0 && refCount != NULL) {
        *refCount = (uint64_t)platform->initialisations;
    }
    us_platform_unlock(platform);
    Runtime *runtime = last ? acl_runtime() : NULL;
    if (runtime != NULL) {
        acl_apply_dump(platform, &(const DumpSettings){.scene = 0});
        acl_tell_finalize(&call, runtime);
    }
    return acl_end(&call);
}
