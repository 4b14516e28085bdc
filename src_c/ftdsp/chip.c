#include "ftdsp/chip.h"

#include "report/report.h"

#include <pthread.h>

#define BIT(dtype) (1u << (dtype))

static const FtChip chips[] = {
    {"FT78NE", 8, BIT(DTYPE_FLOAT32) | BIT(DTYPE_FLOAT64) | BIT(DTYPE_INT8) | BIT(DTYPE_INT16) | BIT(DTYPE_INT32) |
                      BIT(DTYPE_COMPLEX64) | BIT(DTYPE_COMPLEX128)},
    {"MT7004", 4, BIT(DTYPE_FLOAT16) | BIT(DTYPE_FLOAT32) | BIT(DTYPE_INT16) | BIT(DTYPE_INT32) | BIT(DTYPE_COMPLEX64)},
    {"an FT DSP", FT_CORE_LIMIT, ~0u},
};
enum { ANY_CHIP = 2 };

static const FtChip *chosen;

static void choose_chip(void)
{
    static const char *const names[] = {"FT78NE", "MT7004", NULL};
    chosen = &chips[us_environment_choice("UNDERSTUDY_FT_CHIP", names, ANY_CHIP)];
}

const FtChip *ft_chip(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose_chip);
    return chosen;
}

bool ft_chip_has(const FtChip *chip, DType dtype)
{
    return (chip->dtypes & BIT(dtype)) != 0;
}

const char *ft_chip_with(DType dtype)
{
    return dtype == DTYPE_FLOAT16 ? "MT7004" : "FT78NE";
}
