/* What the emulated product says about itself. Name and wave size are real (maca-runtime 2.1); the other numbers are
 * choices: plausible for the product, and true of the emulation where it has a say. */
#ifndef MACA_PRODUCT_H
#define MACA_PRODUCT_H

enum {
    PRODUCT_VERSION = 3071, /* 3.7.1 */
    PRODUCT_MAJOR = 8,
    PRODUCT_MINOR = 0,
    PRODUCT_PROCESSORS = 104,
    PRODUCT_WAVE_SIZE = 64,
    PRODUCT_MAX_THREADS = 1024,
    PRODUCT_MAX_THREADS_PER_PROCESSOR = 2048,
    PRODUCT_MAX_BLOCKS_PER_PROCESSOR = 16,
    PRODUCT_MAX_GRID = 0x7fffffff,
    PRODUCT_MAX_GRID_YZ = 65535,
    PRODUCT_REGISTERS = 131072,
    PRODUCT_SHARED_MEMORY = 64 << 10,
    PRODUCT_CONSTANT_MEMORY = 64 << 10,
    PRODUCT_L2_CACHE = 8 << 20,
    PRODUCT_CLOCK_KHZ = 1600000,
    PRODUCT_MEMORY_CLOCK_KHZ = 1800000,
    PRODUCT_MEMORY_BUS_BITS = 4096,
    PRODUCT_MAX_PITCH = 0x7fffffff,
};

static const char product_name[] = "MetaX C500";

/* Devices sit on bus 1, 2, 3 … of domain 0. */
static inline int product_bus(int ordinal)
{
    return ordinal + 1;
}

#endif
