/* What of the operators is dumped, and where to (cann-runtime-3 16). */
#include "ascend/ascendcl/configuration.h"
#include "ascend/ascendcl/runtime.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH, LIST, SWITCH, MODE, DATA, SCENE, DEBUG };

void acl_want_dump(Wanted wanted[DUMP_WANTED])
{
    static const char *const names[] = {
        [PATH] = "dump_path", [LIST] = "dump_list", [SWITCH] = "dump_op_switch", [MODE] = "dump_mode",
        [DATA] = "dump_data", [SCENE] = "dump_scene", [DEBUG] = "dump_debug",
    };
    for (int i = 0; i < DUMP_WANTED; i++) {
        wanted[i] = (Wanted){.outer = "dump", .name = names[i]};
    }
}

/* The place of a value in a list; -1: it is none of them. */
static int choice_of(const char *value, const char *const *choices)
{
    for (int i = 0; choices[i] != NULL; i++) {
        if (strcmp(value, choices[i]) == 0) {
            return i;
        }
    }
    return -1;
}

static bool is_on(const Wanted *wanted)
{
    return wanted->given && strcmp(wanted->value, "on") == 0;
}

/* The failures that are dumped: the acldumpType, 0 for scenes without files, -1 after a refusal. */
static int32_t require_scene(Call *call, const Wanted *scene)
{
    static const char *const scenes[] = {"aic_err_brief_dump", "aic_err_norm_dump", "aic_err_detail_dump",
                                         "lite_exception", "watcher", NULL};
    static const int32_t types[] = {AIC_ERR_BRIEF_DUMP, AIC_ERR_NORM_DUMP, AIC_ERR_DETAIL_DUMP, 0, 0};
    int chosen = scene->given ? choice_of(scene->value, scenes) : 3;
    us_require(call, chosen >= 0, "configPath", "dump-scene", ACL_ERROR_INVALID_DUMP_CONFIG,
               "dump_scene is \"%s\", which is no scene", scene->value);
    return chosen >= 0 ? types[chosen] : -1;
}

void acl_require_dump(Call *call, const Wanted wanted[DUMP_WANTED], DumpSettings *settings)
{
    static const char *const switches[] = {"on", "off", NULL};
    static const char *const modes[] = {"input", "output", "all", NULL};
    static const uint32_t parts[] = {DUMP_INPUTS, DUMP_OUTPUTS, DUMP_INPUTS | DUMP_OUTPUTS};
    bool data = !wanted[SCENE].given && (wanted[LIST].given || wanted[SWITCH].given);
    const char *path = wanted[PATH].value;
    int mode = wanted[MODE].given ? choice_of(wanted[MODE].value, modes) : 1;
    us_require(call, !wanted[SWITCH].given || choice_of(wanted[SWITCH].value, switches) >= 0, "configPath",
               "dump-switch", ACL_ERROR_INVALID_DUMP_CONFIG, "dump_op_switch is \"%s\"; it must be on or off",
               wanted[SWITCH].value);
    us_require(call, mode >= 0, "configPath", "dump-mode", ACL_ERROR_INVALID_DUMP_CONFIG,
               "dump_mode is \"%s\"; it must be input, output or all", wanted[MODE].value);
    int32_t scene = require_scene(call, &wanted[SCENE]);
    us_require(call, !data || path[0] != '\0', "configPath", "dump-path", ACL_ERROR_INVALID_DUMP_CONFIG,
               "dump_path is missing");
    us_require(call, !data || access(path, W_OK | X_OK) == 0, "configPath", "dump-unwritable",
               ACL_ERROR_INVALID_DUMP_CONFIG, "%s is no folder that can be written to", path);
    if (call->status == 0) {
        size_t length = strlen(path);
        memcpy(settings->path, path, length + 1);
        if (length > 0 && path[length - 1] != '/') {
            memcpy(settings->path + length, "/", 2);
        }
        settings->operators = data && is_on(&wanted[SWITCH]) ? parts[mode] : 0;
        settings->scene = scene;
        settings->overflow = is_on(&wanted[DEBUG]);
    }
}

/* With the lock held. */
static void apply(DumpState *state, const DumpSettings *settings)
{
    memcpy(state->path, settings->path, sizeof state->path);
    state->scene = settings->scene;
    state->overflow = settings->overflow;
    atomic_store(&state->operators, settings->operators);
}

void acl_apply_dump(Platform *platform, const DumpSettings *settings)
{
    bool on = settings->operators != 0 || settings->scene != 0 || settings->overflow;
    DumpState *state = on ? ascend_dump(platform) : ascend_dump_known(platform);
    if (state != NULL) {
        pthread_mutex_lock(&state->lock);
        state->from_init = on;
        apply(state, settings);
        pthread_mutex_unlock(&state->lock);
    }
}

static DumpState *require_state(Call *call)
{
    Platform *platform = acl_require_platform(call);
    DumpState *state = platform != NULL ? ascend_dump(platform) : NULL;
    us_require(call, state != NULL, "runtime", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for the runtime");
    return state;
}

static void require_begun(Call *call, const DumpState *state)
{
    us_require(call, state->initialised, "dump", "idle", ACL_ERROR_DUMP_NOT_RUN, "aclmdlInitDump has not been called");
}

aclError aclmdlInitDump(void)
{
    Call call = us_call_begin("aclmdlInitDump");
    DumpState *state = require_state(&call);
    Platform *platform = call.status == 0 ? ascend_platform() : NULL;
    us_require(&call, platform->initialisations > 0, "runtime", "uninitialised", ACL_ERROR_UNINITIALIZE,
               "aclInit has not been called");
    if (call.status == 0) {
        pthread_mutex_lock(&state->lock);
        us_require(&call, !state->from_init && !state->initialised, "dump", "running", ACL_ERROR_DUMP_ALREADY_RUN,
                   "dumps are on already, from aclInit or an earlier call");
        state->initialised |= call.status == 0;
        pthread_mutex_unlock(&state->lock);
    }
    return acl_end(&call);
}

aclError aclmdlSetDump(const char *dumpCfgPath)
{
    Call call = us_call_begin("aclmdlSetDump");
    us_require(&call, dumpCfgPath != NULL, "dumpCfgPath", "null", ACL_ERROR_INVALID_PARAM, "dumpCfgPath is NULL");
    DumpState *state = require_state(&call);
    if (call.status == 0) {
        require_begun(&call, state);
    }
    Wanted wanted[DUMP_WANTED];
    acl_want_dump(wanted);
    size_t length = 0;
    char *text = call.status == 0 ? acl_read_json(&call, dumpCfgPath, wanted, DUMP_WANTED, &length) : NULL;
    DumpSettings settings = {.scene = 0};
    acl_require_dump(&call, wanted, &settings);
    free(text);
    if (call.status == 0) {
        pthread_mutex_lock(&state->lock);
        apply(state, &settings);
        pthread_mutex_unlock(&state->lock);
    }
    return acl_end(&call);
}

aclError aclmdlFinalizeDump(void)
{
    Call call = us_call_begin("aclmdlFinalizeDump");
    DumpState *state = require_state(&call);
    if (call.status == 0) {
        pthread_mutex_lock(&state->lock);
        require_begun(&call, state);
        if (call.status == 0) {
            state->initialised = false;
            apply(state, &(const DumpSettings){.scene = 0});
        }
        pthread_mutex_unlock(&state->lock);
    }
    return acl_end(&call);
}
