/* The yardstick: moves as many bytes as an operator must, and does nothing else.
 *
 * The input is read as one to four streams side by side, as an operator with that many inputs per output does; what is
 * left of the longer side is read, or written, alone. It is called as an operator is: each call does the work once, on
 * arrays that the last call left in the caches, wakes the other threads and waits for them. Small work stays on the
 * calling thread. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { THREAD_LIMIT = 64, STREAM_LIMIT = 4, SERIAL_BELOW_WORDS = 32 * 1024, SPINS = 4000 };

typedef struct Range {
    size_t begin, end;
} Range;

typedef struct Slice {
    uint32_t *out;
    const uint32_t *in;
    int streams;
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

/* The threads beside the caller: each waits for the number of a new call, first awake, then asleep. */
typedef struct Stream {
    Slice slices[THREAD_LIMIT];
    pthread_t ids[THREAD_LIMIT];
    int threads;
    _Atomic unsigned call, unfinished;
    bool ends; /* written before a new call */
    pthread_mutex_t lock;
    pthread_cond_t wake;
} Stream;

typedef struct Member {
    Stream *stream;
    int number;
} Member;

static unsigned next_call(Stream *stream, unsigned last)
{
    for (int spin = 0; spin < SPINS; spin++) {
        const unsigned call = atomic_load_explicit(&stream->call, memory_order_acquire);
        if (call != last)
            return call;
    }
    pthread_mutex_lock(&stream->lock);
    while (atomic_load(&stream->call) == last)
        pthread_cond_wait(&stream->wake, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
    return atomic_load(&stream->call);
}

static void *member(void *argument)
{
    Member self = *(Member *)argument;
    free(argument);
    unsigned last = 0;
    for (;;) {
        last = next_call(self.stream, last);
        if (self.stream->ends)
            return NULL;
        move(&self.stream->slices[self.number]);
        atomic_fetch_sub(&self.stream->unfinished, 1);
    }
}

static void announce(Stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    atomic_fetch_add(&stream->call, 1);
    pthread_cond_broadcast(&stream->wake);
    pthread_mutex_unlock(&stream->lock);
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

/* For calls that read `reads` words of `in` and write `writes` words of `out`; NULL without memory or threads. */
Stream *stream_open(uint32_t *out, const uint32_t *in, size_t reads, size_t writes, int threads)
{
    Stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->wake, NULL);
    threads = threads < THREAD_LIMIT ? threads : THREAD_LIMIT;
    stream->threads = threads = reads + writes < SERIAL_BELOW_WORDS ? 1 : threads;
    const size_t ratio = writes == 0 ? 1 : (reads + writes / 2) / writes;
    const int streams = (int)least(ratio == 0 ? 1 : ratio, STREAM_LIMIT);
    const size_t length = reads / (size_t)streams / 16 * 16, both = least(length, writes);
    for (int k = 0; k < threads; k++) {
        stream->slices[k] = (Slice){.out = out, .in = in, .streams = streams, .length = length,
                                    .both = part(0, both, k, threads), .reads = part(both, length, k, threads),
                                    .writes = part(both, writes, k, threads)};
        Member *self = k > 0 ? malloc(sizeof *self) : NULL;
        if (self)
            *self = (Member){stream, k};
        if (k > 0 && (!self || pthread_create(&stream->ids[k], NULL, member, self) != 0))
            return NULL;
    }
    return stream;
}

void stream_call(Stream *stream)
{
    if (stream->threads > 1) {
        atomic_store(&stream->unfinished, (unsigned)stream->threads - 1);
        announce(stream);
    }
    move(&stream->slices[0]);
    while (atomic_load_explicit(&stream->unfinished, memory_order_acquire) != 0) {
    }
}

void stream_close(Stream *stream)
{
    stream->ends = true;
    announce(stream);
    for (int k = 1; k < stream->threads; k++)
        pthread_join(stream->ids[k], NULL);
    free(stream);
}
