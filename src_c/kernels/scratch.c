#include "kernels/scratch.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { KEEP_LIMIT = 256 << 20 };

typedef struct Scratch {
    void *block;
    size_t size;
} Scratch;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int key_failed;

static void end_of_thread(void *kept)
{
    free(((Scratch *)kept)->block);
    free(kept);
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
    if (kept == NULL || size > SIZE_MAX / 2) {
        return NULL;
    }
    if (kept->size < size) {
        free(kept->block);
        size_t rounded = (size + 4095) / 4096 * 4096;
        kept->block = aligned_alloc(64, rounded);
        kept->size = kept->block != NULL ? rounded : 0;
    }
    return kept->block;
}

void us_scratch_give_back(void *block)
{
    Scratch *kept = scratch_of_thread();
    if (kept != NULL && kept->block == block && kept->size > KEEP_LIMIT) {
        free(block);
        *kept = (Scratch){NULL, 0};
    }
}
