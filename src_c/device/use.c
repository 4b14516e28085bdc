#include "device/use.h"

#include <string.h>

bool us_uses_overlap(const Use *a, const Use *b)
{
    return a->address < b->address + b->size && b->address < a->address + a->size;
}

/* From the first to the last byte of the levels from this one on. */
static size_t extent_of(const Use *use, int32_t level)
{
    size_t extent = use->level_count == 0 ? use->size : use->run;
    for (int32_t i = level; i < use->level_count && i < USE_LEVEL_LIMIT; i++) {
        extent += (use->levels[i].count - 1) * use->levels[i].distance;
    }
    return extent;
}

/* Whether some byte of [first, end) is used by what the levels from this one on repeat, the first of them at `base`. */
static bool touches(const Use *use, int32_t level, uintptr_t base, uintptr_t first, uintptr_t end)
{
    if (first >= base + extent_of(use, level) || end <= base) {
        return false;
    }
    if (level == use->level_count || level == USE_LEVEL_LIMIT) {
        return true;
    }
    size_t distance = use->levels[level].distance;
    size_t inner = extent_of(use, level + 1);
    size_t from = first >= base + inner ? (first - base - inner) / distance : 0;
    for (size_t i = from; i < use->levels[level].count && base + i * distance < end; i++) {
        if (touches(use, level + 1, base + i * distance, first, end)) {
            return true;
        }
    }
    return false;
}

/* Whether the other use has a byte of what the levels from this one on repeat. */
static bool meet(const Use *use, int32_t level, uintptr_t base, const Use *other)
{
    if (!touches(other, 0, other->address, base, base + extent_of(use, level))) {
        return false;
    }
    if (level == use->level_count || level == USE_LEVEL_LIMIT) {
        return true;
    }
    bool found = false;
    for (size_t i = 0; i < use->levels[level].count && !found; i++) {
        found = meet(use, level + 1, base + i * use->levels[level].distance, other);
    }
    return found;
}

bool us_uses_conflict(const Use *a, const Use *b)
{
    return (a->writes || b->writes) && us_uses_overlap(a, b) && meet(a, 0, a->address, b);
}

bool us_uses_are_alike(const Use *a, const Use *b)
{
    return a->address == b->address && a->run == b->run && a->level_count == b->level_count &&
           memcmp(a->levels, b->levels, sizeof a->levels) == 0;
}
