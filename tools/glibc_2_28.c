/* What wheels take from a C library of 2018 instead of the builder's (tools/wheel.py): functions that it did not have, in
 * terms of those that it had. Hidden: each library has its own. */
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(hidden)

pid_t gettid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

int getcpu(unsigned *processor, unsigned *node)
{
    return (int)syscall(SYS_getcpu, processor, node, NULL);
}

/* What programs begin with (--wrap), in the version of FIRST. */
typedef void Action(void);
__attribute__((visibility("default"))) int first_start(int (*)(int, char **, char **), int, char **, Action *, Action *, Action *, void *);
__asm__(".symver first_start, __libc_start_main@" FIRST);

int __wrap___libc_start_main(int (*program)(int, char **, char **), int count, char **arguments, Action *begin, Action *end,
                             Action *end_of_loader, void *stack)
{
    return first_start(program, count, arguments, begin, end, end_of_loader, stack);
}

/* On 64-bit systems the structure is the kernel's. */
int stat(const char *restrict path, struct stat *restrict found)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, found, 0);
}

int fstat(int file, struct stat *found)
{
    return (int)syscall(SYS_fstat, file, found);
}
