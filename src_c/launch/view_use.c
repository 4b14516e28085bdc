#include "launch/view_use.h"

#include <stdlib.h>
#include <string.h>

static bool adds_level(const Use *use, size_t count, size_t distance)
{
    return count > 1 && distance != (use->level_count > 0 ? use->levels[0].count * use->levels[0].distance : use->run);
}

/* Which of the bytes that it reaches a view shows, as far as that takes few levels; otherwise all count. */
static void describe_gaps(const View *view, Use *use)
{
    bool done[VIEW_RANK_LIMIT] = {false};
    use->run = us_dtype_size(view->dtype);
    for (int32_t round = 0; round < view->rank; round++) {
        int32_t next = -1;
        for (int32_t axis = 0; axis < view->rank; axis++) {
            bool smaller = next < 0 || llabs(view->strides[axis]) < llabs(view->strides[next]);
            next = !done[axis] && smaller ? axis : next;
        }
        done[next] = true;
        size_t count = (size_t)view->shape[next];
        size_t distance = (size_t)llabs(view->strides[next]) * us_dtype_size(view->dtype);
        if (count == 1 || distance == 0) {
            continue;
        }
        if (use->level_count == 0 && distance == use->run) {
            use->run *= count;
        } else if (adds_level(use, count, distance)) {
            if (use->level_count == USE_LEVEL_LIMIT) {
                use->level_count = 0;
                return;
            }
            memmove(&use->levels[1], &use->levels[0], (size_t)use->level_count * sizeof use->levels[0]);
            use->levels[0].count = count;
            use->levels[0].distance = distance;
            use->level_count++;
        } else {
            use->levels[0].count *= count;
        }
    }
}

bool us_view_use_reach(const View *view, Use *use)
{
    int64_t lowest = 0;
    int64_t highest = 0;
    int64_t element = (int64_t)us_dtype_size(view->dtype);
    int64_t first = 0;
    int64_t bytes = 0;
    if (!us_view_extent(view, &lowest, &highest) || __builtin_mul_overflow(lowest, element, &first) ||
        __builtin_sub_overflow(highest, lowest, &bytes) || __builtin_add_overflow(bytes, 1, &bytes) ||
        __builtin_mul_overflow(bytes, element, &bytes)) {
        return false;
    }
    use->address = (uintptr_t)view->data + (uintptr_t)first;
    use->size = (size_t)bytes;
    return true;
}

/* Columns of a part whose rows begin and grow evenly: `first` is one of them; gives the last. */
static int64_t last_even_column(const View *view, const ViewPart *part, int64_t first)
{
    const PartColumn begin = us_part_column(view, part, first);
    PartColumn before = begin, step = {0, 0};
    int64_t last = first;
    for (int64_t column = first + 1; column < view->shape[0]; column++) {
        const PartColumn next = us_part_column(view, part, column);
        const PartColumn change = {next.first - before.first, next.count - before.count};
        if (next.count == 0 || (column > first + 1 && (change.first != step.first || change.count != step.count))) {
            break;
        }
        before = next;
        step = change;
        last = column;
    }
    return last;
}

static Use use_of_columns(const View *view, const ViewPart *part, int64_t first, int64_t last, bool writes)
{
    const int64_t element = (int64_t)us_dtype_size(view->dtype), leading = view->strides[0];
    const PartColumn begin = us_part_column(view, part, first), end = us_part_column(view, part, last);
    const int64_t columns = last - first + 1, steps = columns > 1 ? columns - 1 : 1;
    const int64_t across = (last - first) * leading + end.first - begin.first;
    Use use = {
        .address = (uintptr_t)view->data + (uintptr_t)((first * leading + begin.first) * element),
        .size = (size_t)((across + end.count) * element), .writes = writes, .run = (size_t)(begin.count * element),
    };
    if (columns > 1) {
        use.level_count = 1;
        use.levels[0].count = (size_t)columns;
        use.levels[0].distance = (size_t)(across / steps * element);
        use.growth = (end.count - begin.count) / steps * element;
    }
    return use;
}

size_t us_uses_of_view(const View *view, const ViewPart *part, bool writes, Use uses[USES_OF_A_VIEW])
{
    size_t count = 0;
    Use reach = {.writes = writes};
    if (!us_view_use_reach(view, &reach)) {
        return 0;
    }
    if (us_part_is_all(part)) {
        describe_gaps(view, &reach);
        uses[0] = reach;
        return 1;
    }
    for (int64_t column = 0; column < view->shape[0] && count < USES_OF_A_VIEW; column++) {
        if (us_part_column(view, part, column).count > 0) {
            const int64_t last = last_even_column(view, part, column);
            uses[count++] = use_of_columns(view, part, column, last, writes);
            column = last;
        }
    }
    return count;
}
