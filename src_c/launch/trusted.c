#include "launch/trusted.h"

#include "kernels/detach.h"

#include <stdlib.h>
#include <string.h>

typedef struct Reading {
    int32_t count;
    View *views;
    const ViewAccess *access;
} Reading;

static bool is_trusted(const Reading *all, int32_t i)
{
    const DType dtype = all->views[i].dtype;
    return all->access[i] == VIEW_READ && dtype >= DTYPE_INT8 && dtype <= DTYPE_BOOL;
}

static bool is_in_danger(const Reading *all, int32_t i)
{
    for (int32_t k = 0; k < all->count; k++) {
        if ((all->access[k] & VIEW_WRITE) != 0 && us_views_collide(&all->views[i], &all->views[k])) {
            return true;
        }
    }
    return false;
}

static bool reads(const Reading *all, int32_t i, const char *begin, const char *end, const char **first,
                  const char **last)
{
    return all->access[i] == VIEW_READ && us_view_reach(&all->views[i], first, last) && *first < end && begin < *last;
}

/* Kernels may look at the distance of views that a plan makes of one operand: all of them move together. */
static char *move_together(const Reading *all, int32_t i)
{
    const char *begin, *end, *first, *last;
    us_view_reach(&all->views[i], &begin, &end);
    for (int32_t k = 0; k < all->count; k++) {
        if (reads(all, k, begin, end, &first, &last) && (first < begin || last > end)) {
            begin = first < begin ? first : begin;
            end = last > end ? last : end;
            k = -1; /* a larger range may meet others */
        }
    }
    const size_t size = (size_t)(end - begin), beside = (uintptr_t)begin % _Alignof(max_align_t);
    char *memory = malloc(beside + size);
    if (memory == NULL) {
        return NULL;
    }
    char *copy = memory + beside; /* aligned as what it is of */
    memcpy(copy, begin, size);
    for (int32_t k = 0; k < all->count; k++) {
        if (reads(all, k, begin, end, &first, &last)) {
            all->views[k].data = copy + ((const char *)all->views[k].data - begin);
        }
    }
    return memory;
}

bool us_trusted_begin(Trusted *trusted, int32_t count, View *views, const ViewAccess *access)
{
    const Reading all = {count, views, access};
    int32_t places[TRUSTED_LIMIT], found = 0;
    trusted->count = 0;
    for (int32_t i = 0; i < count; i++) {
        if (is_trusted(&all, i)) {
            if (found == TRUSTED_LIMIT) {
                return true;
            }
            places[found++] = i;
        }
    }
    for (int32_t k = 0; k < found; k++) {
        if (is_in_danger(&all, places[k])) {
            char *copy = move_together(&all, places[k]);
            if (copy == NULL) {
                return false;
            }
            trusted->copies[trusted->count++] = copy;
        }
    }
    return true;
}

void us_trusted_end(Trusted *trusted)
{
    for (int32_t k = 0; k < trusted->count; k++) {
        free(trusted->copies[k]);
    }
}
