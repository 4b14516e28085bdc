/* The yardstick: moves as many bytes as an operator with `reads` inputs and one output must, and does nothing else.
 * Every thread works through its own slice `repeats` times; small work stays on the calling thread. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <time.h>

enum { THREAD_LIMIT = 64, SERIAL_BELOW_BYTES = 128 * 1024 };

typedef struct Slice {
    float *out;
    const float *const *in;
    int reads, repeats;
    size_t begin, end;
} Slice;

__attribute__((target_clones("default", "avx2", "avx512f"))) static void move(const Slice *slice)
{
    const float *a = slice->in[0], *b = slice->in[1], *c = slice->in[2];
    float *restrict out = slice->out;
    switch (slice->reads) {
    case 1:
        for (size_t i = slice->begin; i < slice->end; i++)
            out[i] = a[i] * 0.5f;
        break;
    case 2:
        for (size_t i = slice->begin; i < slice->end; i++)
            out[i] = a[i] + b[i];
        break;
    default:
        for (size_t i = slice->begin; i < slice->end; i++)
            out[i] = a[i] + b[i] + c[i];
        break;
    }
}

static void *run_slice(void *argument)
{
    const Slice *slice = argument;
    for (int repeat = 0; repeat < slice->repeats; repeat++) {
        move(slice);
        __asm__ volatile("" ::: "memory"); /* every repeat counts */
    }
    return NULL;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* out[i] = combination of in[0 … reads-1][i]; `in` holds three pointers, reads is 1 to 3. Seconds per repeat; negative
 * when a thread could not be started. */
double stream(float *out, const float *const *in, int reads, size_t count, int threads, int repeats)
{
    pthread_t ids[THREAD_LIMIT];
    Slice slices[THREAD_LIMIT];
    threads = threads < THREAD_LIMIT ? threads : THREAD_LIMIT;
    if ((size_t)(reads + 1) * count * sizeof(float) < SERIAL_BELOW_BYTES)
        threads = 1;
    const double start = now();
    int started = 1;
    for (int k = threads - 1; k >= 0; k--) {
        slices[k] = (Slice){out, in, reads, repeats, count * (size_t)k / (size_t)threads / 16 * 16,
                            k == threads - 1 ? count : count * (size_t)(k + 1) / (size_t)threads / 16 * 16};
        if (k == 0)
            run_slice(&slices[0]);
        else if (pthread_create(&ids[k], NULL, run_slice, &slices[k]) == 0)
            started++;
    }
    for (int k = 1; started == threads && k < threads; k++)
        pthread_join(ids[k], NULL);
    return started == threads ? (now() - start) / repeats : -1;
}
