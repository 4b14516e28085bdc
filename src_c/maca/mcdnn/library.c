/* The library as a whole: versions, error strings (mcdnn 2, 4.1). */
#include <stddef.h>

size_t mcdnnGetVersion(void);
size_t mcdnnGetVersion(void)
{
    return 1101;
}
