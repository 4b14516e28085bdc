/* gcc momentum.c -I$FTDSP_PATH/include -I$FTDSP_PATH/../include -L$FTDSP_PATH/lib -L$FTDSP_PATH/../lib -Wl,-rpath,$FTDSP_PATH/lib:$FTDSP_PATH/../lib -lftdsp -lunderstudy -o momentum
 *
 * Run as: understudy ft-run -n 8 ./momentum
 *
 * Every core runs this program, with the same data in DDR and the same calls. A call takes each core's share once, so that
 * the three steps move the weights three times, on one core or on eight. */
#include <applymomentum.h>
#include <stdio.h>
#include <understudy/understudy.h>

#define COUNT 6

static float *const weight = (float *)0xA0000000;
static float *const accumulate = (float *)0xB0000000;
static float *const gradient = (float *)0xC0000000;

int main(void)
{
    for (int i = 0; i < COUNT; i++) { /* all cores write the same, and meet when the first call begins */
        weight[i] = (float)(i + 1);
        accumulate[i] = 0;
        gradient[i] = 0.5f * (float)i;
    }
    for (int step = 0; step < 3; step++) {
        fp_applymomentum_s(weight, accumulate, gradient, 0.1f, 0.9f, 0, 0, COUNT, 0xff);
    }
    for (int i = 0; understudy_core() == 0 && i < COUNT; i++) {
        printf("weight[%d] = %.6f\n", i, (double)weight[i]);
    }
    return 0;
}
