#include "device/pool.h"

#include "device/check.h"
#include "device/pool_internal.h"

#include "report/grace.h"

#include <stdlib.h>

typedef struct PoolState PoolState;

/* A block on its way back. */
typedef struct Return {
    struct Return *next;
    PoolState *pool;
    Platform *platform;
    void *address;
    const void *stream; /* handle */
    size_t bytes;       /* of the pool's room that only this stream may use yet */
    bool over;          /* the stream has come to it */
    bool released;      /* the stream knows it no more */
} Return;

/* Everything is guarded by the memory lock. */
struct PoolState {
    Pool public;
    PoolState *next; /* on the device */
    size_t limit;
    uint64_t numbers[POOL_NUMBERS];
    size_t returning; /* bytes of all returns */
    Return *returns;
    size_t blocks;
    bool destroyed;
};

static const size_t ROOM_UNIT = (size_t)2 << 20; /* as the card's large pages */
static const size_t BLOCK_UNIT = 32;             /* bytes */

static PoolState *pool_state(const Pool *pool)
{
    return (PoolState *)pool;
}

static PlatformState *platform_of(const Pool *pool)
{
    return platform_state(pool->device->platform);
}

static size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

static void raise_number(PoolState *pool, PoolNumber number, PoolNumber high, uint64_t value)
{
    pool->numbers[number] = value;
    pool->numbers[high] = value > pool->numbers[high] ? value : pool->numbers[high];
}

static void use(PoolState *pool, size_t bytes)
{
    raise_number(pool, POOL_USED, POOL_USED_HIGH, pool->numbers[POOL_USED] + bytes);
}

static void reserve(PoolState *pool, size_t bytes)
{
    device_state(pool->public.device)->used += bytes;
    raise_number(pool, POOL_RESERVED, POOL_RESERVED_HIGH, pool->numbers[POOL_RESERVED] + bytes);
}

static size_t idle_bytes(const PoolState *pool)
{
    return pool->numbers[POOL_RESERVED] - pool->numbers[POOL_USED] - pool->returning;
}

/* ---- the life of pools ---- */

Pool *us_pool_create(Device *device, size_t limit)
{
    PoolState *pool = calloc(1, sizeof *pool);
    if (pool == NULL) {
        return NULL;
    }
    pool->public.device = device;
    pool->limit = limit;
    pool->numbers[POOL_FOLLOWS_EVENTS] = 1;
    pool->numbers[POOL_TAKES_WHAT_IS_OVER] = 1;
    pool->numbers[POOL_WAITS_FOR_OTHERS] = 1;
    void *handle = us_handle_create(HANDLE_POOL, pool);
    if (handle == NULL) {
        free(pool);
        return NULL;
    }
    pool->public.handle = handle;
    PlatformState *platform = platform_of(&pool->public);
    pthread_mutex_lock(&platform->memory_lock);
    pool->next = device_state(device)->pools;
    __atomic_store_n(&device_state(device)->pools, pool, __ATOMIC_RELAXED); /* us_pools_settle looks without the lock */
    pthread_mutex_unlock(&platform->memory_lock);
    return &pool->public;
}

Pool *us_pool_of_handle(const void *handle)
{
    PoolState *pool = us_handle_object(handle, HANDLE_POOL);
    return pool == NULL ? NULL : &pool->public;
}

/* Gives up room that is not used, as far as that leaves `keep` bytes. */
static void give_up(PoolState *pool, size_t keep)
{
    size_t busy = pool->numbers[POOL_USED] + pool->returning;
    size_t wanted = keep > busy ? keep : busy;
    size_t reserved = pool->numbers[POOL_RESERVED];
    if (wanted < reserved && round_up(wanted, ROOM_UNIT) < reserved) {
        size_t excess = reserved - round_up(wanted, ROOM_UNIT);
        pool->numbers[POOL_RESERVED] -= excess;
        device_state(pool->public.device)->used -= excess;
    }
}

/* Ends a pool that nobody needs any more. */
static void end_if_unused(PoolState *pool)
{
    if (!pool->destroyed) {
        return;
    }
    give_up(pool, 0);
    if (pool->blocks > 0 || pool->returns != NULL) {
        return;
    }
    PoolState **link = &device_state(pool->public.device)->pools;
    while (*link != pool) {
        link = &(*link)->next;
    }
    __atomic_store_n(link, pool->next, __ATOMIC_RELAXED);
    us_grace_bury(free, pool);
}

/* ---- what comes back ---- */

/* All streams may use the room from now on. */
static void make_idle(Return *back)
{
    back->pool->returning -= back->bytes;
    back->bytes = 0;
}

/* Forgets the returns whose room is nobody's and which their streams have forgotten. */
static void forget_returns(PoolState *pool)
{
    for (Return **link = &pool->returns; *link != NULL;) {
        Return *back = *link;
        if (back->released && back->bytes == 0) {
            *link = back->next;
            free(back);
        } else {
            link = &back->next;
        }
    }
}

static void make_idle_what_is_over(PoolState *pool)
{
    for (Return *back = pool->returns; back != NULL; back = back->next) {
        if (back->over) {
            make_idle(back);
        }
    }
    forget_returns(pool);
}

void us_pool_loses(Allocation *block)
{
    PoolState *pool = block->pool;
    pool->blocks--;
    if (!block->leaving) {
        pool->numbers[POOL_USED] -= round_up(block->size, BLOCK_UNIT);
    }
    block->pool = NULL;
}

/* The block that is on its way back; NULL: it has ended otherwise. */
static Allocation *block_of(const Return *back)
{
    Allocation *block = us_memory_block(back->platform, back->address);
    return block != NULL && !block->freed && block->pool == back->pool && block->leaving ? block : NULL;
}

static DeviceFault run_return(void *argument, Explanation *why)
{
    (void)why;
    Return *back = argument;
    PlatformState *platform = platform_state(back->platform);
    pthread_mutex_lock(&platform->memory_lock);
    Allocation *block = block_of(back);
    if (block != NULL) {
        us_memory_end_block(platform, block);
    }
    back->over = true;
    if (back->pool->numbers[POOL_TAKES_WHAT_IS_OVER] != 0) {
        make_idle(back);
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return DEVICE_FAULT_NONE;
}

/* What was dropped never happened: the block stays. */
static void take_back(Return *back)
{
    Allocation *block = block_of(back);
    make_idle(back);
    if (block != NULL) {
        block->leaving = false;
        size_t bytes = round_up(block->size, BLOCK_UNIT);
        size_t idle = idle_bytes(back->pool);
        if (idle < bytes) { /* another block has its room */
            reserve(back->pool, round_up(bytes - idle, ROOM_UNIT));
        }
        use(back->pool, bytes);
    }
}

static void release_return(void *argument)
{
    Return *back = argument;
    PoolState *pool = back->pool;
    PlatformState *platform = platform_state(back->platform);
    pthread_mutex_lock(&platform->memory_lock);
    if (!back->over) {
        take_back(back);
    } else if (pool->destroyed) {
        make_idle(back);
    }
    back->released = true;
    forget_returns(pool);
    end_if_unused(pool);
    pthread_mutex_unlock(&platform->memory_lock);
}

/* The block and its return, when there is such a block; NULL with an explanation. */
static Return *begin_return(PlatformState *platform, const Stream *stream, void *address, Explanation *why, Use *all)
{
    Allocation *block = us_memory_block(&platform->public, address);
    if (block == NULL || block->freed || block->pool == NULL || block->address != (uintptr_t)address) {
        us_explain(why, "%p is not the first byte of memory of a pool that is alive", address);
        return NULL;
    }
    if (block->leaving) {
        us_explain(why, "%p is on its way back to its pool already", address);
        return NULL;
    }
    Return *back = malloc(sizeof *back);
    if (back != NULL) {
        PoolState *pool = block->pool;
        size_t bytes = round_up(block->size, BLOCK_UNIT);
        *back = (Return){.next = pool->returns, .pool = pool, .platform = &platform->public, .address = address,
                         .stream = stream->handle, .bytes = bytes};
        pool->returns = back;
        pool->returning += bytes;
        pool->numbers[POOL_USED] -= bytes;
        block->leaving = true;
        *all = (Use){.address = block->address, .size = block->size, .writes = true};
    }
    return back;
}

MemoryStatus us_pool_free(Stream *stream, void *address, const char *function, Explanation *why)
{
    PlatformState *platform = platform_state(stream->context->device->platform);
    Use all = {0};
    why->text[0] = '\0';
    pthread_mutex_lock(&platform->memory_lock);
    Return *back = begin_return(platform, stream, address, why, &all);
    pthread_mutex_unlock(&platform->memory_lock);
    if (back == NULL) {
        return why->text[0] != '\0' ? MEMORY_NOT_FOUND : MEMORY_EXHAUSTED;
    }
    Work work = {function, "memory", all.size};
    if (!us_stream_submit_unrecorded(stream, work, (Uses){&all, 1}, run_return, release_return, back)) {
        release_return(back);
        return MEMORY_EXHAUSTED;
    }
    return MEMORY_OK;
}

/* ---- what is taken ---- */

/* Uses room that the stream itself will have given back, then room that is idle, then more of the device. False, and nothing
 * happens: there is not so much. */
static bool take_room(PoolState *pool, const Stream *stream, size_t bytes)
{
    size_t own = 0;
    for (const Return *back = pool->returns; back != NULL; back = back->next) {
        own += back->stream == stream->handle ? back->bytes : 0;
    }
    size_t there = idle_bytes(pool) + own;
    size_t more = bytes > there ? round_up(bytes - there, ROOM_UNIT) : 0;
    size_t reserved = pool->numbers[POOL_RESERVED];
    size_t allowed = pool->limit > reserved ? pool->limit - reserved : 0; /* take_back may go beyond the limit */
    if (pool->limit != 0 && more > allowed) {
        more = allowed;
    }
    if (pool->destroyed || there + more < bytes || more > us_device_room(device_state(pool->public.device))) {
        return false;
    }
    pool->blocks++; /* from now on the pool stays */
    reserve(pool, more);
    size_t left = bytes;
    for (Return *back = pool->returns; back != NULL && left > 0; back = back->next) {
        if (back->stream == stream->handle) {
            size_t part = back->bytes < left ? back->bytes : left;
            back->bytes -= part;
            pool->returning -= part;
            left -= part;
        }
    }
    use(pool, bytes);
    forget_returns(pool);
    return true;
}

/* A stream that will give back some room, which is idle now; NULL: none, or the pool does not do that. */
static const void *stream_to_wait_for(PoolState *pool)
{
    const void *stream = NULL;
    for (Return *back = pool->returns; back != NULL && pool->numbers[POOL_WAITS_FOR_OTHERS] != 0; back = back->next) {
        if (back->bytes > 0 && (stream == NULL || back->stream == stream)) {
            stream = back->stream;
            make_idle(back);
        }
    }
    forget_returns(pool);
    return stream;
}

/* Takes room, also that of other streams, for which `stream` then waits. */
static bool take_room_in_order(PoolState *pool, Stream *stream, size_t bytes)
{
    PlatformState *platform = platform_of(&pool->public);
    bool taken = false;
    const void *awaited = NULL;
    do {
        pthread_mutex_lock(&platform->memory_lock);
        taken = take_room(pool, stream, bytes);
        awaited = taken ? NULL : stream_to_wait_for(pool);
        pthread_mutex_unlock(&platform->memory_lock);
        Stream *other = awaited != NULL ? us_stream_of_handle(awaited) : NULL;
        if (other != NULL && !us_stream_wait_stream(stream, other)) {
            return false;
        }
    } while (awaited != NULL);
    return taken;
}

/* Room that has been taken is that of the block at the address, which is still there; or of none. */
static bool enter_block(PoolState *pool, const void *address, size_t bytes)
{
    PlatformState *platform = platform_of(&pool->public);
    pthread_mutex_lock(&platform->memory_lock);
    Allocation *block = address != NULL ? us_memory_block(&platform->public, address) : NULL;
    bool there = block != NULL && !block->freed;
    if (there) {
        block->pool = pool;
    } else {
        pool->blocks--;
        pool->numbers[POOL_USED] -= bytes;
        end_if_unused(pool);
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return there;
}

MemoryStatus us_pool_allocate(Pool *public, Stream *stream, size_t size, const char *function, void **address)
{
    PoolState *pool = pool_state(public);
    if (size > SIZE_MAX / 4) {
        return MEMORY_EXHAUSTED;
    }
    size_t bytes = round_up(size, BLOCK_UNIT);
    if (!take_room_in_order(pool, stream, bytes)) {
        return MEMORY_EXHAUSTED;
    }
    BlockSize sizes = {.asked = size, .charged = 0, .mapped = bytes}; /* the pool has been charged */
    void *made = NULL;
    us_memory_allocate(public->device, MEMORY_DEVICE, sizes, function, &made);
    if (!enter_block(pool, made, bytes)) {
        return MEMORY_EXHAUSTED;
    }
    us_stream_has_first(stream, made, size, function);
    *address = made;
    return MEMORY_OK;
}

/* ---- giving up ---- */

void us_pool_trim(Pool *pool, size_t keep)
{
    PlatformState *platform = platform_of(pool);
    pthread_mutex_lock(&platform->memory_lock);
    make_idle_what_is_over(pool_state(pool));
    give_up(pool_state(pool), keep);
    pthread_mutex_unlock(&platform->memory_lock);
}

void us_pools_settle(Device *device)
{
    if (__atomic_load_n(&device_state(device)->pools, __ATOMIC_RELAXED) == NULL) {
        return;
    }
    PlatformState *platform = platform_state(device->platform);
    pthread_mutex_lock(&platform->memory_lock);
    for (PoolState *pool = device_state(device)->pools; pool != NULL; pool = pool->next) {
        make_idle_what_is_over(pool);
        give_up(pool, pool->numbers[POOL_THRESHOLD]);
    }
    pthread_mutex_unlock(&platform->memory_lock);
}

static void destroy(PoolState *pool)
{
    make_idle_what_is_over(pool);
    pool->destroyed = true;
    end_if_unused(pool);
}

bool us_pool_destroy(Pool *pool)
{
    PlatformState *platform = platform_of(pool);
    if (us_handle_end(pool->handle, HANDLE_POOL) == NULL) {
        return false;
    }
    pthread_mutex_lock(&platform->memory_lock);
    if (!pool_state(pool)->destroyed) { /* a reset of the device may just have done it */
        destroy(pool_state(pool));
    }
    pthread_mutex_unlock(&platform->memory_lock);
    return true;
}

void us_pools_end(DeviceState *device)
{
    for (PoolState *pool = device->pools, *next = NULL; pool != NULL; pool = next) {
        next = pool->next;
        us_handle_end(pool->public.handle, HANDLE_POOL);
        destroy(pool);
    }
}

/* ---- numbers ---- */

uint64_t us_pool_number(const Pool *pool, PoolNumber number)
{
    PlatformState *platform = platform_of(pool);
    pthread_mutex_lock(&platform->memory_lock);
    uint64_t value = pool_state(pool)->numbers[number];
    pthread_mutex_unlock(&platform->memory_lock);
    return value;
}

void us_pool_set_number(Pool *public, PoolNumber number, uint64_t value)
{
    PoolState *pool = pool_state(public);
    PlatformState *platform = platform_of(public);
    pthread_mutex_lock(&platform->memory_lock);
    bool high = number == POOL_RESERVED_HIGH || number == POOL_USED_HIGH;
    pool->numbers[number] = high ? pool->numbers[number - 1] : value;
    pthread_mutex_unlock(&platform->memory_lock);
}
