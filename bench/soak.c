/* Allocates and frees for ever, in each way a stack has, and prints what that costs: rounds per second, and how many
 * mappings and how much memory the process has before and after. Arguments: stack case rounds. Linked with one stack. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef SOAK_MACA
#include "mc_runtime.h"

static int allocate(void **address, size_t size, int pinned)
{
    return pinned ? mcMallocHost(address, size, 0) : mcMalloc(address, size);
}

static int release(void *address, int pinned)
{
    return pinned ? mcFreeHost(address) : mcFree(address);
}

static int start(void)
{
    return mcSetDevice(0);
}

static int reserve_round(size_t size)
{
    (void)size;
    void *address = NULL;
    return mcMallocAsync(&address, 4096, NULL) || mcFreeAsync(address, NULL);
}

static int map_round(size_t size)
{
    return reserve_round(size);
}
#else
#include "acl/acl.h"

static int allocate(void **address, size_t size, int pinned)
{
    return pinned ? aclrtMallocHost(address, size) : aclrtMalloc(address, size, ACL_MEM_MALLOC_HUGE_FIRST);
}

static int release(void *address, int pinned)
{
    return pinned ? aclrtFreeHost(address) : aclrtFree(address);
}

static int start(void)
{
    return aclInit(NULL) || aclrtSetDevice(0);
}

static int reserve_round(size_t size)
{
    void *address = NULL;
    return aclrtReserveMemAddress(&address, size, 0, NULL, 0) || aclrtReleaseMemAddress(address);
}

static int map_round(size_t size)
{
    void *address = NULL;
    aclrtDrvMemHandle handle = NULL;
    aclrtPhysicalMemProp property;
    memset(&property, 0, sizeof property);
    property.memAttr = ACL_HBM_MEM_HUGE;
    property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    return aclrtReserveMemAddress(&address, size, 0, NULL, 0) || aclrtMallocPhysical(&handle, size, &property, 0) ||
           aclrtMapMem(address, size, 0, handle, 0) || aclrtMemset(address, 64, 1, 64) || aclrtUnmapMem(address) ||
           aclrtFreePhysical(handle) || aclrtReleaseMemAddress(address);
}
#endif

/* Sizes that change from round to round, with some blocks that stay for a while. */
static int mixed_round(long round)
{
    enum { KEPT = 100 };
    static void *kept[KEPT];
    static const size_t sizes[] = {100, 5000, (size_t)3 << 20, 70000, (size_t)40 << 20};
    void **slot = &kept[round % KEPT];
    if (*slot != NULL && release(*slot, 0)) {
        return 1;
    }
    return allocate(slot, sizes[(round * 7 + round / KEPT) % 5], 0);
}

static int one_round(const char *name, long round)
{
    static const size_t SMALL = 1000, MEDIUM = (size_t)4 << 20, LARGE = (size_t)1 << 30;
    int pinned = strncmp(name, "pinned", 6) == 0;
    size_t size = strstr(name, "small") ? SMALL : strstr(name, "medium") ? MEDIUM : LARGE;
    if (strcmp(name, "mixed") == 0) {
        return mixed_round(round);
    }
    if (strcmp(name, "reserve") == 0) {
        return reserve_round((size_t)64 << 30);
    }
    if (strcmp(name, "map") == 0) {
        return map_round((size_t)2 << 20);
    }
    void *address = NULL;
    return allocate(&address, size, pinned) || release(address, pinned);
}

static long mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    long lines = 0;
    for (int letter = file != NULL ? getc(file) : EOF; letter != EOF; letter = getc(file)) {
        lines += letter == '\n';
    }
    if (file != NULL) {
        fclose(file);
    }
    return lines;
}

/* MiB in memory, MiB of addresses. */
static void memory(long *resident, long *addresses)
{
    long pages[2] = {0, 0};
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL) {
        if (fscanf(file, "%ld %ld", &pages[0], &pages[1]) != 2) {
            pages[0] = pages[1] = 0;
        }
        fclose(file);
    }
    *addresses = pages[0] * (sysconf(_SC_PAGESIZE) / 1024) / 1024;
    *resident = pages[1] * (sysconf(_SC_PAGESIZE) / 1024) / 1024;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int count, char **arguments)
{
    if (count != 3) {
        fprintf(stderr, "usage: %s {small|medium|large|pinned-small|pinned-medium|mixed|reserve|map} rounds\n", arguments[0]);
        return 2;
    }
    long rounds = strtol(arguments[2], NULL, 0);
    long warm_up = rounds / 20;
    long before = 0, resident = 0, addresses = 0;
    double begin = now();
    if (start() != 0) {
        return 1;
    }
    for (long round = 0; round < rounds; round++) {
        if (one_round(arguments[1], round) != 0) {
            printf("%-14s failed in round %ld with %ld mappings\n", arguments[1], round, mappings());
            return 1;
        }
        before = round == warm_up ? mappings() : before;
    }
    memory(&resident, &addresses);
    printf("%-14s %8ld rounds  %6.2f us each  mappings %ld -> %ld  resident %ld MiB  addresses %ld MiB\n", arguments[1], rounds,
           (now() - begin) * 1e6 / (double)rounds, before, mappings(), resident, addresses);
    return 0;
}
