#include "ftdsp/call.h"

#include "device/team.h"
#include "ftdsp/chip.h"
#include "ftdsp/space.h"
#include "report/arrays.h"
#include "tensor/parallel.h"

#include <stdio.h>

static FtCall begin(const char *function, DType dtype)
{
    return (FtCall){.checks = us_call_begin_void(function), .dtype = dtype, .cores = 1};
}

static void check_prefix(FtCall *call)
{
    ft_require(call, ft_chip_has(ft_chip(), call->dtype), "prefix", "chip", FT_BAD_PREFIX,
               "%s has no %s functions; choose UNDERSTUDY_FT_CHIP=%s", ft_chip()->name, us_dtype_name(call->dtype),
               ft_chip_with(call->dtype));
}

/* The cores of a mask: bits above the chip's cores, or above those that ft-run started, name none. */
static uint32_t cores_of(int core_mask)
{
    const int chip = ft_chip()->core_count;
    const int cores = ft_is_one_of_many() && us_team()->size < chip ? us_team()->size : chip;
    return (uint32_t)core_mask & ((1u << cores) - 1);
}

/* Whether this core tells of a call that ends before the cores meet: the one that would do the work, core 0 where none would. */
static bool tells(uint32_t members)
{
    const uint32_t own = 1u << ft_own_core(), lowest = members != 0 ? members & -members : 1;
    return !ft_is_one_of_many() || own == lowest;
}

/* Before the work: whether this core does it, and who waits for the end. */
static void meet(FtCall *call, uint32_t members)
{
    const uint32_t own = 1u << ft_own_core();
    if (!ft_ok(call) || !ft_is_one_of_many()) {
        return;
    }
    if ((members & own) == 0) {
        call->checks.status = FT_NOT_HERE;
        return;
    }
    call->meet = members;
    us_team_barrier(members);
    if ((members & (own - 1)) != 0) { /* a lower core does it */
        call->checks.status = FT_NOT_HERE;
    }
}

FtCall ft_shared(const char *function, DType dtype, int core_mask)
{
    FtCall call = begin(function, dtype);
    const uint32_t members = cores_of(core_mask);
    const bool fits = ft_chip_has(ft_chip(), dtype) && core_mask > 0 && members != 0;
    call.checks.status = fits || tells(members) ? 0 : FT_NOT_HERE;
    check_prefix(&call);
    ft_require(&call, core_mask >= 0, "core_mask", "negative", FT_BAD_CORE_MASK, "core_mask is %d", core_mask);
    call.shared = true;
    call.cores = __builtin_popcount(members);
    if (ft_ok(&call) && members == 0) {
        us_log(LOG_LEVEL_WARN, "%s: core_mask 0x%x names no core of %s; nothing is done", function, (unsigned)core_mask,
               ft_chip()->name);
        call.checks.status = FT_NOT_HERE;
    }
    meet(&call, members);
    return call;
}

FtCall ft_private(const char *function, DType dtype)
{
    us_parallel_alone(true); /* one core's work */
    FtCall call = begin(function, dtype);
    check_prefix(&call);
    return call;
}

FtCall ft_by_mask(const char *function, DType dtype, int core_mask)
{
    FtCall call = ft_shared(function, dtype, core_mask);
    const uint32_t named = (uint32_t)core_mask & ((1u << ft_chip()->core_count) - 1);
    call.shared = (named & (named - 1)) != 0;
    if (!call.shared) {
        us_parallel_alone(true);
    }
    return call;
}

void ft_end(FtCall *call)
{
    if (!call->shared) {
        us_parallel_alone(false);
    }
    if (call->meet != 0) {
        us_team_barrier(call->meet);
    }
}

void ft_length(FtCall *call, const char *name, int64_t length)
{
    ft_require(call, length >= 0, name, "negative", FT_BAD_SIZE, "%s is %lld elements", name, (long long)length);
}

void ft_positive(FtCall *call, const char *name, int64_t number)
{
    ft_require(call, number >= 1, name, "range", FT_BAD_SIZE, "%s is %lld; it is at least 1", name, (long long)number);
}

int64_t ft_count(FtCall *call, const char *name, int factors, const int64_t *sizes)
{
    int64_t count = ft_ok(call) ? us_shape_elements(factors, sizes) : 0;
    char text[SHAPE_TEXT_SIZE];
    ft_require(call, count >= 0 && count <= FT_ELEMENT_LIMIT, name, "overflow", FT_BAD_SIZE,
               "%s would have %s elements, more than any memory holds", name,
               us_shape_text(factors, sizes, text, sizeof text));
    return ft_ok(call) ? count : 0;
}

void ft_optional(FtCall *call, const char *name, const void *data, int64_t count, DType dtype)
{
    if (data) {
        ft_operand(call, name, data, count, dtype);
    }
}

enum { NAME_SIZE = 64 };

static const char *spelled(const FtCall *call, const char *name, char *text)
{
    if (call->entry == 0) {
        return name;
    }
    snprintf(text, NAME_SIZE, "%s[%lld]", name, (long long)call->entry - 1);
    return text;
}

static void check_space(FtCall *call, const char *name, const void *data, size_t bytes)
{
    size_t in_array = 0;
    char text[NAME_SIZE];
    if (us_expected_array(data, &in_array)) {
        ft_require(call, bytes <= in_array, name, "window", FT_BAD_SPACE,
                   "%s at %p needs %zu bytes, but its array ends after %zu", spelled(call, name, text), data, bytes,
                   in_array);
    }
    const FtWindow *window = ft_window_of(data);
    if (!window) {
        const bool unseen = call->shared && ft_is_one_of_many();
        us_log(unseen ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "%s: %s %p is ordinary host memory, which %s",
               call->checks.function, spelled(call, name, text), data, unseen ? "the other cores do not see" : "the chip does not have");
        return;
    }
    const size_t left = ft_window_left(window, data);
    ft_require(call, bytes <= left, name, "window", FT_BAD_SPACE, "%s at %p needs %zu bytes, but %s ends after %zu",
               spelled(call, name, text), data, bytes, window->name, left);
    if (window->space != FT_L2) {
        return;
    }
    ft_require(call, !call->shared, name, "private", FT_BAD_SPACE,
               "%s at %p is in %s, which is private to a core; what cores share is in DDR or SMC",
               spelled(call, name, text), data, window->name);
    ft_require(call, window->core == ft_own_core(), name, "other-core", FT_BAD_SPACE,
               "%s at %p is in %s, but the call runs on core %d", spelled(call, name, text), data, window->name,
               ft_own_core());
}

void ft_operand(FtCall *call, const char *name, const void *data, int64_t count, DType dtype)
{
    if (!ft_ok(call) || count <= 0) {
        return;
    }
    const size_t size = us_dtype_size(dtype);
    /* The parts of a complex number are elements of their own in memory. */
    const size_t alignment = dtype == DTYPE_COMPLEX64 || dtype == DTYPE_COMPLEX128 ? size / 2 : size;
    char text[NAME_SIZE];
    ft_require(call, data, name, "null", FT_BAD_POINTER, "%s is NULL; it has %lld elements", spelled(call, name, text),
               (long long)count);
    ft_require(call, (uintptr_t)data % alignment == 0, name, "alignment", FT_BAD_POINTER,
               "%s at %p is not aligned to its elements of %zu bytes", spelled(call, name, text), data, alignment);
    if (ft_ok(call)) {
        check_space(call, name, data, (size_t)count * size);
    }
}

void ft_entry(FtCall *call, const char *table, int64_t index, const void *data, int64_t count, DType dtype)
{
    call->entry = index + 1;
    ft_operand(call, table, data, count, dtype);
    call->entry = 0;
}

static bool overlap(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes)
{
    const uintptr_t first = ft_location(a), second = ft_location(b);
    return a && b && a_bytes > 0 && b_bytes > 0 && first < second + (size_t)b_bytes && second < first + (size_t)a_bytes;
}

void ft_same_or_apart_bytes(FtCall *call, const char *name, const void *output, int64_t output_bytes, const char *other,
                            const void *input, int64_t input_bytes)
{
    const bool same = ft_location(output) == ft_location(input);
    ft_require(call, same || !overlap(output, output_bytes, input, input_bytes), name, "overlap", FT_BAD_OVERLAP,
               "%s at %p overlaps %s at %p in part; they may be the same array or apart", name, output, other, input);
}

void ft_same_or_apart(FtCall *call, const char *name, const void *output, const char *other, const void *input,
                      int64_t count, DType dtype)
{
    ft_same_or_apart_bytes(call, name, output, ft_bytes(count, dtype), other, input, ft_bytes(count, dtype));
}

void ft_apart(FtCall *call, const char *name, const void *output, int64_t output_bytes, const char *other,
              const void *input, int64_t input_bytes)
{
    ft_require(call, !overlap(output, output_bytes, input, input_bytes), name, "overlap", FT_BAD_OVERLAP,
               "%s at %p (%lld bytes) shares memory with %s at %p (%lld bytes)", name, output, (long long)output_bytes,
               other, input, (long long)input_bytes);
}

void ft_finish(FtCall *call, KernelStatus status)
{
    ft_require(call, status == KERNEL_OK, "scratch", "no-memory", FT_NO_MEMORY, "the host has no memory for the work");
}

/* So few elements are done before another thread is there; what grains below FT_GRAIN count may be much work each. */
enum { SERIAL_ELEMENTS = 16 * FT_GRAIN };

typedef struct Split {
    FtSlice *body;
    void *context;
    int64_t count, slice;
} Split;

static void run_core(void *context, int64_t core)
{
    const Split *split = context;
    const int64_t begin = core * split->slice;
    const int64_t end = split->count - begin < split->slice ? split->count : begin + split->slice;
    split->body(split->context, begin, end);
}

void ft_split(const FtCall *call, int64_t count, int64_t grain, FtSlice *body, void *context)
{
    if (count <= 0) {
        return;
    }
    const int64_t grains = (count + grain - 1) / grain;
    const int64_t slice = (grains + call->cores - 1) / call->cores * grain;
    const int64_t slices = (count + slice - 1) / slice;
    Split split = {body, context, count, slice};
    if (grain < FT_GRAIN || count > SERIAL_ELEMENTS) {
        us_parallel(slices, run_core, &split);
        return;
    }
    for (int64_t core = 0; core < slices; core++) {
        run_core(&split, core);
    }
}
