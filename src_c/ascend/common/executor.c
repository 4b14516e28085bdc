#include "ascend/common/executor.h"

#include "launch/blocks.h"

#include <string.h>

/* The first block holds a call with three tensors; each further one is twice as large as the one before it. */
enum { FIRST_BLOCK_BYTES = 4096, LARGEST_BLOCK_BYTES = 1 << 20 };

struct ExecutorMemory {
    struct ExecutorMemory *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
};

static ExecutorMemory *block_of(size_t size, ExecutorMemory *next)
{
    size_t whole = sizeof(ExecutorMemory) + size;
    ExecutorMemory *block = us_block_take(&whole);
    if (block != NULL) {
        block->next = next;
        block->used = 0;
        block->size = whole - sizeof *block;
    }
    return block;
}

static void *take(ExecutorMemory *block, size_t size, size_t zeroed)
{
    void *taken = block->bytes + block->used;
    block->used += size;
    return memset(taken, 0, zeroed);
}

Executor *executor_create(const char *function)
{
    ExecutorMemory *block = block_of(FIRST_BLOCK_BYTES, NULL);
    if (block == NULL) {
        return NULL;
    }
    Executor *executor = take(block, (sizeof(Executor) + 15) / 16 * 16, sizeof(Executor));
    executor->function = function;
    executor->memory = block;
    executor->operands_end = &executor->operands;
    executor->task.function = function;
    return executor;
}

void *executor_take_zeroed(Executor *executor, size_t size, size_t zeroed)
{
    if (size > SIZE_MAX / 2) {
        return NULL;
    }
    size = (size + 15) / 16 * 16;
    ExecutorMemory *block = executor->memory;
    if (block->size - block->used < size) {
        const size_t next = block->size < LARGEST_BLOCK_BYTES / 2 ? 2 * block->size : LARGEST_BLOCK_BYTES;
        block = block_of(size > next ? size : next, block);
        if (block == NULL) {
            return NULL;
        }
        executor->memory = block;
    }
    return take(block, size, zeroed);
}

void *executor_take(Executor *executor, size_t size)
{
    return executor_take_zeroed(executor, size, size);
}

void executor_release(void *executor)
{
    ExecutorMemory *block = executor != NULL ? ((Executor *)executor)->memory : NULL;
    for (int i = 0; executor != NULL && i < ROOM_LIMIT; i++) {
        if (((Executor *)executor)->rooms[i] != NULL) {
            us_room_let_go(((Executor *)executor)->rooms[i]);
        }
    }
    while (block != NULL) {
        ExecutorMemory *next = block->next;
        us_block_give(block, sizeof *block + block->size);
        block = next;
    }
}
