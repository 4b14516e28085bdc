#include "ftdsp/space.h"

#include "device/host_access.h"
#include "device/team.h"
#include "ftdsp/chip.h"
#include "report/report.h"

#include <errno.h>
#include <inttypes.h>
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
    {.name = "SMC", .space = FT_SMC, .address = 0x0C000000, .size = 4 * MIB},
    {.name = "DDR", .space = FT_DDR, .address = 0x80000000, .size = 2048 * MIB},
    {.name = "DDR (36 bits)", .space = FT_DDR, .address = 0xD00000000, .size = 4096 * MIB},
    {.name = "L2", .space = FT_L2, .address = 0x10000000, .size = L2_SIZE},
    {.name = "L2 of core 0", .space = FT_L2, .address = 0x1000000000, .size = L2_SIZE},
    {.name = "L2 of core 1", .space = FT_L2, .core = 1, .address = 0x1010000000, .size = L2_SIZE},
    {.name = "L2 of core 2", .space = FT_L2, .core = 2, .address = 0x1020000000, .size = L2_SIZE},
    {.name = "L2 of core 3", .space = FT_L2, .core = 3, .address = 0x1030000000, .size = L2_SIZE},
    {.name = "L2 of core 4", .space = FT_L2, .core = 4, .address = 0x1040000000, .size = L2_SIZE},
    {.name = "L2 of core 5", .space = FT_L2, .core = 5, .address = 0x1050000000, .size = L2_SIZE},
    {.name = "L2 of core 6", .space = FT_L2, .core = 6, .address = 0x1060000000, .size = L2_SIZE},
    {.name = "L2 of core 7", .space = FT_L2, .core = 7, .address = 0x1070000000, .size = L2_SIZE},
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

/* A program that does not move (many builds of Python) has its heap at a random place among the low addresses, now and
 * then inside a window. The window is what lies around it then, and the heap grows no more: malloc goes elsewhere. Asked
 * only when something is in the way, since a FILE is on the heap. */
static bool leave_heap(FtWindow *window)
{
    uintptr_t begin = 0, end = 0;
    char line[256];
    FILE *mappings = fopen("/proc/self/maps", "re");
    while (mappings && fgets(line, sizeof line, mappings)) {
        if (strstr(line, "[heap]")) {
            sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &begin, &end);
        }
    }
    if (mappings) {
        fclose(mappings);
    }
    const uintptr_t window_end = window->address + window->size;
    if (begin >= window_end || end <= window->address) {
        return false;
    }
    window->heap = begin > window->address ? begin : window->address;
    window->heap_end = end < window_end ? end : window_end;
    us_log(LOG_LEVEL_WARN, "libftdsp: the heap of this process is at %p to %p, inside the %s window", (void *)begin,
           (void *)end, window->name);
    return true;
}

static bool map_part(const FtWindow *window, uintptr_t begin, uintptr_t end, int protection, int file, off_t offset)
{
    if (begin == end) {
        return true;
    }
    const int sharing = file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    const off_t place = file >= 0 ? offset + (off_t)(begin - window->address) : 0;
    void *got = map_at(begin, end - begin, protection, sharing, file, place);
    if (got == MAP_FAILED) {
        return false;
    }
    if (got != (void *)begin) { /* kernels before 4.17 take the address as a hint */
        munmap(got, end - begin);
        errno = EEXIST;
        return false;
    }
    madvise(got, end - begin, MADV_DONTDUMP);
    return true;
}

static bool map_around_heap(const FtWindow *window, int protection, int file, off_t offset)
{
    return map_part(window, window->address, window->heap, protection, file, offset) &&
           map_part(window, window->heap_end, window->address + window->size, protection, file, offset);
}

static void reserve(FtWindow *window, int protection, int file, off_t offset)
{
    offset += (off_t)make_room_for_sanitizer(window);
    window->heap = window->heap_end = window->address + window->size;
    window->reserved = map_around_heap(window, protection, file, offset) ||
                       (errno == EEXIST && leave_heap(window) && map_around_heap(window, protection, file, offset));
    window->open = window->reserved && protection != PROT_NONE;
    if (!window->reserved) {
        us_log(LOG_LEVEL_ERROR,
               "libftdsp: cannot reserve the %s window at 0x%llx (%llu MiB): %s; programs that use its "
               "addresses will fault", window->name, (unsigned long long)window->address,
               (unsigned long long)(window->size / MIB), strerror(errno));
    }
}

/* A chip of one core: nobody needs its L2 at an address that all cores see, and there is no other L2. */
static void reserve_alone(void)
{
    for (int i = 0; i < WINDOW_COUNT; i++) {
        reserve(&windows[i], i >= FIRST_ALIAS ? PROT_NONE : PROT_READ | PROT_WRITE, -1, 0);
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
        snprintf(text, size, "%p is in the %s, but this process is the only core, whose L2 is at 0x10000000; understudy "
                 "ft-run starts several.", address, window->name);
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

/* memcpy and its like ask the sanitizer, which takes DDR for its own closed memory unless it is told not to close any. */
extern void *__asan_get_report_address(void) __attribute__((weak));
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void tell_sanitized_access(void)
{
    const void *address = __asan_get_report_address();
    const FtWindow *window = ft_window_of(address);
    if (window && is_sanitizers((uintptr_t)address)) {
        us_log(LOG_LEVEL_ERROR, "%p is in %s. Under AddressSanitizer memcpy, printf and their like take such an address with "
               "ASAN_OPTIONS=protect_shadow_gap=0", address, window->name);
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
    us_host_access_watch(tell_access);
    if (__asan_get_report_address && __sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(tell_sanitized_access);
    }
}

const FtWindow *ft_window_of(const void *address)
{
    const uintptr_t place = (uintptr_t)address;
    for (int i = 0; i < WINDOW_COUNT; i++) {
        const FtWindow *window = &windows[i];
        if (window->reserved && place - window->address < window->size) {
            return place < window->heap || place >= window->heap_end ? window : NULL;
        }
    }
    return NULL;
}

size_t ft_window_left(const FtWindow *window, const void *address)
{
    const uintptr_t place = (uintptr_t)address;
    return (place < window->heap ? window->heap : window->address + window->size) - place;
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
