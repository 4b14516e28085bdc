/* What a captured model consists of, and changes of its tasks (cann-runtime-3 13.5). */
#include "ascend/ascendcl/model.h"

#include "report/descriptor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require_captured(Call *call, const Graph *graph)
{
    us_require(call, graph->from_capture && !us_graph_is_recording(graph), "modelRI", "kind",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "only models whose capture is over can be looked into");
}

/* How many fit: with an array the number of its elements comes in, and the number needed goes out. */
static void require_room(Call *call, bool has_array, const uint32_t *room, size_t needed)
{
    us_require(call, !has_array || *room >= needed, "count", "small", ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY,
               "the array has room for %u; %zu are needed", (unsigned)*room, needed);
}

aclError aclmdlRIGetStreams(aclmdlRI modelRI, aclrtStream *streams, uint32_t *numStreams)
{
    Call call = us_call_begin("aclmdlRIGetStreams");
    us_require(&call, numStreams != NULL, "numStreams", "null", ACL_ERROR_INVALID_PARAM, "numStreams is NULL");
    model_require_product(&call);
    Graph *graph = model_require(&call, modelRI);
    if (call.status == 0) {
        require_captured(&call, graph);
    }
    size_t count = call.status == 0 ? us_graph_branches(graph) : 0;
    if (call.status == 0) {
        require_room(&call, streams != NULL, numStreams, count);
    }
    for (uint32_t b = 0; call.status == 0 && streams != NULL && b < count; b++) {
        streams[b] = us_graph_branch_handle(graph, b);
    }
    if (call.status == 0) {
        *numStreams = (uint32_t)count;
    }
    return acl_end(&call);
}

aclError aclmdlRIGetTasksByStream(aclrtStream stream, aclmdlRITask *tasks, uint32_t *numTasks)
{
    Call call = us_call_begin("aclmdlRIGetTasksByStream");
    us_require(&call, numTasks != NULL, "numTasks", "null", ACL_ERROR_INVALID_PARAM, "numTasks is NULL");
    model_require_product(&call);
    uint32_t branch = 0;
    Graph *graph = call.status == 0 ? us_graph_of_branch_handle(stream, &branch) : NULL;
    us_require(&call, graph != NULL, "stream", "dead", ACL_ERROR_RT_INVALID_HANDLE,
               "stream %p does not come from aclmdlRIGetStreams, or its model has been destroyed", stream);
    size_t count = call.status == 0 ? us_graph_branch_steps(graph, branch) : 0;
    if (call.status == 0) {
        require_room(&call, tasks != NULL, numTasks, count);
    }
    for (size_t i = 0; call.status == 0 && tasks != NULL && i < count; i++) {
        tasks[i] = us_graph_step_handle(graph, branch, i);
        us_require(&call, tasks[i] != NULL, "tasks", "memory", ACL_ERROR_BAD_ALLOC,
                   "no host memory for a task's handle");
    }
    if (call.status == 0) {
        *numTasks = (uint32_t)count;
    }
    return acl_end(&call);
}

static Graph *require_task(Call *call, aclmdlRITask task, StepInfo *info)
{
    model_require_product(call);
    us_require(call, task != NULL, "task", "null", ACL_ERROR_INVALID_PARAM, "task is NULL");
    Graph *graph = call->status == 0 ? us_graph_of_step_handle(task, info) : NULL;
    us_require(call, graph != NULL, "task", "dead", ACL_ERROR_RT_INVALID_HANDLE,
               "task %p is no task, or its model has been destroyed", task);
    return graph;
}

static aclmdlRITaskType type_of(const StepInfo *info)
{
    switch (info->kind) {
    case STEP_RECORD:
    case STEP_EXTERNAL_RECORD:
        return ACL_MODEL_RI_TASK_EVENT_RECORD;
    case STEP_WAIT:
    case STEP_EXTERNAL_WAIT:
        return ACL_MODEL_RI_TASK_EVENT_WAIT;
    case STEP_EXTERNAL_RESET:
        return ACL_MODEL_RI_TASK_EVENT_RESET;
    case STEP_TASK:
        return us_is_value_write(info->run)                      ? ACL_MODEL_RI_TASK_VALUE_WRITE
               : us_is_value_wait(info->run)                     ? ACL_MODEL_RI_TASK_VALUE_WAIT
               : strcmp(info->work.category, "kernel") == 0 ? ACL_MODEL_RI_TASK_KERNEL
                                                                 : ACL_MODEL_RI_TASK_DEFAULT;
    default:
        return ACL_MODEL_RI_TASK_DEFAULT;
    }
}

aclError aclmdlRITaskGetType(aclmdlRITask task, aclmdlRITaskType *type)
{
    Call call = us_call_begin("aclmdlRITaskGetType");
    us_require(&call, type != NULL, "type", "null", ACL_ERROR_INVALID_PARAM, "type is NULL");
    StepInfo info;
    require_task(&call, task, &info);
    if (call.status == 0) {
        *type = type_of(&info);
    }
    return acl_end(&call);
}

aclError aclmdlRITaskGetSeqId(aclmdlRITask task, uint32_t *id)
{
    Call call = us_call_begin("aclmdlRITaskGetSeqId");
    us_require(&call, id != NULL, "id", "null", ACL_ERROR_INVALID_PARAM,
               "id is NULL; it gets the number of the task");
    StepInfo info;
    require_task(&call, task, &info);
    if (call.status == 0) {
        *id = info.id;
    }
    return acl_end(&call);
}

static uint32_t flags_of_event(const void *handle)
{
    const Event *event = us_event_of_handle(handle);
    return event != NULL ? event->vendor_flags : 0;
}

static void describe(const StepInfo *info, aclmdlRITaskParams *params)
{
    *params = (aclmdlRITaskParams){.type = type_of(info), .taskGrp = (void *)info->group};
    const ValueTask *value = info->argument;
    void *event = (void *)info->event;
    switch (params->type) {
    case ACL_MODEL_RI_TASK_VALUE_WRITE:
        params->valueWriteTaskParams = (aclmdlRIValueWriteTaskParams){value->address, value->value};
        break;
    case ACL_MODEL_RI_TASK_VALUE_WAIT:
        params->valueWaitTaskParams = (aclmdlRIValueWaitTaskParams){value->address, value->value,
                                                                    (uint32_t)value->test};
        break;
    case ACL_MODEL_RI_TASK_EVENT_RECORD:
        params->eventRecordTaskParams =
            (aclmdlRIEventRecordTaskParams){event, flags_of_event(event), info->kind == STEP_EXTERNAL_RECORD};
        break;
    case ACL_MODEL_RI_TASK_EVENT_WAIT:
        params->eventWaitTaskParams =
            (aclmdlRIEventWaitTaskParams){event, flags_of_event(event), info->kind == STEP_EXTERNAL_WAIT};
        break;
    case ACL_MODEL_RI_TASK_EVENT_RESET:
        params->eventResetTaskParams = (aclmdlRIEventResetTaskParams){event, flags_of_event(event), 0};
        break;
    default:
        break;
    }
}

aclError aclmdlRITaskGetParams(aclmdlRITask task, aclmdlRITaskParams *params)
{
    Call call = us_call_begin("aclmdlRITaskGetParams");
    us_require(&call, params != NULL, "params", "null", ACL_ERROR_INVALID_PARAM, "params is NULL");
    StepInfo info;
    require_task(&call, task, &info);
    if (call.status == 0) {
        describe(&info, params);
    }
    return acl_end(&call);
}

/* Keeps a change for aclmdlRIUpdate. */
static void keep_edit(Call *call, const Graph *graph, const ModelEdit *edit)
{
    if (call->status != 0) {
        return;
    }
    Model *model = model_of(graph);
    us_platform_lock(graph->device->platform);
    ModelEdit *edits = realloc(model->edits, (model->edit_count + 1) * sizeof *edits);
    if (edits != NULL) {
        model->edits = edits;
        edits[model->edit_count++] = *edit;
    }
    us_platform_unlock(graph->device->platform);
    us_require(call, edits != NULL, "task", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for the change");
}

aclError aclmdlRITaskSetParams(aclmdlRITask task, aclmdlRITaskParams *params)
{
    Call call = us_call_begin("aclmdlRITaskSetParams");
    us_require(&call, params != NULL, "params", "null", ACL_ERROR_INVALID_PARAM, "params is NULL");
    StepInfo info = {0};
    Graph *graph = require_task(&call, task, &info);
    aclmdlRITaskType type = call.status == 0 ? type_of(&info) : ACL_MODEL_RI_TASK_DEFAULT;
    bool waits = type == ACL_MODEL_RI_TASK_VALUE_WAIT;
    us_require(&call, waits || type == ACL_MODEL_RI_TASK_VALUE_WRITE, "task", "type", ACL_ERROR_RT_MODEL_UPDATE_FAILED,
               "a task of type %d takes no other parameters", (int)type);
    us_require(&call, params->type == type, "params", "type", ACL_ERROR_RT_MODEL_UPDATE_FAILED,
               "params are of type %d, the task of type %d", (int)params->type, (int)type);
    if (call.status != 0) {
        return acl_end(&call);
    }
    ModelEdit edit = {.task = task, .value = {.device = graph->device}};
    edit.value.address = waits ? params->valueWaitTaskParams.devAddr : params->valueWriteTaskParams.devAddr;
    edit.value.value = waits ? params->valueWaitTaskParams.value : params->valueWriteTaskParams.value;
    edit.value.test = waits ? (ValueTest)params->valueWaitTaskParams.flag : VALUE_NOT_LESS;
    us_require(&call, edit.value.address != NULL && (uintptr_t)edit.value.address % 8 == 0 &&
               edit.value.test <= VALUE_NOR,
               "params", "value", ACL_ERROR_RT_MODEL_UPDATE_FAILED,
               "the address is %p and the condition %d; a multiple of 8 and 0 to 3 are needed", edit.value.address,
               (int)edit.value.test);
    keep_edit(&call, graph, &edit);
    return acl_end(&call);
}

aclError aclmdlRITaskDisable(aclmdlRITask task)
{
    Call call = us_call_begin("aclmdlRITaskDisable");
    StepInfo info;
    Graph *graph = require_task(&call, task, &info);
    keep_edit(&call, graph, &(ModelEdit){.task = task, .disables = true});
    return acl_end(&call);
}

/* False: no memory. */
static bool apply(const ModelEdit *edit)
{
    if (edit->disables) {
        return us_graph_step_disable(edit->task);
    }
    ValueTask *value = malloc(sizeof *value);
    if (value == NULL) {
        return false;
    }
    *value = edit->value;
    bool replaced = us_graph_step_replace(edit->task, free, value);
    if (!replaced) {
        free(value);
    }
    return replaced;
}

aclError aclmdlRIUpdate(aclmdlRI modelRI)
{
    Call call = us_call_begin("aclmdlRIUpdate");
    model_require_product(&call);
    Graph *graph = model_require(&call, modelRI);
    us_require(&call, graph->from_capture && !us_graph_is_recording(graph), "modelRI", "kind",
               ACL_ERROR_RT_MODEL_UPDATE_FAILED, "model %u was not captured, or is being captured",
                   (unsigned)graph->id);
    us_require(&call, !us_graph_is_running(graph), "modelRI", "running", ACL_ERROR_RT_MODEL_UPDATE_FAILED,
               "model %u is running, or waits in a stream to run", (unsigned)graph->id);
    if (call.status != 0) {
        return acl_end(&call);
    }
    Model *model = model_of(graph);
    us_platform_lock(graph->device->platform);
    ModelEdit *edits = model->edits;
    size_t count = model->edit_count;
    model->edits = NULL;
    model->edit_count = 0;
    us_platform_unlock(graph->device->platform);
    for (size_t i = 0; i < count; i++) {
        us_require(&call, apply(&edits[i]), "modelRI", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a change");
    }
    free(edits);
    return acl_end(&call);
}

/* ---- as text ---- */

static const char *name_of(const StepInfo *info)
{
    static const char *const names[] = {
        [STEP_TASK] = "TASK",
        [STEP_RECORD] = "EVENT_RECORD",
        [STEP_WAIT] = "EVENT_WAIT",
        [STEP_EXTERNAL_RECORD] = "EXTERNAL_EVENT_RECORD",
        [STEP_EXTERNAL_WAIT] = "EXTERNAL_EVENT_WAIT",
        [STEP_EXTERNAL_RESET] = "EVENT_RESET",
        [STEP_CHOICE] = "CONDITION",
        [STEP_LABEL] = "LABEL",
        [STEP_JUMP] = "LABEL_SWITCH",
        [STEP_SWITCH] = "STREAM_SWITCH",
        [STEP_START] = "STREAM_ACTIVE",
        [STEP_END] = "MODEL_END",
    };
    return info->kind == STEP_TASK ? info->work.name : names[info->kind];
}

/* The program's text as a string of JSON. */
static void print_text(FILE *file, const char *text, size_t size)
{
    fputs(",\"Extend Info\":\"", file);
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte == '"' || byte == '\\') {
            fprintf(file, "\\%c", byte);
        } else if (byte < 0x20) {
            fprintf(file, "\\u%04x", byte);
        } else {
            fputc(byte, file);
        }
    }
    fputs("\"", file);
}

/* One step as an event of the Chrome trace format; its place in the order stands for the time. */
static void print_step(FILE *file, const Graph *graph, const StepInfo *info, bool verbose, bool *first)
{
    fprintf(file,
            "%s\n{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%u,\"dur\":1,\"args\":{\"Model Id\":%u,"
            "\"Stream Id\":%u,\"Task Id\":%u,\"Task Type\":%d",
            *first ? "" : ",", name_of(info), (unsigned)graph->id, (unsigned)info->branch, (unsigned)info->id,
            (unsigned)graph->id, (unsigned)info->branch, (unsigned)info->id, (int)type_of(info));
    if (info->kind == STEP_WAIT) {
        fprintf(file, ",\"Waits For\":%u", (unsigned)info->target);
    }
    if (verbose && info->kind == STEP_TASK) {
        fprintf(file, ",\"Category\":\"%s\",\"Bytes\":%llu,\"Disabled\":%s", info->work.category,
                (unsigned long long)info->work.bytes, info->disabled ? "true" : "false");
    }
    if (info->notes[STEP_NOTE_TEXT] != NULL) {
        print_text(file, info->notes[STEP_NOTE_TEXT], info->note_sizes[STEP_NOTE_TEXT]);
    }
    fputs("}}", file);
    *first = false;
}

static void print_steps(FILE *file, const Graph *graph, bool verbose)
{
    bool first = true;
    fputs("[", file);
    for (uint32_t b = 0; b < us_graph_branches(graph); b++) {
        StepInfo info;
        for (size_t s = 0; us_graph_step(graph, b, s, &info); s++) {
            print_step(file, graph, &info, verbose, &first);
        }
    }
    fputs("\n]\n", file);
}

aclError aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char *path, uint32_t flags)
{
    Call call = us_call_begin("aclmdlRIDebugJsonPrint");
    us_require(&call, path != NULL, "path", "null", ACL_ERROR_INVALID_PARAM, "path is NULL");
    us_require(&call, flags <= ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE, "flags", "range", ACL_ERROR_RT_PARAM_INVALID,
               "flags is %u; it must be 0 or 1", (unsigned)flags);
    model_require_product(&call);
    Graph *graph = model_require(&call, modelRI);
    FILE *file = call.status == 0 ? us_file_to_write(path) : NULL;
    us_require(&call, file != NULL, "path", "unwritable", ACL_ERROR_RT_FILE_OPEN, "%s cannot be written", path);
    if (file != NULL) {
        print_steps(file, graph, flags == ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE);
        us_require(&call, fclose(file) == 0, "path", "write", ACL_ERROR_RT_FILE_WRITE, "%s could not be written", path);
    }
    return acl_end(&call);
}

aclError aclmdlRIDebugPrint(aclmdlRI modelRI)
{
    Call call = us_call_begin("aclmdlRIDebugPrint");
    model_require_product(&call);
    Graph *graph = model_require(&call, modelRI);
    for (uint32_t b = 0; call.status == 0 && b < us_graph_branches(graph); b++) {
        StepInfo info;
        for (size_t s = 0; us_graph_step(graph, b, s, &info); s++) {
            us_log(LOG_LEVEL_INFO, "model %u, stream %u, task %u: %s", (unsigned)graph->id, (unsigned)b,
                   (unsigned)info.id,
                   name_of(&info));
        }
    }
    return acl_end(&call);
}
