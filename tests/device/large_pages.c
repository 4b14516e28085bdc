/* Preloaded, it gives a program a host with pages of 64 KiB, as some aarch64 systems have: the size that sysconf tells, and
 * mappings that must begin, and begin in their file, at a multiple of it and end at one. */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static const size_t PAGE = 64 << 10;

static int is_aligned(const void *address)
{
    return (uintptr_t)address % PAGE == 0;
}

static size_t whole(size_t size)
{
    return (size + PAGE - 1) / PAGE * PAGE;
}

long sysconf(int name)
{
    long (*next)(int);
    *(void **)&next = dlsym(RTLD_NEXT, "sysconf");
    const long value = next(name);
    return name == _SC_PAGESIZE ? (long)PAGE : name == _SC_PHYS_PAGES ? value / 16 : value;
}

static void *map(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    return (void *)syscall(SYS_mmap, address, size, protection, flags, file, offset);
}

void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    const int fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
    if ((size_t)offset % PAGE != 0 || (fixed && !is_aligned(address))) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    if (fixed) {
        return map(address, whole(size), protection, flags, file, offset);
    }
    char *room = map(NULL, whole(size) + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) {
        return MAP_FAILED;
    }
    char *first = (char *)whole((uintptr_t)room), *end = room + whole(size) + PAGE;
    if (first > room) {
        syscall(SYS_munmap, room, first - room);
    }
    syscall(SYS_munmap, first + whole(size), end - first - whole(size));
    return map(first, size, protection, flags | MAP_FIXED, file, offset);
}

void *mmap64(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    return mmap(address, size, protection, flags, file, offset);
}

static int change(long number, void *address, size_t size, int how)
{
    if (!is_aligned(address)) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(number, address, whole(size), how);
}

int munmap(void *address, size_t size)
{
    return change(SYS_munmap, address, size, 0);
}

int mprotect(void *address, size_t size, int protection)
{
    return change(SYS_mprotect, address, size, protection);
}

int madvise(void *address, size_t size, int advice)
{
    return change(SYS_madvise, address, size, advice);
}

/* Programs are loaded in pages of the real size: a page that begins with none of theirs may still have some. */
int msync(void *address, size_t size, int flags)
{
    char *first = address;
    while (first < (char *)address + PAGE - 4096 && syscall(SYS_msync, first, 1, flags) != 0) {
        first += 4096;
    }
    const size_t skipped = (size_t)(first - (char *)address);
    return (int)syscall(SYS_msync, first, size > skipped ? size - skipped : 1, flags);
}
