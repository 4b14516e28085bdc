/* Many devices in a process whose address space is limited: bytes as the first argument, 0: no limit. */
#include "../check.h"
#include "device/device.h"

#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

static const PlatformProfile profile = {.name = "Test", .memory_bytes = (size_t)64 << 30};

static void *allocate(Device *device, MemoryKind kind, size_t size)
{
    void *address = NULL;
    CHECK(us_memory_allocate(device, kind, us_exactly(size), "test", &address) == MEMORY_OK);
    return address;
}

static DeviceFault nothing(void *argument, Explanation *why)
{
    (void)argument;
    (void)why;
    return DEVICE_FAULT_NONE;
}

int main(int argument_count, char **arguments)
{
    enum { ROUNDS = 500 };
    rlim_t limit = argument_count > 1 ? strtoull(arguments[1], NULL, 0) : 0;
    if (limit > 0) {
        CHECK(setrlimit(RLIMIT_AS, &(struct rlimit){limit, limit}) == 0);
    }
    Platform *platform = us_platform(0, &profile);
    CHECK(platform != NULL);
    for (int32_t i = 0; i < platform->device_count; i++) {
        Device *device = us_device(platform, i);
        CHECK(device != NULL);
        Context *context = us_context_primary(device);
        CHECK(context != NULL && us_stream_submit(context->default_stream, "nothing", nothing, NULL, NULL));
        allocate(device, MEMORY_DEVICE, 100);
        allocate(device, MEMORY_DEVICE, (size_t)4 << 20);
    }
    Device *device = us_device(platform, 0);
    for (int i = 0; i < ROUNDS; i++) {
        void *block = allocate(device, MEMORY_DEVICE, (size_t)64 << 20);
        CHECK(us_memory_free(platform, MEMORY_DEVICE, block, NULL) == MEMORY_OK);
        block = allocate(device, MEMORY_PINNED, (size_t)64 << 20);
        CHECK(us_memory_free(platform, MEMORY_PINNED, block, NULL) == MEMORY_OK);
        CHECK(us_address_reserve(platform, (size_t)64 << 20, 0, &block) == MEMORY_OK);
        CHECK(us_address_release(platform, block, NULL) == MEMORY_OK);
    }
    /* The program's own memory is not all taken. */
    void *own = malloc(limit > 0 ? limit / 8 : 1);
    CHECK(own != NULL);
    free(own);
    puts("ok");
    return 0;
}
