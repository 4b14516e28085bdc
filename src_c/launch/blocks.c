#include "launch/blocks.h"

#include "report/fork.h"

#include <pthread.h>
#include <stdlib.h>

/* Smaller blocks stay with the allocator anyway. */
enum { KEPT_BLOCKS = 16, KEPT_LEAST = 32 << 10, KEPT_BYTES = 32 << 20 };

typedef struct Block {
    void *bytes; /* NULL: none */
    size_t size;
} Block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Block kept[KEPT_BLOCKS];
static size_t kept_bytes;

__attribute__((constructor)) static void guard_lock(void)
{
    us_fork_waits_for(&lock);
}

static Block remove_block(Block *of)
{
    const Block block = *of;
    *of = (Block){NULL, 0};
    kept_bytes -= block.size;
    return block;
}

/* The smallest of at least this size; NULL: none. */
static Block *find_fit(size_t size)
{
    Block *best = NULL;
    for (Block *block = kept; block < kept + KEPT_BLOCKS; block++) {
        if (block->bytes != NULL && block->size >= size && (best == NULL || block->size < best->size)) {
            best = block;
        }
    }
    return best;
}

void *us_block_take(size_t *size)
{
    Block found = {NULL, *size};
    if (*size >= KEPT_LEAST) {
        pthread_mutex_lock(&lock);
        Block *fit = find_fit(*size);
        found = fit != NULL ? remove_block(fit) : found;
        pthread_mutex_unlock(&lock);
    }
    *size = found.size;
    return found.bytes != NULL ? found.bytes : malloc(*size);
}

/* An empty place, or that of the smallest block. */
static Block *find_place(void)
{
    Block *place = kept;
    for (Block *block = kept; block < kept + KEPT_BLOCKS; block++) {
        place = block->size < place->size ? block : place;
    }
    return place;
}

void us_block_give(void *bytes, size_t size)
{
    Block rest = {bytes, size};
    if (size >= KEPT_LEAST) {
        pthread_mutex_lock(&lock);
        Block *place = find_place();
        if (place->size < size && kept_bytes - place->size + size <= KEPT_BYTES) {
            rest = remove_block(place);
            *place = (Block){bytes, size};
            kept_bytes += size;
        }
        pthread_mutex_unlock(&lock);
    }
    free(rest.bytes);
}
