#include "tensor/levels.h"

#include "report/report.h"

#include <stdatomic.h>
#include <stddef.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

static bool is_of_amd(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    return __builtin_cpu_is("amd");
#else
    return false;
#endif
}

/* AMD's number of a generation: 0x19 is Zen 3 and 4, 0x1a Zen 5; 0 of other vendors. */
static unsigned amd_family(void)
{
#ifdef __x86_64__
    unsigned signature = 0, ebx, ecx, edx;
    if (is_of_amd() && __get_cpuid(1, &signature, &ebx, &ecx, &edx)) {
        return (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
    }
#endif
    return 0;
}

enum { ZEN_3_AND_4 = 0x19, ZEN_5 = 0x1a };

/* AVX-512 tells one from the other. */
static bool is_zen_3(void)
{
    return amd_family() == ZEN_3_AND_4 && !us_has_long_registers();
}

static bool is_zen_4(void)
{
    return amd_family() == ZEN_3_AND_4 && us_has_long_registers();
}

static bool divides_fast(void)
{
    return amd_family() >= ZEN_5 || is_zen_3();
}

/* What is looked up once. known: 2: yes; 1: no; 0: not looked up yet. */
static bool is_known_to(_Atomic int *known, bool (*look_up)(void))
{
    int answer = atomic_load_explicit(known, memory_order_relaxed);
    if (answer == 0) {
        answer = look_up() ? 2 : 1;
        atomic_store_explicit(known, answer, memory_order_relaxed);
    }
    return answer == 2;
}

bool us_finds_rows(void)
{
    static _Atomic int known;
    return is_known_to(&known, is_zen_4);
}

int64_t us_fetch_ahead(int64_t bytes)
{
    return us_finds_rows() ? 0 : bytes;
}

bool us_divides_fast(void)
{
    static _Atomic int known;
    return is_known_to(&known, divides_fast);
}

bool us_fetches_columns(void)
{
    return is_of_amd();
}

bool us_has_long_registers(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f");
#else
    return false;
#endif
}

/* GCC 11 knows the features of levels, but not the levels. What AVX2 and AVX-512 imply is not asked for. */
bool us_is_v3(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("f16c") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("lzcnt") &&
           __builtin_cpu_supports("movbe");
#else
    return false;
#endif
}

bool us_is_v4(void)
{
#ifdef __x86_64__
    return us_is_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

#ifdef UNDERSTUDY_LEVELS
typedef enum Level { LEVEL_BASE, LEVEL_V3, LEVEL_V4, LEVEL_COUNT } Level;

/* Where calls from outside go, made by src_c/generate/levels.py: the functions of each level, and the row in use. */
extern const void *const *const us_level_rows[LEVEL_COUNT];
extern const void *const *us_level_row;

static Level best_level(void)
{
    if (us_is_v4()) {
        return LEVEL_V4;
    }
    return us_is_v3() ? LEVEL_V3 : LEVEL_BASE;
}

/* The best level of this machine, or less by UNDERSTUDY_ISA. Before other constructors, which may call a kernel. */
__attribute__((constructor(101))) static void choose_level(void)
{
    static const char *const names[] = {"base", "v3", "v4", NULL};
    const int best = (int)best_level(), chosen = us_environment_choice("UNDERSTUDY_ISA", names, best);
    us_level_row = us_level_rows[chosen < best ? chosen : best];
}
#endif
