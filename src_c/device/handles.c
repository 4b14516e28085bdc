#include "device/handles.h"

#include "report/fork.h"
#include "report/grace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_SLOTS = 1 << 12,
    CHUNK_LIMIT = 1 << 12, /* CHUNK_SLOTS * CHUNK_LIMIT = 2^24 slots */
    GENERATION_LIMIT = 1 << 20,
};
static const uint64_t HANDLE_TAG = 0x0501u; /* bits 63..48 neither all 0 nor all 1: never a valid address */

typedef struct Slot {
    _Atomic(uint64_t) identity; /* kind << 32 | generation while alive, 0 while free */
    _Atomic(void *) object; /* read without the lock: holds for the identity that is still there afterwards */
    uint32_t generation;
    uint32_t next_free;
} Slot;

static _Atomic(Slot *) chunks[CHUNK_LIMIT];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t slot_count = 0; /* slots handed out at least once */
/* Free slots are used first in, first out, so that a dead handle's slot rests as long as possible. */
enum { NO_SLOT = UINT32_MAX };
static uint32_t first_free = NO_SLOT;
static uint32_t last_free = NO_SLOT;
static uint32_t free_count = 0;
static _Atomic(uint64_t) live_counts[256];

/* Fresh slots are preferred until this many wait to be used again. */
enum { RESTING_SLOTS = 1024 };

__attribute__((constructor)) static void guard_lock(void)
{
    us_fork_waits_for(&lock);
}

static Slot *slot_at(uint32_t index)
{
    Slot *chunk = atomic_load_explicit(&chunks[index / CHUNK_SLOTS], memory_order_acquire);
    return chunk == NULL ? NULL : &chunk[index % CHUNK_SLOTS];
}

static uint64_t identity_of(HandleKind kind, uint32_t generation)
{
    return (uint64_t)kind << 32 | generation;
}

static void *handle_value(uint32_t index, uint32_t generation)
{
    return (void *)(uintptr_t)(HANDLE_TAG << 48 | (uint64_t)generation << 28 | (uint64_t)index << 4);
}

/* Splits a handle; false when it cannot be one. */
static bool handle_parts(const void *handle, uint32_t *index, uint32_t *generation)
{
    uint64_t value = (uintptr_t)handle;
    if (value >> 48 != HANDLE_TAG || (value & 0xf) != 0) {
        return false;
    }
    *generation = (uint32_t)(value >> 28) & (GENERATION_LIMIT - 1);
    *index = (uint32_t)(value >> 4) & ((1u << 24) - 1);
    return true;
}

static uint32_t fresh_slot(void)
{
    uint32_t index = slot_count;
    if (index >= (uint32_t)CHUNK_SLOTS * CHUNK_LIMIT) {
        return NO_SLOT;
    }
    if (index % CHUNK_SLOTS == 0) {
        Slot *chunk = calloc(CHUNK_SLOTS, sizeof *chunk);
        if (chunk == NULL) {
            return NO_SLOT;
        }
        atomic_store_explicit(&chunks[index / CHUNK_SLOTS], chunk, memory_order_release);
    }
    slot_count++;
    return index;
}

static uint32_t used_slot(void)
{
    uint32_t index = first_free;
    if (index != NO_SLOT) {
        first_free = slot_at(index)->next_free;
        last_free = first_free == NO_SLOT ? NO_SLOT : last_free;
        free_count--;
    }
    return index;
}

void *us_handle_create(HandleKind kind, void *object)
{
    pthread_mutex_lock(&lock);
    uint32_t index = free_count >= RESTING_SLOTS ? used_slot() : fresh_slot();
    if (index == NO_SLOT) {
        index = used_slot();
    }
    void *handle = NULL;
    if (index != NO_SLOT) {
        Slot *slot = slot_at(index);
        slot->generation = (slot->generation + 1) % GENERATION_LIMIT;
        atomic_store_explicit(&slot->object, object, memory_order_release);
        handle = handle_value(index, slot->generation);
        atomic_store_explicit(&slot->identity, identity_of(kind, slot->generation), memory_order_release);
        atomic_fetch_add_explicit(&live_counts[kind & 0xff], 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&lock);
    return handle;
}

void *us_handle_object(const void *handle, HandleKind kind)
{
    uint32_t index = 0;
    uint32_t generation = 0;
    if (!handle_parts(handle, &index, &generation)) {
        return NULL;
    }
    Slot *slot = slot_at(index);
    const uint64_t identity = identity_of(kind, generation);
    if (slot == NULL || atomic_load_explicit(&slot->identity, memory_order_acquire) != identity) {
        return NULL;
    }
    void *object = atomic_load_explicit(&slot->object, memory_order_acquire);
    /* Whoever reads the object of a later life sees that the earlier identity has ended. */
    return atomic_load_explicit(&slot->identity, memory_order_relaxed) == identity ? object : NULL;
}

void *us_handle_end(const void *handle, HandleKind kind)
{
    uint32_t index = 0;
    uint32_t generation = 0;
    if (!handle_parts(handle, &index, &generation)) {
        return NULL;
    }
    pthread_mutex_lock(&lock);
    Slot *slot = slot_at(index);
    void *object = NULL;
    uint64_t expected = identity_of(kind, generation);
    if (slot != NULL && atomic_compare_exchange_strong(&slot->identity, &expected, 0)) {
        object = atomic_load_explicit(&slot->object, memory_order_relaxed);
        slot->next_free = NO_SLOT;
        if (last_free == NO_SLOT) {
            first_free = index;
        } else {
            slot_at(last_free)->next_free = index;
        }
        last_free = index;
        free_count++;
        atomic_fetch_sub_explicit(&live_counts[kind & 0xff], 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&lock);
    return object;
}

void *us_handle_new(HandleKind kind, const void *initial, size_t size)
{
    void *object = malloc(size);
    if (object == NULL) {
        return NULL;
    }
    memcpy(object, initial, size);
    void *handle = us_handle_create(kind, object);
    if (handle == NULL) {
        free(object);
    }
    return handle;
}

bool us_handle_release(const void *handle, HandleKind kind)
{
    void *object = us_handle_end(handle, kind);
    if (object != NULL) {
        us_grace_bury(free, object);
    }
    return object != NULL;
}

void us_handle_each(HandleKind kind, void (*visit)(const void *handle, void *argument), void *argument)
{
    pthread_mutex_lock(&lock);
    const uint32_t count = slot_count;
    pthread_mutex_unlock(&lock);
    for (uint32_t index = 0; index < count; index++) {
        const uint64_t identity = atomic_load_explicit(&slot_at(index)->identity, memory_order_acquire);
        if (identity >> 32 == kind) {
            visit(handle_value(index, (uint32_t)identity), argument);
        }
    }
}

uint64_t us_handle_count(HandleKind kind)
{
    return atomic_load_explicit(&live_counts[kind & 0xff], memory_order_relaxed);
}
