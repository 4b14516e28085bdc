/* assert_s (ft-dsp 5.1): no prefix, so it is not in a prefix's file; every chip has int32. */
#include "assert_s.h"

#include "ftdsp/call.h"

void assert_s(int32_t *cond, int32_t *out, int core_mask)
{
    FT_CALL call = ft_shared("assert_s", DTYPE_INT32, core_mask);
    ft_operand(&call, "cond", cond, 1, DTYPE_INT32);
    ft_operand(&call, "out", out, 1, DTYPE_INT32);
    if (ft_ok(&call)) {
        out[0] = cond[0];
    }
}
