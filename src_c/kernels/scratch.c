#include "kernels/scratch.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { NEST_LIMIT = 24 };

#ifdef __SANITIZE_ADDRESS__ /* which sees accesses behind a block if that is new, and not larger than was asked for */
enum { KEEP_LIMIT = 0, GRAIN = 1 };
#else
enum { KEEP_LIMIT = 256 << 20, GRAIN = 4096 };
#endif

typedef struct Block {
    void *memory;
    size_t size;
} Block;

/* The blocks of a thread; the first `taken` are in use. */
typedef struct Scratch {
    Block blocks[NEST_LIMIT];
    int taken;
} Scratch;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int key_failed;

static void end_of_thread(void *kept)
{
    Scratch *scratch = kept;
    for (int i = 0; i < NEST_LIMIT; i++) {
        free(scratch->blocks[i].memory);
    }
    free(scratch);
}

static void make_key(void)
{
    key_failed = pthread_key_create(&key, end_of_thread) != 0;
}

static Scratch *scratch_of_thread(void)
{
    pthread_once(&once, make_key);
    if (key_failed) {
        return NULL;
    }
    Scratch *kept = pthread_getspecific(key);
    if (kept == NULL) {
        kept = calloc(1, sizeof *kept);
        if (kept != NULL && pthread_setspecific(key, kept) != 0) {
            free(kept);
            kept = NULL;
        }
    }
    return kept;
}

void *us_scratch_take(size_t size)
{
    Scratch *kept = scratch_of_thread();
    if (kept == NULL || size > SIZE_MAX / 2 || kept->taken == NEST_LIMIT) {
        return NULL;
    }
    Block *block = &kept->blocks[kept->taken];
    if (block->size < size || block->memory == NULL) {
        free(block->memory);
        const size_t rounded = GRAIN == 1 ? size : (size / GRAIN + 1) * GRAIN;
        block->memory = posix_memalign(&block->memory, 64, rounded) == 0 ? block->memory : NULL;
        block->size = block->memory != NULL ? rounded : 0;
    }
    kept->taken += block->memory != NULL;
    return block->memory;
}

void us_scratch_give_back(void *memory)
{
    if (memory == NULL) {
        return;
    }
    Scratch *kept = scratch_of_thread();
    Block *block = &kept->blocks[--kept->taken];
    if (block->size > KEEP_LIMIT) {
        free(block->memory);
        *block = (Block){NULL, 0};
    }
}
