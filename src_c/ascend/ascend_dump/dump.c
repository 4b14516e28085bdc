/* What was dumped, where to, and for whom (cann-runtime-3 16). */
#include "ascend/common/dump.h"

#include "acl/acl_base_rt.h"
#include "report/descriptor.h"
#include "report/report.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The state, or a refusal: rule dump/memory. */
static DumpState *require_state(Call *call)
{
    Platform *platform = call->status == 0 ? ascend_platform() : NULL;
    DumpState *state = platform != NULL ? ascend_dump(platform) : NULL;
    us_require(call, state != NULL, "dump", "memory", ACL_ERROR_BAD_ALLOC, "no host memory, or no devices");
    return state;
}

/* ---- data of operators ---- */

const char *acldumpGetPath(acldumpType dumpType)
{
    Platform *platform = ascend_platform();
    DumpState *state = platform != NULL ? ascend_dump_known(platform) : NULL;
    if (state == NULL || ascend_product()->product == PRODUCT_910A) {
        return NULL;
    }
    pthread_mutex_lock(&state->lock);
    bool on = (dumpType == DATA_DUMP && atomic_load(&state->operators) != 0) ||
              (dumpType == OVERFLOW_DUMP && state->overflow) || (state->scene != 0 && state->scene == (int)dumpType);
    pthread_mutex_unlock(&state->lock);
    return on ? state->path : NULL;
}

aclError acldumpRegCallback(int32_t (*const messageCallback)(const acldumpChunk *, int32_t), int32_t flag)
{
    Call call = us_call_begin("acldumpRegCallback");
    us_require(&call, messageCallback != NULL, "messageCallback", "null", ACL_ERROR_INVALID_PARAM,
               "messageCallback is NULL");
    us_require(&call, flag == 0, "flag", "range", ACL_ERROR_INVALID_PARAM, "flag is %d; it must be 0", (int)flag);
    DumpState *state = require_state(&call);
    if (call.status == 0) {
        pthread_mutex_lock(&state->lock);
        state->callback = messageCallback;
        pthread_mutex_unlock(&state->lock);
    }
    return us_call_end(&call);
}

void acldumpUnregCallback(void)
{
    Platform *platform = ascend_platform();
    DumpState *state = platform != NULL ? ascend_dump_known(platform) : NULL;
    if (state != NULL) {
        pthread_mutex_lock(&state->lock);
        state->callback = NULL;
        pthread_mutex_unlock(&state->lock);
    }
}

/* ---- types and shapes ---- */

static void require_dump_type(Call *call, uint32_t type)
{
    us_require(call, type == ACL_OP_DUMP_OP_AICORE_ARGS, "dumpType", "range", ACL_ERROR_INVALID_PARAM,
               "dumpType is %u; it must be 1", (unsigned)type);
}

/* Makes the folder and those above it. `path` ends in '/'. */
static bool make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    return access(path, W_OK | X_OK) == 0;
}

aclError aclopStartDumpArgs(uint32_t dumpType, const char *path)
{
    Call call = us_call_begin("aclopStartDumpArgs");
    require_dump_type(&call, dumpType);
    us_require(&call, path != NULL, "path", "null", ACL_ERROR_INVALID_PARAM, "path is NULL");
    char folder[DUMP_PATH_BYTES];
    us_require(&call, (size_t)snprintf(folder, sizeof folder, "%s/", path) < sizeof folder && make_folders(folder),
               "path", "unusable", ACL_ERROR_INVALID_PARAM, "%s cannot be made, or not be written to", path);
    DumpState *state = require_state(&call);
    if (call.status == 0) {
        pthread_mutex_lock(&state->lock);
        strcpy(state->arguments_path, folder);
        atomic_store(&state->collects, true);
        pthread_mutex_unlock(&state->lock);
    }
    return us_call_end(&call);
}

static bool write_call(const DumpState *state, const DumpedCall *call, unsigned number)
{
    char path[DUMP_PATH_BYTES + 256];
    snprintf(path, sizeof path, "%s%s.%u.json", state->arguments_path, call->function, number);
    FILE *file = us_file_to_write(path);
    bool written = file != NULL && fputs(call->text, file) >= 0;
    return file != NULL && fclose(file) == 0 && written;
}

aclError aclopStopDumpArgs(uint32_t dumpType)
{
    Call call = us_call_begin("aclopStopDumpArgs");
    require_dump_type(&call, dumpType);
    DumpState *state = require_state(&call);
    if (call.status != 0) {
        return us_call_end(&call);
    }
    pthread_mutex_lock(&state->lock);
    us_require(&call, atomic_exchange(&state->collects, false), "dumpType", "idle", ACL_ERROR_DUMP_NOT_RUN,
               "aclopStartDumpArgs has not been called");
    DumpedCall *calls = state->calls;
    state->calls = NULL;
    for (unsigned number = 0; calls != NULL; number++) {
        DumpedCall *next = calls->next;
        us_require(&call, write_call(state, calls, number), "path", "unwritable", ACL_ERROR_WRITE_FILE,
                   "a file in %s cannot be written", state->arguments_path);
        free(calls);
        calls = next;
    }
    pthread_mutex_unlock(&state->lock);
    return us_call_end(&call);
}

/* ---- failures ---- */

/* The folder for what is saved about failures, or a refusal: rule dump/off. */
static void require_exception_path(Call *call, char path[DUMP_PATH_BYTES])
{
    DumpState *state = require_state(call);
    us_require(call, state->scene != 0, "dump", "off", ACL_ERROR_DUMP_NOT_RUN,
               "no dump of failures is on: dump_scene in the configuration switches it on");
    const Platform *platform = call->status == 0 ? ascend_platform() : NULL;
    const Context *context = platform != NULL ? us_context_current(platform) : NULL;
    if (call->status != 0) {
        return;
    }
    const char *root = getenv("NPU_COLLECT_PATH");
    root = root != NULL && root[0] != '\0' ? root : getenv("ASCEND_WORK_PATH");
    pthread_mutex_lock(&state->lock);
    root = root != NULL && root[0] != '\0' ? root : state->path[0] != '\0' ? state->path : ".";
    size_t length = strlen(root);
    snprintf(path, DUMP_PATH_BYTES, "%.3900s%sextra-info/data-dump/%d/", root,
             length > 0 && root[length - 1] == '/' ? "" : "/", context != NULL ? (int)context->device->ordinal : 0);
    pthread_mutex_unlock(&state->lock);
}

aclError acldumpGetExceptionInfoPath(char *path, size_t maxLen)
{
    Call call = us_call_begin("acldumpGetExceptionInfoPath");
    us_require(&call, path != NULL, "path", "null", ACL_ERROR_INVALID_PARAM, "path is NULL");
    char found[DUMP_PATH_BYTES] = "";
    require_exception_path(&call, found);
    us_require(&call, strlen(found) < maxLen, "maxLen", "range", ACL_ERROR_INVALID_PARAM,
               "maxLen is %zu; the path has %zu characters", maxLen, strlen(found));
    if (call.status == 0) {
        strcpy(path, found);
    }
    return us_call_end(&call);
}

/* The tensors must be in device memory now. */
static void require_tensors(Call *call, const acldumpTensorInfo *tensors, size_t count)
{
    us_require(call, tensors != NULL || count == 0, "tensors", "null", ACL_ERROR_INVALID_PARAM,
               "tensors is NULL for %zu tensors", count);
    for (size_t i = 0; call->status == 0 && i < count; i++) {
        us_require(call, tensors[i].addrType == ACL_DUMP_ADDR_RAW, "tensors", "address-type", ACL_ERROR_INVALID_PARAM,
                   "addrType of tensor %zu is %d; it must be 2", i, (int)tensors[i].addrType);
        us_require(call, tensors[i].placement == ACL_DUMP_PLACEMENT_DEVICE, "tensors", "placement",
                   ACL_ERROR_INVALID_PARAM, "placement of tensor %zu is %d; it must be 0", i,
                   (int)tensors[i].placement);
        Explanation why = {""};
        Platform *platform = ascend_platform();
        Allocation block;
        bool device = us_memory_find(platform, tensors[i].tensorAddr, &block) && block.kind == MEMORY_DEVICE;
        us_require(call, device, "tensors", "memory", ACL_ERROR_INVALID_PARAM, "tensor %zu is not in device memory", i);
        us_require(call,
                   us_memory_open(platform, block.device, tensors[i].tensorAddr, tensors[i].tensorSize,
                                  MEMORY_USER_COPY, &why) != NULL,
                   "tensors", "memory", ACL_ERROR_INVALID_PARAM, "tensor %zu: %s", i, why.text);
    }
}

static bool write_tensors(const char *path, const acldumpTensorInfo *tensors, size_t count)
{
    FILE *file = us_file_to_write(path);
    bool written = file != NULL;
    for (size_t i = 0; i < count && written; i++) {
        Explanation why;
        const void *bytes = us_memory_open(ascend_platform(), NULL, tensors[i].tensorAddr, tensors[i].tensorSize,
                                           MEMORY_USER_COPY, &why);
        written = bytes != NULL && fwrite(bytes, 1, tensors[i].tensorSize, file) == tensors[i].tensorSize;
    }
    return file != NULL && fclose(file) == 0 && written;
}

aclError acldumpSaveExceptionInfo(const char *fileName, const char *userTag, const acldumpTensorInfo *tensors,
                                  size_t tensorCount)
{
    (void)userTag;
    Call call = us_call_begin("acldumpSaveExceptionInfo");
    us_require(&call, fileName != NULL, "fileName", "null", ACL_ERROR_INVALID_PARAM, "fileName is NULL");
    us_require(&call, strstr(fileName, "..") == NULL && strlen(fileName) < NAME_MAX, "fileName", "range",
               ACL_ERROR_INVALID_PARAM, "fileName has \"..\" in it, or more than %d characters", NAME_MAX - 1);
    char path[2 * DUMP_PATH_BYTES] = "";
    require_exception_path(&call, path);
    require_tensors(&call, tensors, tensorCount);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (call.status == 0) {
        size_t length = strlen(path);
        snprintf(path + length, sizeof path - length, "%s.custom.%lld", fileName,
                 (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
        make_folders(path);
    }
    us_require(&call, write_tensors(path, tensors, tensorCount), "fileName", "unwritable", ACL_ERROR_WRITE_FILE,
               "%s cannot be written", path);
    return us_call_end(&call);
}
