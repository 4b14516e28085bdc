/* The yardstick: moves as many bytes as an operator must, and does nothing else.
 *
 * The input is read as one to four streams side by side, as an operator with that many inputs per output does; what is
 * left of the longer side is read, or written, alone. Every thread works through its own slice `repeats` times; small
 * work stays on the calling thread. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { THREAD_LIMIT = 64, STREAM_LIMIT = 4, SERIAL_BELOW_WORDS = 32 * 1024 };

typedef struct Range {
    size_t begin, end;
} Range;

typedef struct Slice {
    uint32_t *out;
    const uint32_t *in;
    int streams, repeats;
    size_t length;             /* of each input stream */
    Range both, reads, writes; /* streams and output together; what is left of the streams; of the output */
    uint32_t sum;
} Slice;

__attribute__((target_clones("default", "avx2", "avx512f"))) static void move(Slice *slice)
{
    const uint32_t *a = slice->in, *b = a + slice->length, *c = b + slice->length, *d = c + slice->length;
    uint32_t *restrict out = slice->out;
    const size_t begin = slice->both.begin, end = slice->both.end;
    switch (slice->streams) {
    case 1:
        for (size_t i = begin; i < end; i++)
            out[i] = a[i] + 1;
        break;
    case 2:
        for (size_t i = begin; i < end; i++)
            out[i] = a[i] + b[i];
        break;
    case 3:
        for (size_t i = begin; i < end; i++)
            out[i] = a[i] + b[i] + c[i];
        break;
    default:
        for (size_t i = begin; i < end; i++)
            out[i] = a[i] + b[i] + c[i] + d[i];
        break;
    }
    uint32_t sum = 0;
    for (int stream = 0; stream < slice->streams; stream++)
        for (size_t i = slice->reads.begin; i < slice->reads.end; i++)
            sum += a[(size_t)stream * slice->length + i];
    slice->sum = sum;
    for (size_t i = slice->writes.begin; i < slice->writes.end; i++)
        out[i] = sum;
}

static void *run_slice(void *argument)
{
    Slice *slice = argument;
    for (int repeat = 0; repeat < slice->repeats; repeat++) {
        move(slice);
        __asm__ volatile("" ::: "memory"); /* every repeat counts */
    }
    return NULL;
}

static double now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Part k of `threads` of a range, cut at cache lines. */
static Range part(size_t begin, size_t end, int k, int threads)
{
    if (end <= begin)
        return (Range){0, 0};
    const size_t count = end - begin, number = (size_t)threads, first = count * (size_t)k / number / 16 * 16;
    return (Range){begin + first, k + 1 == threads ? end : begin + count * (size_t)(k + 1) / number / 16 * 16};
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Reads `reads` words of `in` and writes `writes` words of `out`. Seconds of the clock per repeat; negative when
 * a thread could not be started. */
double stream(uint32_t *out, const uint32_t *in, size_t reads, size_t writes, int threads, int repeats, clockid_t clock)
{
    pthread_t ids[THREAD_LIMIT];
    Slice slices[THREAD_LIMIT];
    threads = threads < THREAD_LIMIT ? threads : THREAD_LIMIT;
    if (reads + writes < SERIAL_BELOW_WORDS)
        threads = 1;
    const size_t ratio = writes == 0 ? 1 : (reads + writes / 2) / writes;
    const int streams = (int)least(ratio == 0 ? 1 : ratio, STREAM_LIMIT);
    const size_t length = reads / (size_t)streams / 16 * 16, both = least(length, writes);
    const double start = now(clock);
    int started = 1;
    for (int k = threads - 1; k >= 0; k--) {
        slices[k] = (Slice){.out = out, .in = in, .streams = streams, .repeats = repeats, .length = length,
                            .both = part(0, both, k, threads), .reads = part(both, length, k, threads),
                            .writes = part(both, writes, k, threads)};
        if (k == 0)
            run_slice(&slices[0]);
        else if (pthread_create(&ids[k], NULL, run_slice, &slices[k]) == 0)
            started++;
    }
    for (int k = 1; started == threads && k < threads; k++)
        pthread_join(ids[k], NULL);
    return started == threads ? (now(clock) - start) / repeats : -1;
}
