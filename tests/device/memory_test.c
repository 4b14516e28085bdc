/* Allocation registry, translation, copies and fills of the emulated device. */
#include "../check.h"
#include "device/device.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const PlatformProfile profile = {.name = "Test", .memory_bytes = (size_t)1 << 30};

static void *allocate(Device *device, MemoryKind kind, size_t size)
{
    void *address = NULL;
    CHECK(us_memory_allocate(device, kind, us_exactly(size), "test", &address) == MEMORY_OK);
    CHECK((uintptr_t)address % 512 == 0);
    return address;
}

static void test_sizes(Device *device)
{
    static const size_t sizes[] = {1, 31, 512, 4095, 4096, 4097, 65536, 2097151, 2097152, 2097153, 5000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *block = allocate(device, MEMORY_DEVICE, sizes[i]);
        Explanation why;
        char *opened = us_memory_open(device->platform, device, block, sizes[i], MEMORY_USER_KERNEL, &why);
        CHECK(opened != NULL);
        memset(opened, 7, sizes[i]);
        CHECK(us_memory_open(device->platform, device, block, sizes[i] + 1, MEMORY_USER_KERNEL, &why) == NULL);
        CHECK(strstr(why.text, "leave it") != NULL);
        char *end = (char *)block + sizes[i];
        CHECK(us_memory_open(device->platform, device, end, 0, MEMORY_USER_KERNEL, &why) != NULL);
        CHECK(us_memory_open(device->platform, device, end, 1, MEMORY_USER_KERNEL, &why) == NULL);
        CHECK(us_memory_free(device->platform, MEMORY_DEVICE, block, &why) == MEMORY_OK);
    }
}

/* On the card whole pages are mapped. */
static void test_reach(Device *device)
{
    BlockSize size = {.asked = 100, .charged = 160, .mapped = 4096};
    char *block = NULL;
    Explanation why;
    size_t free_before = 0, free_after = 0, total = 0;
    us_memory_info(device, &free_before, &total);
    CHECK(us_memory_allocate(device, MEMORY_DEVICE, size, "test", (void **)&block) == MEMORY_OK);
    us_memory_info(device, &free_after, &total);
    CHECK(free_before - free_after == 160);
    CHECK(us_memory_open(device->platform, device, block + 99, 3997, MEMORY_USER_KERNEL, &why) != NULL);
    CHECK(us_memory_open(device->platform, device, block + 99, 3998, MEMORY_USER_KERNEL, &why) == NULL);
    CHECK(strstr(why.text, "99 bytes into block") != NULL && strstr(why.text, "(100 bytes of device memory") != NULL);
    CHECK(us_memory_free(device->platform, MEMORY_DEVICE, block, NULL) == MEMORY_OK);
}

static void test_exhaustion(Device *device)
{
    static const size_t absurd[] = {(size_t)1 << 31, (size_t)1 << 62, (size_t)1 << 63, SIZE_MAX - 4096, SIZE_MAX};
    size_t free_before = 0, total = 0, free_after = 0;
    us_memory_info(device, &free_before, &total);
    CHECK(total == (size_t)1 << 30 && free_before == total);
    void *address = NULL;
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
        CHECK(us_memory_allocate(device, MEMORY_DEVICE, us_exactly(absurd[i]), "test", &address) == MEMORY_EXHAUSTED);
        CHECK(us_memory_allocate(device, MEMORY_PINNED, us_exactly(absurd[i] | (size_t)1 << 60), "test", &address) ==
              MEMORY_EXHAUSTED);
    }
    void *all = allocate(device, MEMORY_DEVICE, total);
    CHECK(us_memory_allocate(device, MEMORY_DEVICE, us_exactly(1), "test", &address) == MEMORY_EXHAUSTED);
    us_memory_info(device, &free_after, &total);
    CHECK(free_after == 0);
    CHECK(us_memory_free(device->platform, MEMORY_DEVICE, all, NULL) == MEMORY_OK);
    us_memory_info(device, &free_after, &total);
    CHECK(free_after == free_before);
}

static void test_freed_addresses_rest(Device *device)
{
    enum { ROUNDS = 300 };
    static uintptr_t seen[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        size_t size = i % 3 == 0 ? 3000000 : 100;
        void *block = allocate(device, MEMORY_DEVICE, size);
        seen[i] = (uintptr_t)block;
        for (int before = 0; before < i; before++) {
            CHECK(seen[before] != seen[i]);
        }
        char *opened = us_memory_open(device->platform, device, block, size, MEMORY_USER_COPY, NULL);
        memset(opened, i, size);
        CHECK(us_memory_free(device->platform, MEMORY_DEVICE, block, NULL) == MEMORY_OK);
        Explanation why;
        CHECK(us_memory_open(device->platform, device, block, 1, MEMORY_USER_KERNEL, &why) == NULL);
        CHECK(strstr(why.text, "freed") != NULL);
        CHECK(us_memory_free(device->platform, MEMORY_DEVICE, block, &why) == MEMORY_NOT_FOUND);
        CHECK(strstr(why.text, "freed already") != NULL);
    }
}

static int mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    int lines = 0;
    for (int letter = getc(maps); letter != EOF; letter = getc(maps)) {
        lines += letter == '\n';
    }
    fclose(maps);
    return lines;
}

/* More rounds than there are addresses, and than a process may have mappings, with some blocks that stay. */
static void test_addresses_come_back(Device *device, MemoryKind kind)
{
    enum { ROUNDS = 80000, KEPT = 50 };
    static const size_t sizes[] = {(size_t)4 << 20, 100, (size_t)512 << 20, 5000, 2097151};
    void *kept[KEPT] = {NULL};
    int before = 0;
    for (int i = 0; i < ROUNDS; i++) {
        void *block = allocate(device, kind, sizes[i % 5]);
        void **slot = &kept[i % KEPT];
        if (sizes[i % 5] < 10000 && i % 7 == 0) {
            void *old = *slot;
            *slot = block;
            block = old;
        }
        CHECK(block == NULL || us_memory_free(device->platform, kind, block, NULL) == MEMORY_OK);
        before = i == ROUNDS / 4 ? mappings() : before;
    }
    CHECK(mappings() <= before);
    for (int i = 0; i < KEPT; i++) {
        CHECK(kept[i] == NULL || us_memory_free(device->platform, kind, kept[i], NULL) == MEMORY_OK);
    }
}

/* Live blocks never share an address, and keep what is in them, whatever comes and goes. */
static void test_blocks_do_not_overlap(Device *device)
{
    enum { BLOCKS = 64, ROUNDS = 20000 };
    struct { char *address, *bytes; size_t size; char value; } live[BLOCKS] = {{0}};
    unsigned state = 1;
    for (int i = 0; i < ROUNDS; i++) {
        state = state * 1664525u + 1013904223u;
        unsigned k = (state >> 8) % BLOCKS;
        if (live[k].address != NULL) {
            CHECK(live[k].bytes[0] == live[k].value && live[k].bytes[live[k].size - 1] == live[k].value);
            CHECK(us_memory_free(device->platform, MEMORY_DEVICE, live[k].address, NULL) == MEMORY_OK);
        }
        size_t size = (state >> 16) % 4 == 0 ? ((state >> 18) % 5 + 1) << 20 : (state >> 16) % 20000 + 1;
        live[k].address = allocate(device, MEMORY_DEVICE, size);
        live[k].bytes = us_memory_open(device->platform, device, live[k].address, size, MEMORY_USER_COPY, NULL);
        CHECK(live[k].bytes != NULL);
        live[k].size = size;
        live[k].value = (char)i;
        live[k].bytes[0] = live[k].bytes[size - 1] = (char)i;
    }
    for (int k = 0; k < BLOCKS; k++) {
        CHECK(live[k].address == NULL ||
              us_memory_free(device->platform, MEMORY_DEVICE, live[k].address, NULL) == MEMORY_OK);
    }
}

static void test_reservations_come_back(Platform *platform)
{
    enum { ROUNDS = 3000 };
    uintptr_t previous = 0;
    int before = mappings();
    for (int i = 0; i < ROUNDS; i++) {
        void *address = NULL;
        size_t alignment = i % 2 == 0 ? 0 : (size_t)1 << 30;
        CHECK(us_address_reserve(platform, (size_t)64 << 30, alignment, &address) == MEMORY_OK);
        CHECK((uintptr_t)address % (alignment > 0 ? alignment : 512) == 0 && (uintptr_t)address != previous);
        previous = (uintptr_t)address;
        CHECK(us_address_release(platform, address, NULL) == MEMORY_OK);
        CHECK(us_address_release(platform, address, NULL) == MEMORY_NOT_FOUND);
    }
#ifndef __SANITIZE_THREAD__ /* whose shadow memory is mapped as addresses are used */
    CHECK(mappings() < before + 30);
#else
    (void)before;
#endif
}

static void test_foreign_pointers(Device *device)
{
    Platform *platform = device->platform;
    Explanation why;
    int local = 0;
    CHECK(us_memory_free(platform, MEMORY_DEVICE, &local, &why) == MEMORY_NOT_FOUND);
    CHECK(us_memory_open(platform, device, &local, 4, MEMORY_USER_KERNEL, &why) == NULL);
    CHECK(us_memory_open(platform, device, &local, 4, MEMORY_USER_COPY, &why) == &local);
    char *block = allocate(device, MEMORY_DEVICE, 100);
    CHECK(us_memory_free(platform, MEMORY_DEVICE, block + 1, &why) == MEMORY_NOT_FOUND);
    CHECK(us_memory_free(platform, MEMORY_PINNED, block, &why) == MEMORY_NOT_FOUND);
    CHECK(us_memory_open(platform, device, block - 8, 4, MEMORY_USER_COPY, &why) == NULL);
    CHECK(us_memory_open(platform, device, block - 8, 16, MEMORY_USER_COPY, &why) == NULL);
    CHECK(us_memory_open(platform, device, block - ((size_t)1 << 50), (size_t)1 << 51, MEMORY_USER_COPY, &why) == NULL);
    long page = sysconf(_SC_PAGESIZE);
    char *hole = mmap(NULL, 3 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(hole != MAP_FAILED && munmap(hole + page, (size_t)page) == 0);
    CHECK(us_memory_open(platform, NULL, hole, (size_t)page, MEMORY_USER_COPY, &why) == hole);
    CHECK(us_memory_open(platform, NULL, hole + page - 1, 2, MEMORY_USER_COPY, &why) == NULL);
    CHECK(us_memory_open(platform, NULL, hole + 8, 2 * (size_t)page, MEMORY_USER_COPY, &why) == NULL);
    CHECK(us_memory_register(platform, hole, 2 * (size_t)page, true, "test") == MEMORY_NOT_FOUND);
    Device *second = us_device(platform, 1);
    CHECK(second != NULL && us_device(platform, 2) == NULL && us_device(platform, -1) == NULL);
    CHECK(us_memory_open(platform, second, block, 4, MEMORY_USER_KERNEL, &why) == NULL);
    CHECK(strstr(why.text, "another device") != NULL);
    CHECK(us_memory_free(platform, MEMORY_DEVICE, block, NULL) == MEMORY_OK);
}

static void test_pinned_and_registered(Device *device)
{
    Platform *platform = device->platform;
    Explanation why;
    char *pinned = allocate(device, MEMORY_PINNED, 1000);
    memset(pinned, 1, 1000); /* the host may use it */
    CHECK(us_memory_open(platform, device, pinned, 1000, MEMORY_USER_KERNEL, &why) == NULL);
    CHECK(us_memory_open(platform, device, pinned, 1000, MEMORY_USER_COPY, &why) == pinned);
    CHECK(us_memory_open(platform, device, pinned, 1001, MEMORY_USER_COPY, &why) == NULL);
    CHECK(us_memory_free(platform, MEMORY_PINNED, pinned, NULL) == MEMORY_OK);
    char *managed = allocate(device, MEMORY_MANAGED, 1000);
    memset(managed, 1, 1000);
    CHECK(us_memory_open(platform, device, managed, 1000, MEMORY_USER_KERNEL, &why) == managed);
    CHECK(us_memory_free(platform, MEMORY_MANAGED, managed, NULL) == MEMORY_OK);
    static char range[100];
    Allocation found;
    CHECK(us_memory_register(platform, range, sizeof range, false, "test") == MEMORY_OK);
    CHECK(us_memory_register(platform, range + 50, 10, true, "test") == MEMORY_EXHAUSTED);
    CHECK(us_memory_find(platform, range + 99, &found) && found.kind == MEMORY_PINNED && found.size == 100);
    CHECK(us_memory_unregister(platform, range + 1) == MEMORY_NOT_FOUND);
    CHECK(us_memory_open(platform, device, range, 1, MEMORY_USER_KERNEL, &why) == NULL);
    CHECK(us_memory_unregister(platform, range) == MEMORY_OK);
    CHECK(us_memory_register(platform, range, sizeof range, true, "test") == MEMORY_OK);
    CHECK(us_memory_open(platform, device, range, 100, MEMORY_USER_KERNEL, &why) == range);
    CHECK(us_memory_open(platform, device, range, 101, MEMORY_USER_KERNEL, &why) == NULL);
    CHECK(us_memory_unregister(platform, range) == MEMORY_OK);
    CHECK(!us_memory_find(platform, range, &found));
}

static void test_copies(Device *device)
{
    Platform *platform = device->platform;
    Explanation why;
    char host[64], back[64];
    for (int i = 0; i < 64; i++) {
        host[i] = (char)i;
    }
    char *block = allocate(device, MEMORY_DEVICE, 64);
    Copy up = {.destination = block, .source = host, .width = 64, .height = 1, .destination_side = SIDE_DEVICE,
               .source_side = SIDE_HOST};
    CHECK(us_copy_check(platform, &up, &why) == COPY_OK && us_copy_run(platform, &up, &why) == COPY_OK);
    Copy wrong = up;
    wrong.destination_side = SIDE_HOST;
    CHECK(us_copy_check(platform, &wrong, &why) == COPY_WRONG_SIDE && strstr(why.text, "device memory") != NULL);
    wrong = up;
    wrong.source_side = SIDE_DEVICE;
    CHECK(us_copy_run(platform, &wrong, &why) == COPY_WRONG_SIDE);
    wrong = up;
    wrong.width = 65;
    CHECK(us_copy_run(platform, &wrong, &why) == COPY_OUT_OF_BOUNDS);
    /* Every second byte of four rows: a rectangle with different pitches. */
    memset(back, 0, sizeof back);
    Copy rectangle = {.destination = back, .source = block + 1, .width = 3, .height = 4, .destination_pitch = 4,
                      .source_pitch = 21, .destination_side = SIDE_HOST, .source_side = SIDE_DEVICE};
    CHECK(us_copy_run(platform, &rectangle, &why) == COPY_OUT_OF_BOUNDS); /* ends at 1 + 63 + 3 */
    rectangle.source_pitch = 20;                                            /* ends at 1 + 60 + 3 = 64 */
    CHECK(us_copy_run(platform, &rectangle, &why) == COPY_OK);
    for (int row = 0; row < 4; row++) {
        for (int column = 0; column < 4; column++) {
            CHECK(back[4 * row + column] == (column < 3 ? 1 + 20 * row + column : 0));
        }
    }
    rectangle.height = SIZE_MAX / 2;
    CHECK(us_copy_run(platform, &rectangle, &why) == COPY_OUT_OF_BOUNDS);
    Fill fill = {.destination = block + 4, .count = 15, .element_size = 4, .value = 0x01020304};
    CHECK(us_fill_run(platform, &fill, &why) == COPY_OK);
    fill.count = 16;
    CHECK(us_fill_run(platform, &fill, &why) == COPY_OUT_OF_BOUNDS);
    fill.count = SIZE_MAX / 2;
    CHECK(us_fill_run(platform, &fill, &why) == COPY_OUT_OF_BOUNDS);
    Copy down = {.destination = back, .source = block, .width = 64, .height = 1};
    CHECK(us_copy_run(platform, &down, &why) == COPY_OK && back[3] == 3 && back[4] == 4 && back[7] == 1);
    CHECK(us_memory_free(platform, MEMORY_DEVICE, block, NULL) == MEMORY_OK);
    CHECK(us_copy_run(platform, &down, &why) == COPY_FREED);
}

int main(void)
{
    Platform *platform = us_platform(3, &profile);
    CHECK(platform != NULL && platform->device_count == 2 && us_platform(3, &profile) == platform);
    Device *device = us_device(platform, 0);
    CHECK(device != NULL);
    test_sizes(device);
    test_reach(device);
    test_exhaustion(device);
    test_freed_addresses_rest(device);
    test_blocks_do_not_overlap(device);
    test_addresses_come_back(device, MEMORY_DEVICE);
    test_addresses_come_back(device, MEMORY_PINNED);
    test_reservations_come_back(platform);
    test_foreign_pointers(device);
    test_pinned_and_registered(device);
    test_copies(device);
    us_device_reset(device, true);
    puts("ok");
    return 0;
}
