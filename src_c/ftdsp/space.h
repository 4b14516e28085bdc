/* The chip's address map: windows at the literal addresses that programs for the chip use, reserved when the library
 * loads, and what a pointer is (ft-dsp 2.2 to 2.4; the sizes are not public and our choice).
 *
 *   SMC            0x00_0C00_0000     4 MiB    shared by the cores
 *   L2             0x00_1000_0000   256 MiB    private: each core sees its own here
 *   DDR            0x00_8000_0000     2 GiB    shared
 *   DDR, 36 bits   0x0D_0000_0000     4 GiB    shared
 *   L2 of core n   0x10_n000_0000   256 MiB    the same L2 under an address that all cores see, if there are several
 *
 * A process is one core; alone, it reaches no other core's L2. Several processes become the cores of one chip when they
 * share their memory (device/team.h). */
#ifndef FTDSP_SPACE_H
#define FTDSP_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum FtSpace {
    FT_HOST, /* none of the windows: ordinary memory of the process */
    FT_SMC,
    FT_DDR,
    FT_L2,
} FtSpace;

typedef struct FtWindow {
    const char *name;
    FtSpace space;
    int core; /* whose L2 */
    uintptr_t address;
    size_t size;
    uintptr_t heap, heap_end; /* the process's own heap, which is no memory of the chip; equal: it lies elsewhere */
    bool reserved;
    bool open; /* to this process */
} FtWindow;

/* The window that holds `address`; NULL for ordinary memory, and where the window could not be reserved. */
const FtWindow *ft_window_of(const void *address);

/* Bytes of the window from `address`, which is in it, to its end or to the process's heap. */
size_t ft_window_left(const FtWindow *window, const void *address);

int ft_own_core(void);

/* Whether this process is one core of a chip whose other cores are processes too, or alone. */
bool ft_is_one_of_many(void);

/* Where an address is: the same number for the two addresses of the caller's own L2. */
uintptr_t ft_location(const void *address);

#endif
