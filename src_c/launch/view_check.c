#include "launch/view_check.h"

#include "report/caller.h"

/* Calls `visit` for every run of elements that lie side by side; stops when it returns false. */
typedef bool RunVisit(void *context, const char *address, size_t bytes);

static void each_run(const View *view, RunVisit *visit, void *context)
{
    size_t element = us_dtype_size(view->dtype);
    int64_t index[VIEW_RANK_LIMIT] = {0};
    bool last_is_run = view->rank > 0 && view->strides[view->rank - 1] == 1;
    int32_t outer = last_is_run ? view->rank - 1 : view->rank;
    size_t bytes = element * (size_t)(last_is_run ? view->shape[view->rank - 1] : 1);
    for (bool more = true; more;) {
        int64_t offset = 0;
        for (int32_t axis = 0; axis < outer; axis++) {
            offset += index[axis] * view->strides[axis];
        }
        if (!visit(context, (const char *)view->data + offset * (int64_t)element, bytes)) {
            return;
        }
        int32_t axis = outer - 1;
        while (axis >= 0 && ++index[axis] == view->shape[axis]) {
            index[axis--] = 0;
        }
        more = axis >= 0;
    }
}

typedef struct InputCheck {
    Platform *platform;
    const char *function, *name;
} InputCheck;

static bool check_run(void *context, const char *address, size_t bytes)
{
    InputCheck *check = context;
    size_t unwritten = 0;
    if (us_check_is_written(check->platform, address, bytes, &unwritten)) {
        return true;
    }
    Allocation block;
    if (us_memory_find(check->platform, address, &block)) {
        us_finding("init", "%s reads %s at %p, byte %zu of block #%llu (%zu bytes from %s%s), which was never written",
                   check->function, check->name, (const void *)(address + unwritten),
                   (uintptr_t)address + unwritten - block.address, (unsigned long long)block.serial, block.size,
                   block.function, us_place(block.caller).text);
    }
    return false;
}

void us_check_view_is_written(Platform *platform, const View *view, const char *function, const char *name)
{
    InputCheck check = {platform, function, name};
    each_run(view, check_run, &check);
}

static bool mark_run(void *context, const char *address, size_t bytes)
{
    us_check_mark_written(context, address, bytes);
    return true;
}

void us_check_mark_view_written(Platform *platform, const View *view)
{
    each_run(view, mark_run, platform);
}
