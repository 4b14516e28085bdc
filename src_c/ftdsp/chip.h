/* Which chip is emulated: the function prefixes it has and the number of its DSP cores (ft-dsp 1, 2.1). */
#ifndef FTDSP_CHIP_H
#define FTDSP_CHIP_H

#include "tensor/view.h"

#include <stdbool.h>

enum { FT_CORE_LIMIT = 8 };

/* UNDERSTUDY_FT_CHIP=FT78NE|MT7004. Unset: no chip in particular, every prefix is served and there are 8 cores. */
typedef struct FtChip {
    const char *name;
    int core_count;
    uint32_t dtypes; /* bit DType: functions of this element type exist */
} FtChip;

const FtChip *ft_chip(void); /* read once */
bool ft_chip_has(const FtChip *chip, DType dtype);
const char *ft_chip_with(DType dtype); /* the chip to choose for this element type: for messages */

#endif
