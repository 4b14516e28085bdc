/* Preloaded: an allocation of the kind that kernels take their scratch memory with fails, the n-th from a call on. */
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

void fail_allocation(int n);
bool allocation_has_failed(void);

static atomic_int left;
static atomic_bool has_failed;

void fail_allocation(int n)
{
    has_failed = false;
    left = n;
}

bool allocation_has_failed(void)
{
    return has_failed;
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    if (left > 0 && atomic_fetch_sub(&left, 1) == 1) {
        has_failed = true;
        return ENOMEM;
    }
    *memory = memalign(alignment, size);
    return *memory == NULL ? ENOMEM : 0;
}
