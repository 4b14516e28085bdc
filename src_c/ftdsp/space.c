#include "ftdsp/space.h"

#include "device/host_access.h"
#include "device/team.h"
#include "ftdsp/chip.h"
#include "report/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define MIB (UINT64_C(1) << 20)
#define L2_SIZE (256 * MIB)

enum { DDR = 1, OWN_L2 = 3, FIRST_ALIAS = 4, WINDOW_COUNT = FIRST_ALIAS + FT_CORE_LIMIT };

static FtWindow windows[WINDOW_COUNT] = {
    {"SMC", FT_SMC, 0, 0x0C000000, 4 * MIB, false, false},
    {"DDR", FT_DDR, 0, 0x80000000, 2048 * MIB, false, false},
    {"DDR (36 bits)", FT_DDR, 0, 0xD00000000, 4096 * MIB, false, false},
    {"L2", FT_L2, 0, 0x10000000, L2_SIZE, false, false},
    {"L2 of core 0", FT_L2, 0, 0x1000000000, L2_SIZE, false, false},
    {"L2 of core 1", FT_L2, 1, 0x1010000000, L2_SIZE, false, false},
    {"L2 of core 2", FT_L2, 2, 0x1020000000, L2_SIZE, false, false},
    {"L2 of core 3", FT_L2, 3, 0x1030000000, L2_SIZE, false, false},
    {"L2 of core 4", FT_L2, 4, 0x1040000000, L2_SIZE, false, false},
    {"L2 of core 5", FT_L2, 5, 0x1050000000, L2_SIZE, false, false},
    {"L2 of core 6", FT_L2, 6, 0x1060000000, L2_SIZE, false, false},
    {"L2 of core 7", FT_L2, 7, 0x1070000000, L2_SIZE, false, false},
};

/* AddressSanitizer keeps the state of the byte at a in the byte at a / 8 + 0x7fff8000, its shadow (ft-dsp 2.4). Its own
 * use of that range ends below 0x90000000; the rest is closed, and with it DDR and the shadow of DDR. Both are opened
 * here, from the address on where they do not lie over each other: zero bytes mean that all of it may be used. */
extern void __asan_init(void) __attribute__((weak));
#define SHADOW_OFFSET UINT64_C(0x7fff8000)
#define SANITIZED_DDR UINT64_C(0xA0000000)

static bool is_sanitizers(uintptr_t address)
{
    return __asan_init && address >= SHADOW_OFFSET;
}

/* mmap itself would be the sanitizer's, which refuses these addresses. */
static void *map_at(uintptr_t address, size_t size, int protection, int flags, int file, off_t offset)
{
    const int fixed = is_sanitizers(address) ? MAP_FIXED : MAP_FIXED_NOREPLACE;
    return (void *)syscall(SYS_mmap, address, size, protection, flags | MAP_NORESERVE | fixed, file, offset);
}

/* Cuts off what cannot be there; the number of bytes. */
static size_t make_room_for_sanitizer(FtWindow *window)
{
    if (!is_sanitizers(window->address)) {
        return 0;
    }
    const size_t cut = window->address < SANITIZED_DDR ? SANITIZED_DDR - window->address : 0;
    window->address += cut;
    window->size -= cut;
    map_at(window->address / 8 + SHADOW_OFFSET, window->size / 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
           0);
    return cut;
}

static void reserve(FtWindow *window, int protection, int file, off_t offset)
{
    offset += (off_t)make_room_for_sanitizer(window);
    void *wanted = (void *)window->address;
    const int sharing = file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void *got = map_at(window->address, window->size, protection, sharing, file, file >= 0 ? offset : 0);
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
    window->open = protection != PROT_NONE;
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
            const off_t size = (off_t)windows[i].size; /* which reserve may cut */
            reserve(&windows[i], PROT_READ | PROT_WRITE, team->file, offset);
            offset += size;
        }
    }
}

/* The chip's addresses: those of the manual's examples have up to 36 bits, and the other cores' L2 lies above. Neither
 * NULL nor what Linux gives a program is between these. */
#define CHIP_BEGIN UINT64_C(0x1000)
#define CHIP_END (UINT64_C(0x1000000000) + FT_CORE_LIMIT * L2_SIZE)

/* A program under the sanitizer looks into the shadow before it touches an address, and faults there. */
static uintptr_t meant_address(uintptr_t address)
{
    const uintptr_t ddr = windows[DDR].address, of_shadow = (address - SHADOW_OFFSET) * 8;
    return is_sanitizers(address) && of_shadow < ddr ? of_shadow : address;
}

static bool tell_access(const void *touched, char *text, size_t size)
{
    const uintptr_t place = meant_address((uintptr_t)touched);
    const void *address = (const void *)place;
    const FtWindow *window = ft_window_of(address);
    if (window && !window->open) {
        snprintf(text, size, "%p is in the %s, but this process is the only core; understudy ft-run starts several.",
                 address, window->name);
    } else if (is_sanitizers(place) && place < SANITIZED_DDR) {
        snprintf(text, size, "%p is not there under AddressSanitizer, whose own memory lies below 0x%llx; DDR above it is.",
                 address, (unsigned long long)SANITIZED_DDR);
    } else if (!window && place >= CHIP_BEGIN && place < CHIP_END) {
        snprintf(text, size, "%p is outside the chip's memory, which is SMC at 0x0C000000-0x0C3FFFFF, L2 at "
                 "0x10000000-0x1FFFFFFF, DDR at 0x80000000-0xFFFFFFFF and at 0xD00000000-0xDFFFFFFFF.", address);
    } else {
        return false;
    }
    return true;
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
    us_host_access_watch(tell_access);
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

bool ft_is_one_of_many(void)
{
    return us_team()->file >= 0;
}

uintptr_t ft_location(const void *address)
{
    const FtWindow *own = &windows[FIRST_ALIAS + ft_own_core()];
    const uintptr_t offset = (uintptr_t)address - own->address;
    return own->reserved && offset < own->size ? windows[OWN_L2].address + offset : (uintptr_t)address;
}
