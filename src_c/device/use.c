#include "device/use.h"

#include <string.h>

bool us_uses_overlap(const Use *a, const Use *b)
{
    return a->address < b->address + b->size && b->address < a->address + a->size;
}

/* From the first to the last byte of the levels from this one on. */
static size_t extent_of(const Use *use, int32_t level)
{
    if (use->level_count == 0 || (level == 0 && use->growth != 0)) {
        return use->size;
    }
    size_t extent = use->run;
    for (int32_t i = level; i < use->level_count && i < USE_LEVEL_LIMIT; i++) {
        extent += (use->levels[i].count - 1) * use->levels[i].distance;
    }
    return extent;
}

/* The same of the levels within this one, at one of its indices. */
static size_t inner_extent(const Use *use, int32_t level, size_t index)
{
    return use->growth != 0 ? use->run + index * (size_t)use->growth : extent_of(use, level + 1);
}

static size_t largest_inner_extent(const Use *use, int32_t level)
{
    return inner_extent(use, level, use->growth > 0 ? use->levels[level].count - 1 : 0);
}

static bool is_run(const Use *use, int32_t level)
{
    return level == use->level_count || level == USE_LEVEL_LIMIT;
}

/* `extent` bytes from `base` on, of what the levels from this one on repeat. */
typedef struct Stretch {
    int32_t level;
    uintptr_t base;
    size_t extent;
} Stretch;

static Stretch inner_stretch(const Use *use, const Stretch *outer, size_t index)
{
    return (Stretch){outer->level + 1, outer->base + index * use->levels[outer->level].distance,
                     inner_extent(use, outer->level, index)};
}

static Stretch whole_of(const Use *use)
{
    return (Stretch){0, use->address, extent_of(use, 0)};
}

/* Whether some byte of [first, end) is used within the stretch. */
static bool touches(const Use *use, const Stretch *within, uintptr_t first, uintptr_t end)
{
    if (first >= within->base + within->extent || end <= within->base) {
        return false;
    }
    if (is_run(use, within->level)) {
        return true;
    }
    size_t distance = use->levels[within->level].distance;
    size_t inner = largest_inner_extent(use, within->level);
    size_t from = first >= within->base + inner ? (first - within->base - inner) / distance : 0;
    for (size_t i = from; i < use->levels[within->level].count && within->base + i * distance < end; i++) {
        const Stretch next = inner_stretch(use, within, i);
        if (touches(use, &next, first, end)) {
            return true;
        }
    }
    return false;
}

/* Whether the other use has a byte of the stretch. */
static bool meet(const Use *use, const Stretch *within, const Use *other)
{
    const Stretch all = whole_of(other);
    if (!touches(other, &all, within->base, within->base + within->extent)) {
        return false;
    }
    if (is_run(use, within->level)) {
        return true;
    }
    bool found = false;
    for (size_t i = 0; i < use->levels[within->level].count && !found; i++) {
        const Stretch next = inner_stretch(use, within, i);
        found = meet(use, &next, other);
    }
    return found;
}

bool us_uses_conflict(const Use *a, const Use *b)
{
    const Stretch all = whole_of(a);
    return (a->writes || b->writes) && us_uses_overlap(a, b) && meet(a, &all, b);
}

bool us_uses_are_alike(const Use *a, const Use *b)
{
    return a->address == b->address && a->run == b->run && a->growth == b->growth && a->level_count == b->level_count &&
           memcmp(a->levels, b->levels, sizeof a->levels) == 0;
}
