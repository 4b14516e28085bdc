/* The scalar maths of the kernels over arrays, for test_maths.py. */
#include "kernels/expm1.h"
#include "kernels/logarithm.h"

#define OF_ONE(name, type)                                                                                             \
    void name##_array(const type *x, const type *y, type *out, long count)                                             \
    {                                                                                                                  \
        (void)y;                                                                                                       \
        for (long i = 0; i < count; i++) {                                                                             \
            out[i] = name(x[i]);                                                                                       \
        }                                                                                                              \
    }
#define OF_TWO(name, type)                                                                                             \
    void name##_array(const type *x, const type *y, type *out, long count)                                             \
    {                                                                                                                  \
        for (long i = 0; i < count; i++) {                                                                             \
            out[i] = name(x[i], y[i]);                                                                                 \
        }                                                                                                              \
    }

OF_ONE(exp_float, float)
OF_ONE(expm1_float, float)
OF_ONE(tanh_float, float)
OF_ONE(log_float, float)
OF_ONE(log1p_float, float)
OF_TWO(pow_float, float)
OF_TWO(normal_tail_float, float)
OF_ONE(exp_double, double)
OF_ONE(expm1_double, double)
OF_ONE(tanh_double, double)
OF_ONE(log_double, double)
