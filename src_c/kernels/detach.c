#include "kernels/detach.h"

#include <stdlib.h>
#include <string.h>

bool us_view_reach(const View *view, const char **begin, const char **end)
{
    int64_t lowest, highest;
    if (us_view_is_absent(view) || us_view_is_empty(view) || !us_view_extent(view, &lowest, &highest)) {
        return false;
    }
    const int64_t size = (int64_t)us_dtype_size(view->dtype);
    *begin = (const char *)view->data + lowest * size;
    *end = (const char *)view->data + (highest + 1) * size;
    return true;
}

static bool is_same(const View *a, const View *b)
{
    return a->data == b->data && a->dtype == b->dtype && us_view_same_layout(a, b);
}

static bool shares_memory(const View *a, const View *b)
{
    const char *a_begin, *a_end, *b_begin, *b_end;
    return us_view_reach(a, &a_begin, &a_end) && us_view_reach(b, &b_begin, &b_end) && a_begin < b_end && b_begin < a_end;
}

bool us_views_collide(const View *a, const View *b)
{
    return !is_same(a, b) && shares_memory(a, b);
}

/* The view moved to other memory, gaps included: strides stay as they are. */
static void *copy_of(View *view)
{
    const char *begin = NULL, *end = NULL;
    us_view_reach(view, &begin, &end);
    char *copy = malloc((size_t)(end - begin));
    if (copy != NULL) {
        memcpy(copy, begin, (size_t)(end - begin));
        view->data = copy + ((char *)view->data - begin);
    }
    return copy;
}

static KernelStatus detach(Detached *detached, int input_count, const View *inputs, int output_count, const View *outputs,
                           bool also_same)
{
    *detached = (Detached){0};
    for (int i = 0; i < input_count; i++) {
        detached->inputs[i] = inputs[i];
        for (int o = 0; o < output_count && detached->copies[i] == NULL; o++) {
            if ((is_same(&inputs[i], &outputs[o]) && !also_same) || !shares_memory(&inputs[i], &outputs[o])) {
                continue;
            }
            detached->copies[i] = copy_of(&detached->inputs[i]);
            if (detached->copies[i] == NULL) {
                return KERNEL_NO_MEMORY;
            }
        }
    }
    return KERNEL_OK;
}

KernelStatus us_detach(Detached *detached, int input_count, const View *inputs, int output_count, const View *outputs)
{
    return detach(detached, input_count, inputs, output_count, outputs, false);
}

KernelStatus us_detach_same(Detached *detached, int input_count, const View *inputs, int output_count, const View *outputs)
{
    return detach(detached, input_count, inputs, output_count, outputs, true);
}

void us_detach_end(Detached *detached)
{
    for (int i = 0; i < DETACH_LIMIT; i++) {
        free(detached->copies[i]);
    }
}
