#include "ftdsp/space.h"

#include "device/team.h"
#include "ftdsp/chip.h"
#include "report/report.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define MIB (UINT64_C(1) << 20)
#define L2_SIZE (256 * MIB)

enum { OWN_L2 = 3, FIRST_ALIAS = 4, WINDOW_COUNT = FIRST_ALIAS + FT_CORE_LIMIT };

static FtWindow windows[WINDOW_COUNT] = {
    {"SMC", FT_SMC, 0, 0x0C000000, 4 * MIB, false},
    {"DDR", FT_DDR, 0, 0x80000000, 2048 * MIB, false},
    {"DDR (36 bits)", FT_DDR, 0, 0xD00000000, 4096 * MIB, false},
    {"L2", FT_L2, 0, 0x10000000, L2_SIZE, false},
    {"L2 of core 0", FT_L2, 0, 0x1000000000, L2_SIZE, false},
    {"L2 of core 1", FT_L2, 1, 0x1010000000, L2_SIZE, false},
    {"L2 of core 2", FT_L2, 2, 0x1020000000, L2_SIZE, false},
    {"L2 of core 3", FT_L2, 3, 0x1030000000, L2_SIZE, false},
    {"L2 of core 4", FT_L2, 4, 0x1040000000, L2_SIZE, false},
    {"L2 of core 5", FT_L2, 5, 0x1050000000, L2_SIZE, false},
    {"L2 of core 6", FT_L2, 6, 0x1060000000, L2_SIZE, false},
    {"L2 of core 7", FT_L2, 7, 0x1070000000, L2_SIZE, false},
};

/* AddressSanitizer keeps its shadow memory at 0x7fff8000 and above (ft-dsp 2.4). */
extern void __asan_init(void) __attribute__((weak));
#define SANITIZER_SHADOW UINT64_C(0x7fff8000)

static void reserve(FtWindow *window, int protection, int file, off_t offset)
{
    if (__asan_init && window->address >= SANITIZER_SHADOW) {
        us_log(LOG_LEVEL_INFO, "libftdsp: no %s window under AddressSanitizer", window->name);
        return;
    }
    void *wanted = (void *)window->address;
    const int sharing = file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void *got = mmap(wanted, window->size, protection, sharing | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file, offset);
    if (got != MAP_FAILED && got != wanted) { /* kernels before 4.17 take the address as a hint */
        munmap(got, window->size);
        errno = EEXIST;
        got = MAP_FAILED;
    }
    if (got == MAP_FAILED) {
        us_log(LOG_LEVEL_ERROR,
               "libftdsp: cannot reserve the %s window at 0x%llx (%llu MiB): %s; programs that use its "
               "addresses will fault", window->name, (unsigned long long)window->address,
               (unsigned long long)(window->size / MIB), strerror(errno));
        return;
    }
    madvise(got, window->size, MADV_DONTDUMP);
    window->reserved = true;
}

/* A chip of one core: there is no other core whose L2 could be reached. */
static void reserve_alone(void)
{
    for (int i = 0; i < WINDOW_COUNT; i++) {
        const bool other_core = i >= FIRST_ALIAS;
        if (i != FIRST_ALIAS + ft_own_core()) {
            reserve(&windows[i], other_core ? PROT_NONE : PROT_READ | PROT_WRITE, -1, 0);
        }
    }
}

/* In the file one window lies behind the other, the L2 of the cores last. */
static bool extend(const Team *team)
{
    off_t size = team->file_offset;
    for (int i = 0; i < WINDOW_COUNT; i++) {
        size += i == OWN_L2 ? 0 : (off_t)windows[i].size;
    }
    if (ftruncate(team->file, size) != 0) {
        us_log(LOG_LEVEL_ERROR,
               "libftdsp: cannot extend UNDERSTUDY_FT_MEMORY to %lld bytes: %s; this process is a chip "
               "of its own", (long long)size, strerror(errno));
        return false;
    }
    return true;
}

static void reserve_together(const Team *team)
{
    off_t offset = team->file_offset;
    for (int i = 0; i < WINDOW_COUNT; i++) {
        if (i == FIRST_ALIAS + ft_own_core()) {
            reserve(&windows[OWN_L2], PROT_READ | PROT_WRITE, team->file, offset);
        }
        if (i != OWN_L2) {
            reserve(&windows[i], PROT_READ | PROT_WRITE, team->file, offset);
            offset += (off_t)windows[i].size;
        }
    }
}

/* Programs use the addresses without any initialisation call, so the windows exist before main. */
__attribute__((constructor)) static void reserve_windows(void)
{
    windows[OWN_L2].core = ft_own_core();
    if (us_team()->file >= 0 && extend(us_team())) {
        reserve_together(us_team());
    } else {
        reserve_alone();
    }
}

const FtWindow *ft_window_of(const void *address)
{
    for (int i = 0; i < WINDOW_COUNT; i++) {
        if (windows[i].reserved && (uintptr_t)address - windows[i].address < windows[i].size) {
            return &windows[i];
        }
    }
    return NULL;
}

int ft_own_core(void)
{
    return us_team()->rank;
}

uintptr_t ft_location(const void *address)
{
    const FtWindow *own = &windows[FIRST_ALIAS + ft_own_core()];
    const uintptr_t offset = (uintptr_t)address - own->address;
    return own->reserved && offset < own->size ? windows[OWN_L2].address + offset : (uintptr_t)address;
}
