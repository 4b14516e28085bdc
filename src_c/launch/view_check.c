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

/* The same of a part: the rows of a column lie side by side. */
static void each_run_of_part(const View *view, const ViewPart *part, RunVisit *visit, void *context)
{
    const size_t element = us_dtype_size(view->dtype);
    bool more = true;
    for (int64_t column = 0; column < view->shape[0] && more; column++) {
        const PartColumn rows = us_part_column(view, part, column);
        const int64_t offset = column * view->strides[0] + rows.first;
        more = rows.count == 0 || visit(context, (const char *)view->data + offset * (int64_t)element,
                                        (size_t)rows.count * element);
    }
}

static void each_used_run(const View *view, const ViewPart *part, RunVisit *visit, void *context)
{
    if (us_part_is_all(part)) {
        each_run(view, visit, context);
    } else {
        each_run_of_part(view, part, visit, context);
    }
}

typedef struct InputCheck {
    Platform *platform;
    const char *function, *name;
    bool is_written;
} InputCheck;

static bool check_run(void *context, const char *address, size_t bytes)
{
    InputCheck *check = context;
    size_t unwritten = 0;
    if (us_check_is_written(check->platform, address, bytes, &unwritten)) {
        return true;
    }
    check->is_written = false;
    Allocation block;
    if (us_memory_find(check->platform, address, &block)) {
        us_finding("init", "%s reads %s at %p, byte %zu of block #%llu (%zu bytes from %s%s), which was never written",
                   check->function, check->name, (const void *)(address + unwritten),
                   (uintptr_t)address + unwritten - block.address, (unsigned long long)block.serial, block.size,
                   block.function, us_place(block.caller).text);
    }
    return false;
}

bool us_check_view_is_written(Platform *platform, const View *view, const ViewPart *part, const char *function,
                              const char *name)
{
    InputCheck check = {platform, function, name, true};
    each_used_run(view, part, check_run, &check);
    return check.is_written;
}

static bool mark_run(void *context, const char *address, size_t bytes)
{
    us_check_mark_written(context, address, bytes);
    return true;
}

void us_check_mark_view_written(Platform *platform, const View *view, const ViewPart *part)
{
    each_used_run(view, part, mark_run, platform);
}
