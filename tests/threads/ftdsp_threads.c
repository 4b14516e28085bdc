/* Many threads at once call the shared and the private form; wrong calls between them. Public API only. Prints "ok". */
#include "../check.h"

#include <binarycrossentropygrad.h>

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 40, COUNT = 4099 };

static void *work(void *argument)
{
    int seed = (int)(intptr_t)argument;
    float *data = malloc(5 * COUNT * sizeof *data);
    CHECK(data != NULL);
    float *x = data, *y = x + COUNT, *loss = y + COUNT, *shared = loss + COUNT, *own = shared + COUNT;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++) {
            x[i] = (float)((i + seed + round) % 97 + 1) / 99.0f;
            y[i] = (float)(i % 2);
            loss[i] = 1.0f;
            shared[i] = own[i] = -1.0f;
        }
        fp_binarycrossentropygrad_s(COUNT, 0, x, y, NULL, loss, shared, 0, 0xff);
        fp_binarycrossentropygrad_p(COUNT, 0, x, y, NULL, loss, own, 0);
        for (int i = 0; i < COUNT; i++) {
            double expected = (x[i] - (double)y[i]) / (x[i] * (1.0 - x[i]) + 1e-12);
            CHECK(fabs(shared[i] - expected) <= 1e-5 * fabs(expected) + 1e-9 && shared[i] == own[i]);
        }
        own[0] = 5.0f;
        fp_binarycrossentropygrad_s(COUNT, 0, x, y, NULL, loss, own, 0, 0);
        CHECK(own[0] == 5.0f); /* no core: refused, nothing written */
    }
    free(data);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    puts("ok");
    return 0;
}
