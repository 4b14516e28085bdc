/* gcc slices.c -I$FTDSP_PATH/include -I$FTDSP_PATH/../include -L$FTDSP_PATH/lib -L$FTDSP_PATH/../lib -Wl,-rpath,$FTDSP_PATH/lib:$FTDSP_PATH/../lib -lftdsp -lunderstudy -o slices
 *
 * Run as: understudy ft-run -n 8 ./slices
 *
 * Every core runs this program. Core 0 puts the operands into DDR; each core takes its slice into its own L2, computes
 * there with the _p function and puts the result back. Then all cores make one _s call, in which they share the same
 * work, and core 0 compares. */
#include <binarycrossentropygrad.h>
#include <stdio.h>
#include <string.h>
#include <understudy/understudy.h>

#define COUNT 10007

enum { NONE, MEAN, SUM };

/* In DDR, for all cores. */
static float *const prediction = (float *)0xA0000000;
static float *const target = (float *)0xB0000000;
static float *const upstream = (float *)0xC0000000;
static float *const gradient = (float *)0xD0000000;
static float *const expected = (float *)0xE0000000;

/* In the L2 of the core that runs. */
static float *const my_prediction = (float *)0x10000000;
static float *const my_target = (float *)0x10010000;
static float *const my_upstream = (float *)0x10020000;
static float *const my_gradient = (float *)0x10030000;

static void fill_operands(void)
{
    for (int i = 0; i < COUNT; i++) {
        prediction[i] = (float)(i + 1) / (COUNT + 1);
        target[i] = (float)(i % 2);
        upstream[i] = 1.0f - 2.0f * (float)i / COUNT;
    }
}

static void compute_slice(int begin, int count)
{
    const size_t bytes = (size_t)count * sizeof(float);
    memcpy(my_prediction, prediction + begin, bytes);
    memcpy(my_target, target + begin, bytes);
    memcpy(my_upstream, upstream + begin, bytes);
    fp_binarycrossentropygrad_p(count, NONE, my_prediction, my_target, NULL, my_upstream, my_gradient, 0);
    memcpy(gradient + begin, my_gradient, bytes);
}

int main(void)
{
    const int core = understudy_core();
    const int cores = understudy_core_count();
    const int begin = core * COUNT / cores;
    const int end = (core + 1) * COUNT / cores;

    if (core == 0) {
        fill_operands();
    }
    understudy_barrier();
    compute_slice(begin, end - begin);
    fp_binarycrossentropygrad_s(COUNT, NONE, prediction, target, NULL, upstream, expected, 0, 0xff);
    if (core != 0) {
        return 0;
    }
    const int equal = memcmp(gradient, expected, COUNT * sizeof(float)) == 0;
    printf("%d cores: %s\n", cores, equal ? "the same as one _s call" : "different from one _s call");
    return equal ? 0 : 1;
}
