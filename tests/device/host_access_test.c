/* Touches device memory (or, with an argument, address 16) from host code. */
#include "../check.h"
#include "device/device.h"

static const PlatformProfile profile = {.name = "Test", .memory_bytes = (size_t)1 << 30};

int main(int count, char **arguments)
{
    (void)arguments;
    Device *device = us_device(us_platform(0, &profile), 0);
    void *address = NULL;
    CHECK(us_memory_allocate(device, MEMORY_DEVICE, us_exactly(100), "aclTest", &address) == MEMORY_OK);
    volatile int *pointer = count > 1 ? (volatile int *)16 : (volatile int *)((char *)address + 8);
    *pointer = 42;
    printf("read %d\n", *pointer);
    return 0;
}
