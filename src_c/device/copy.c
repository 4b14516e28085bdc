/* Checked copies and fills: between any two memories the platform knows, or ordinary host memory. */
#include "device/check.h"
#include "device/stream_internal.h"

#include <stdint.h>
#include <string.h>

/* Bytes from the first to behind the last byte of the rectangle; false on overflow. */
static bool reach(size_t width, size_t height, size_t pitch, size_t *bytes)
{
    if (width == 0 || height == 0) {
        *bytes = 0;
        return true;
    }
    size_t rows = 0;
    return !__builtin_mul_overflow(pitch, height - 1, &rows) && !__builtin_add_overflow(rows, width, bytes);
}

static bool is_on_side(Platform *platform, const void *address, Side side, Explanation *why, const char *role)
{
    if (side == SIDE_ANY) {
        return true;
    }
    Allocation block;
    const bool known = us_memory_find(platform, address, &block);
    if (!known && us_virtual_holds(platform_state(platform), (uintptr_t)address, 1) != NULL) {
        return true; /* reserved, and nothing is mapped there: what opens it says so */
    }
    const MemoryKind kind = known ? block.kind : MEMORY_HOST;
    if (kind == MEMORY_MANAGED || (known && block.both_sides) || (kind == MEMORY_DEVICE) == (side == SIDE_DEVICE)) {
        return true;
    }
    if (kind == MEMORY_DEVICE) {
        us_explain(why, "the %s %p is device memory (%zu bytes into block #%llu of %zu bytes from %s), not host memory",
                   role, address, (uintptr_t)address - block.address, (unsigned long long)block.serial, block.size,
                   block.function);
    } else {
        us_explain(why, "the %s %p is host memory, not device memory", role, address);
    }
    return false;
}

static CopyFault fault_of(Platform *platform, const void *address)
{
    Allocation block;
    return us_memory_find(platform, address, &block) && block.freed ? COPY_FREED : COPY_OUT_OF_BOUNDS;
}

/* Opens one end of a copy. */
static CopyFault open_end(Platform *platform, const void *address, size_t bytes, const char *role, void **opened,
                          Explanation *why)
{
    Explanation detail;
    *opened = us_memory_open(platform, NULL, address, bytes, MEMORY_USER_COPY, &detail);
    if (*opened == NULL) {
        us_explain(why, "the %s: %s", role, detail.text);
        return fault_of(platform, address);
    }
    return COPY_OK;
}

static CopyFault open_copy(Platform *platform, const Copy *copy, void **destination, void **source, Explanation *why)
{
    if (!is_on_side(platform, copy->destination, copy->destination_side, why, "destination") ||
        !is_on_side(platform, copy->source, copy->source_side, why, "source")) {
        return COPY_WRONG_SIDE;
    }
    size_t destination_bytes = 0;
    size_t source_bytes = 0;
    if (!reach(copy->width, copy->height, copy->destination_pitch, &destination_bytes) ||
        !reach(copy->width, copy->height, copy->source_pitch, &source_bytes)) {
        us_explain(why, "%zu rows of %zu bytes exceed the address space", copy->height, copy->width);
        return COPY_OUT_OF_BOUNDS;
    }
    CopyFault fault = open_end(platform, copy->destination, destination_bytes, "destination", destination, why);
    return fault != COPY_OK ? fault : open_end(platform, copy->source, source_bytes, "source", source, why);
}

CopyFault us_copy_check(Platform *platform, const Copy *copy, Explanation *why)
{
    void *destination = NULL;
    void *source = NULL;
    return open_copy(platform, copy, &destination, &source, why);
}

CopyFault us_copy_perform(Platform *platform, const Copy *copy, Explanation *why)
{
    void *destination = NULL;
    void *source = NULL;
    CopyFault fault = open_copy(platform, copy, &destination, &source, why);
    if (fault != COPY_OK) {
        return fault;
    }
    for (size_t row = 0; row < copy->height && copy->width > 0; row++) {
        memmove((char *)destination + row * copy->destination_pitch, (const char *)source + row * copy->source_pitch,
                copy->width);
        us_check_copied(platform, (char *)copy->destination + row * copy->destination_pitch,
                        (const char *)copy->source + row * copy->source_pitch, copy->width);
    }
    return COPY_OK;
}

CopyFault us_copy_run(Platform *platform, const Copy *copy, Explanation *why)
{
    if (us_checks() & CHECK_SYNC) {
        size_t source_bytes = 0, destination_bytes = 0;
        if (reach(copy->width, copy->height, copy->source_pitch, &source_bytes) &&
            reach(copy->width, copy->height, copy->destination_pitch, &destination_bytes)) {
            us_check_host_copy(copy->source, source_bytes, false);
            us_check_host_copy(copy->destination, destination_bytes, true);
        }
    }
    CopyFault fault = us_copy_perform(platform, copy, why);
    us_value_look_again();
    return fault;
}

static CopyFault open_fill(Platform *platform, const Fill *fill, void **destination, Explanation *why)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(fill->count, fill->element_size, &bytes)) {
        us_explain(why, "%zu elements of %zu bytes exceed the address space", fill->count, fill->element_size);
        return COPY_OUT_OF_BOUNDS;
    }
    return open_end(platform, fill->destination, bytes, "destination", destination, why);
}

CopyFault us_fill_check(Platform *platform, const Fill *fill, Explanation *why)
{
    void *destination = NULL;
    return open_fill(platform, fill, &destination, why);
}

CopyFault us_fill_perform(Platform *platform, const Fill *fill, Explanation *why)
{
    void *destination = NULL;
    CopyFault fault = open_fill(platform, fill, &destination, why);
    if (fault != COPY_OK) {
        return fault;
    }
    us_check_mark_written(platform, fill->destination, fill->count * fill->element_size);
    if (fill->element_size == 1) {
        memset(destination, (int)(fill->value & 0xff), fill->count);
        return COPY_OK;
    }
    char *bytes = destination;
    for (size_t i = 0; i < fill->count; i++) {
        memcpy(bytes + i * sizeof fill->value, &fill->value, sizeof fill->value);
    }
    return COPY_OK;
}

CopyFault us_fill_run(Platform *platform, const Fill *fill, Explanation *why)
{
    size_t bytes = 0;
    if (!__builtin_mul_overflow(fill->count, fill->element_size, &bytes)) {
        us_check_host_copy(fill->destination, bytes, true);
    }
    CopyFault fault = us_fill_perform(platform, fill, why);
    us_value_look_again();
    return fault;
}
