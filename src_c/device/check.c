#include "device/check.h"

#include "device/order.h"
#include "report/caller.h"
#include "understudy/understudy.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 0xff makes every float type NaN and every integer -1: values that show. */
enum { FRESH_BYTE = 0xff, FENCE_BYTE = 0xfd };

static unsigned enabled = 0;
static _Atomic int64_t findings = 0;

/* Its bit; 0: no check has this name. */
static unsigned check_named(const char *word, size_t length)
{
    static const char *const names[] = {"memory", "init", "sync", "leak", "refusals", "race", "workspace"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) == length && memcmp(word, names[i], length) == 0) {
            return 1u << i;
        }
    }
    return 0;
}

static void read_checks(void)
{
    static const char between[] = ", \t\n";
    const char *word = us_environment_text("UNDERSTUDY_CHECK", "");
    size_t length = 0;
    for (word += strspn(word, between); *word != '\0'; word += length + strspn(word + length, between)) {
        length = strcspn(word, between);
        unsigned bit = check_named(word, length);
        if (bit == 0) {
            us_log(LOG_LEVEL_ERROR, "UNDERSTUDY_CHECK has \"%.*s\"; known checks: memory, init, sync, race, leak, "
                   "workspace, refusals",
                   (int)length, word);
        }
        enabled |= bit;
    }
    if ((enabled & CHECK_REFUSALS) != 0) {
        us_report_refusals_as_errors();
    }
}

unsigned us_checks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_checks);
    return enabled;
}

/* Before a call can be refused. */
__attribute__((constructor)) static void read_at_load(void)
{
    us_checks();
}

static void tell(const char *check, const char *format, va_list arguments, const char *place)
{
    char text[768];
    vsnprintf(text, sizeof text, format, arguments);
    atomic_fetch_add(&findings, 1);
    us_log(LOG_LEVEL_ERROR, "check %s: %s%s", check, text, place);
}

void us_finding(const char *check, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tell(check, format, arguments, us_place(us_current_caller()).text);
    va_end(arguments);
    us_log_calls();
}

/* A finding about what the program did not do, so at no place of it. */
US_PRINTF(2, 3) static void finding_at_end(const char *check, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tell(check, format, arguments, "");
    va_end(arguments);
}

static int64_t count_findings(void)
{
    return atomic_load(&findings) + ((us_checks() & CHECK_REFUSALS) != 0 ? us_refusals() : 0);
}

int64_t understudy_findings(void)
{
    return count_findings();
}

/* UNDERSTUDY_CHECK_EXIT: the process's exit status when there were findings. The priority is that of what runs last, when
 * the leaks are known. Other libraries' ends do not run any more; what the program has printed is kept. */
__attribute__((destructor(101))) static void exit_with_findings(void)
{
    int64_t status = us_environment_integer("UNDERSTUDY_CHECK_EXIT", 0, 0, 255);
    int64_t count = count_findings();
    if (status != 0 && count > 0) {
        us_log(LOG_LEVEL_ERROR, "%lld findings: exit status %lld", (long long)count, (long long)status);
        fflush(NULL);
        _exit((int)status);
    }
}

typedef struct Text {
    char text[640];
} Text;

static Text block_text(const Allocation *block)
{
    Text told;
    snprintf(told.text, sizeof told.text, "block #%llu (%zu bytes from %s%s)", (unsigned long long)block->serial,
             block->size, block->function, us_place(block->caller).text);
    return told;
}

/* ---- memory and init: what is in a block ---- */

/* The fence begins where the bytes that were asked for end. */
static size_t fence_size(const Allocation *block)
{
    static const size_t LONGEST = (size_t)2 << 20;
    size_t slack = us_arena_slack(block);
    return slack < LONGEST ? slack : LONGEST;
}

void us_check_allocated(Allocation *block)
{
    unsigned char *bytes = (unsigned char *)block->address + block->alias;
    if (us_checks() & CHECK_MEMORY) {
        memset(bytes, FRESH_BYTE, block->size);
        memset(bytes + block->size, FENCE_BYTE, fence_size(block));
    }
    if (us_checks() & CHECK_INIT && block->kind == MEMORY_DEVICE) {
        block->written = calloc(block->size / 8 + 1, 1);
    }
}

static void check_fence(const Allocation *block)
{
    const unsigned char *fence = (const unsigned char *)block->address + block->alias + block->size;
    size_t last = fence_size(block);
    while (last > 0 && fence[last - 1] == FENCE_BYTE) {
        last--;
    }
    if (last > 0) {
        us_finding("memory", "the %zu bytes behind %s were written to", last, block_text(block).text);
    }
}

void us_check_beyond(const Allocation *block, size_t offset, size_t size)
{
    us_finding("memory", "%s uses %zu bytes from byte %zu on of %s; the card lets it reach byte %zu, but that is not what "
               "was asked for", us_current_function(), size, offset, block_text(block).text, block->reach);
}

/* ---- what queued tasks use ---- */

static Text user_text(const User *user)
{
    Text told;
    snprintf(told.text, sizeof told.text, "%s%s", user->name, us_place(user->caller).text);
    return told;
}

void us_check_host_copy(const void *address, size_t size, bool writes)
{
    User user;
    if ((us_checks() & CHECK_SYNC) != 0 && us_order_find_user((uintptr_t)address, size, writes, &user)) {
        us_finding("sync", "the host %s %zu bytes %s %p while %s, which %s there, is still queued; synchronise its "
                   "stream first", writes ? "writes" : "copies", size, writes ? "at" : "from", address, user_text(&user).text,
                   user.writes ? "writes" : "reads");
    }
}

bool us_check_is_settled(const void *address, size_t size)
{
    User user;
    return !us_order_find_user((uintptr_t)address, size, false, &user);
}

bool us_check_host_touch(const void *address, const void *instruction)
{
    User user;
    if ((us_checks() & CHECK_SYNC) == 0 || !us_order_host_touch((uintptr_t)address, &user)) {
        return false;
    }
    if (user.name != NULL) {
        Origin before = us_set_origin((Origin){us_current_function(), us_find_interrupted(instruction), true});
        us_finding("sync", "host code %s %p while %s, which %s there, has not been waited for; synchronise its stream "
                   "first", user.writes ? "touches" : "writes", address, user_text(&user).text,
                   user.writes ? "writes" : "reads");
        us_set_origin(before);
    }
    return true;
}

void us_check_freed(Allocation *block)
{
    if (us_checks() & CHECK_MEMORY) {
        check_fence(block);
        User user;
        /* What ends in a stream's order is used by the task that ends it: `race` has been told. */
        if (block->pool == NULL && !block->leaving && us_order_find_user(block->address, block->size, true, &user)) {
            us_finding("memory", "%s is freed while %s, which uses it, is still queued", block_text(block).text,
                       user_text(&user).text);
        }
    }
    us_order_forget(block->address, block->size);
    free(block->written);
    block->written = NULL;
}

/* ---- init: a bit for each byte that has been written ---- */

static void set_bits(unsigned char *bits, size_t first, size_t count)
{
    size_t i = first;
    const size_t end = first + count;
    while (i < end && i % 8 != 0) {
        bits[i / 8] |= (unsigned char)(1u << i % 8);
        i++;
    }
    memset(bits + i / 8, 0xff, (end - i) / 8);
    for (i += (end - i) / 8 * 8; i < end; i++) {
        bits[i / 8] |= (unsigned char)(1u << i % 8);
    }
}

static bool get_bit(const unsigned char *bits, size_t i)
{
    return (bits[i / 8] >> i % 8 & 1) != 0;
}

/* The first bit that is not set, counted from `first`; `count`: all are. */
static size_t find_clear(const unsigned char *bits, size_t first, size_t count)
{
    size_t i = first;
    const size_t end = first + count;
    while (i < end) {
        if (i % 8 == 0 && end - i >= 8 && bits[i / 8] == 0xff) {
            i += 8;
        } else if (get_bit(bits, i)) {
            i++;
        } else {
            break;
        }
    }
    return i - first;
}

/* What is known of some bytes of a block. */
typedef struct Shadow {
    Allocation *block; /* NULL: nothing, so they count as written */
    size_t first, count;
} Shadow;

/* With the memory lock held. */
static Shadow shadow_of(Platform *platform, const void *address, size_t size)
{
    Allocation *block = us_memory_block(platform, address);
    size_t first = block != NULL ? (uintptr_t)address - block->address : 0;
    if (block == NULL || block->written == NULL || first >= block->size) {
        return (Shadow){NULL, 0, 0};
    }
    return (Shadow){block, first, size < block->size - first ? size : block->size - first};
}

void us_check_mark_written(Platform *platform, const void *address, size_t size)
{
    if ((us_checks() & CHECK_INIT) == 0 || size == 0) {
        return;
    }
    PlatformState *state = platform_state(platform);
    pthread_mutex_lock(&state->memory_lock);
    Shadow shadow = shadow_of(platform, address, size);
    if (shadow.block != NULL) {
        set_bits(shadow.block->written, shadow.first, shadow.count);
    }
    pthread_mutex_unlock(&state->memory_lock);
}

bool us_check_is_written(Platform *platform, const void *address, size_t size, size_t *unwritten)
{
    PlatformState *state = platform_state(platform);
    pthread_mutex_lock(&state->memory_lock);
    Shadow shadow = shadow_of(platform, address, size);
    *unwritten = shadow.block != NULL ? find_clear(shadow.block->written, shadow.first, shadow.count) : 0;
    pthread_mutex_unlock(&state->memory_lock);
    return shadow.block == NULL || *unwritten == shadow.count;
}

/* With the memory lock held: the destination is as far written as the source. */
static void copy_bits(const Shadow *to, const Shadow *from)
{
    for (size_t i = 0; i < to->count && i < from->count; i++) {
        if (get_bit(from->block->written, from->first + i)) {
            set_bits(to->block->written, to->first + i, 1);
        } else {
            to->block->written[(to->first + i) / 8] &= (unsigned char)~(1u << (to->first + i) % 8);
        }
    }
}

void us_check_copied(Platform *platform, const void *destination, const void *source, size_t size)
{
    if ((us_checks() & CHECK_INIT) == 0 || size == 0) {
        return;
    }
    PlatformState *state = platform_state(platform);
    pthread_mutex_lock(&state->memory_lock);
    Shadow to = shadow_of(platform, destination, size);
    Shadow from = shadow_of(platform, source, size);
    size_t unwritten = from.block != NULL ? find_clear(from.block->written, from.first, from.count) : 0;
    bool complete = from.block == NULL || unwritten == from.count;
    if (to.block != NULL && complete) {
        set_bits(to.block->written, to.first, to.count);
    } else if (to.block != NULL) {
        copy_bits(&to, &from);
    }
    Text block = !complete ? block_text(from.block) : (Text){""};
    pthread_mutex_unlock(&state->memory_lock);
    if (!complete && to.block == NULL) {
        us_finding("init", "%s copies %zu bytes to the host, of which byte %zu of %s was never written",
                   us_current_function(), size, from.first + unwritten, block.text);
    }
}

/* ---- workspace ---- */

bool us_check_workspace(const Device *device, const char *function, const void *workspace, size_t size, size_t wanted)
{
    Explanation why = {{0}};
    if (size < wanted) {
        us_finding("workspace", "%s is given a workspace of %zu bytes; its first function asked for %zu", function,
                   size, wanted);
        return false;
    }
    if (us_memory_open(device->platform, device, workspace, wanted, MEMORY_USER_KERNEL, &why) == NULL) {
        us_finding("workspace", "%s needs a workspace of %zu bytes on device %d: %s", function, wanted,
                   (int)device->ordinal, why.text);
        return false;
    }
    return true;
}

/* ---- leak ---- */

static void check_block_at_end(Allocation *block, void *context)
{
    (void)context;
    if (us_checks() & CHECK_LEAK) {
        finding_at_end("leak", "%s was not freed", block_text(block).text);
    }
    if (us_checks() & CHECK_MEMORY) {
        check_fence(block);
    }
}

static void check_block_of_device(Allocation *block, void *device)
{
    if (block->device == device) {
        us_finding("leak", "%s was not freed before the device was reset", block_text(block).text);
    }
}

void us_check_leaks_of_device(const Device *device)
{
    if ((us_checks() & CHECK_LEAK) != 0) {
        uint64_t streams = us_device_streams(device);
        us_memory_each(device->platform, check_block_of_device, (void *)(uintptr_t)device);
        if (streams > 0) {
            us_finding("leak", "%llu streams not destroyed before device %d was reset", (unsigned long long)streams,
                       (int)device->ordinal);
        }
    }
}

static void report_alive(uint64_t alive, const char *name)
{
    if (alive > 0) {
        finding_at_end("leak", "%llu %s not destroyed", (unsigned long long)alive, name);
    }
}

void us_check_leaks(Platform *platform)
{
    static _Atomic bool done[PLATFORM_LIMIT];
    if ((us_checks() & (CHECK_LEAK | CHECK_MEMORY)) == 0 || atomic_exchange(&done[platform->id], true)) {
        return;
    }
    us_memory_each(platform, check_block_at_end, NULL);
    if (us_checks() & CHECK_LEAK) {
        uint64_t streams = 0;
        for (int32_t i = 0; i < platform->device_count; i++) {
            const Device *device = __atomic_load_n(&platform->devices[i], __ATOMIC_ACQUIRE);
            streams += device != NULL ? us_device_streams(device) : 0;
        }
        report_alive(streams, "streams");
        report_alive(us_handle_count(HANDLE_EVENT), "events");
        report_alive(us_handle_count(HANDLE_NOTIFY), "notifies");
        for (size_t i = 0; i < platform->profile.leak_kind_count; i++) {
            report_alive(us_handle_count(platform->profile.leak_kinds[i].kind), platform->profile.leak_kinds[i].name);
        }
    }
}
