/* gcc shared_space.c -I$FTDSP_PATH/include -L$FTDSP_PATH/lib -Wl,-rpath,$FTDSP_PATH/lib -lftdsp -o shared_space
 *
 * Gradient of a weighted binary cross entropy on all cores: the operands lie in DDR, which every core sees. */
#include <binarycrossentropygrad.h>
#include <stdio.h>

#define COUNT 6
#define ALL_CORES 0xff

enum { NONE, MEAN, SUM };

int main(void)
{
    float *prediction = (float *)0xA0000000;
    float *target = (float *)0xB0000000;
    float *weight = (float *)0xC0000000;
    float *upstream = (float *)0xD0000000;
    float *gradient = (float *)0xE0000000;
    static const float predictions[COUNT] = {0.1f, 0.25f, 0.5f, 0.75f, 0.9f, 0.999f};
    static const float targets[COUNT] = {0.0f, 1.0f, 0.5f, 1.0f, 0.0f, 1.0f};
    static const float weights[COUNT] = {1.0f, 2.0f, 0.5f, 1.5f, 1.0f, 3.0f};

    for (int i = 0; i < COUNT; i++) {
        prediction[i] = predictions[i];
        target[i] = targets[i];
        weight[i] = weights[i];
    }
    upstream[0] = 2.0f;

    fp_binarycrossentropygrad_s(COUNT, MEAN, prediction, target, weight, upstream, gradient, 1, ALL_CORES);
    for (int i = 0; i < COUNT; i++) {
        printf("dx[%d] = %.6f\n", i, gradient[i]);
    }
    return 0;
}
