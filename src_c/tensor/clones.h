/* One binary for all x86-64: a function marked KERNEL_CLONES is compiled for several instruction sets, chosen when the
 * library loads. Everything inlined into it (US_ALWAYS_INLINE) is compiled with it. */
#ifndef UNDERSTUDY_CLONES_H
#define UNDERSTUDY_CLONES_H

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(UNDERSTUDY_NO_CLONES)
#define KERNEL_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KERNEL_CLONES
#endif

#endif
