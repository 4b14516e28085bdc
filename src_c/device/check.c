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

static void read_checks(void)
{
    static const char *const names[] = {"memory", "init", "sync", "leak", "refusals", "race"};
    char list[128];
    snprintf(list, sizeof list, "%s", us_environment_text("UNDERSTUDY_CHECK", ""));
    char *rest = NULL;
    for (char *word = strtok_r(list, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        unsigned bit = 0;
        for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
            bit = strcmp(word, names[i]) == 0 ? 1u << i : bit;
        }
        if (bit == 0) {
            us_log(LOG_LEVEL_ERROR, "UNDERSTUDY_CHECK has \"%s\"; known checks: memory, init, sync, race, leak, "
                   "refusals",
                   word);
        }
        enabled |= bit;
    }
}

unsigned us_checks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_checks);
    return enabled;
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
    snprintf(told.text, sizeof told.text, "block #%llu (%zu bytes from %s%s)", (unsigned long long)block->serial, block->size,
             block->function, us_place(block->caller).text);
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
        us_finding("sync", "the host %s %zu bytes %s %p while %s, which %s there, is still queued; synchronise its stream "
                   "first", writes ? "writes" : "copies", size, writes ? "at" : "from", address, user_text(&user).text,
                   user.writes ? "writes" : "reads");
    }
}

bool us_check_host_touch(const void *address, const void *instruction)
{
    User user;
    if ((us_checks() & CHECK_SYNC) == 0 || !us_order_host_touch((uintptr_t)address, &user)) {
        return false;
    }
    if (user.name != NULL) {
        Origin before = us_set_origin((Origin){us_current_function(), us_find_interrupted(instruction), true});
        us_finding("sync", "host code %s %p while %s, which %s there, has not been waited for; synchronise its stream first",
                   user.writes ? "touches" : "writes", address, user_text(&user).text, user.writes ? "writes" : "reads");
        us_set_origin(before);
    }
    return true;
}

void us_check_freed(Allocation *block)
{
    if (us_checks() & CHECK_MEMORY) {
        check_fence(block);
        User user;
        if (us_order_find_user(block->address, block->size, true, &user)) {
            us_finding("memory", "%s is freed while %s, which uses it, is still queued", block_text(block).text,
                       user_text(&user).text);
        }
    }
    us_order_forget(block->address, block->size);
    free(block->written);
    block->written = NULL;
}

/* ---- init ---- */

void us_check_written(Platform *platform, const void *address, size_t size)
{
    if ((us_checks() & CHECK_INIT) == 0 || size == 0) {
        return;
    }
    PlatformState *state = platform_state(platform);
    pthread_mutex_lock(&state->memory_lock);
    Allocation *block = us_memory_block(platform, address);
    if (block != NULL && block->written != NULL) {
        size_t first = (uintptr_t)address - block->address;
        for (size_t i = first; i < first + size && i < block->size; i++) {
            block->written[i / 8] |= (unsigned char)(1u << i % 8);
        }
    }
    pthread_mutex_unlock(&state->memory_lock);
}

bool us_check_is_written(Platform *platform, const void *address, size_t size, size_t *unwritten)
{
    PlatformState *state = platform_state(platform);
    bool complete = true;
    pthread_mutex_lock(&state->memory_lock);
    const Allocation *block = us_memory_block(platform, address);
    if (block != NULL && block->written != NULL) {
        size_t first = (uintptr_t)address - block->address;
        for (size_t i = first; complete && i < first + size && i < block->size; i++) {
            complete = (block->written[i / 8] >> i % 8 & 1) != 0;
            *unwritten = i - first;
        }
    }
    pthread_mutex_unlock(&state->memory_lock);
    return complete;
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
        report_alive(us_platform_streams(platform), "streams");
        report_alive(us_handle_count(HANDLE_EVENT), "events");
        report_alive(us_handle_count(HANDLE_NOTIFY), "notifies");
        for (size_t i = 0; i < platform->profile.leak_kind_count; i++) {
            report_alive(us_handle_count(platform->profile.leak_kinds[i].kind), platform->profile.leak_kinds[i].name);
        }
    }
}
