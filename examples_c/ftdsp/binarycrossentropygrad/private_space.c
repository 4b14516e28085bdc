/* gcc private_space.c -I$FTDSP_PATH/include -L$FTDSP_PATH/lib -Wl,-rpath,$FTDSP_PATH/lib -lftdsp -o private_space
 *
 * The same gradient without weights on one core, whose operands lie in its own L2. */
#include <binarycrossentropygrad.h>
#include <stdio.h>

#define COUNT 6

enum { NONE, MEAN, SUM };

int main(void)
{
    float *prediction = (float *)0x10000000;
    float *target = (float *)0x11000000;
    float *weight = (float *)0x12000000; /* not read: weight_defined is 0 */
    float *upstream = (float *)0x13000000;
    float *gradient = (float *)0x14000000;
    static const float predictions[COUNT] = {0.1f, 0.25f, 0.5f, 0.75f, 0.9f, 0.999f};
    static const float targets[COUNT] = {0.0f, 1.0f, 0.5f, 1.0f, 0.0f, 1.0f};
    static const float upstreams[COUNT] = {1.0f, 1.0f, 2.0f, 0.5f, 1.0f, 1.0f};

    for (int i = 0; i < COUNT; i++) {
        prediction[i] = predictions[i];
        target[i] = targets[i];
        upstream[i] = upstreams[i];
    }

    fp_binarycrossentropygrad_p(COUNT, NONE, prediction, target, weight, upstream, gradient, 0);
    for (int i = 0; i < COUNT; i++) {
        printf("dx[%d] = %.6f\n", i, gradient[i]);
    }
    return 0;
}
