#include "kernels/random/draws.h"
#include "kernels/scratch.h"
#include "tensor/lane.h"

enum { WORDS = 1024, NUMBERS = WORDS / 2, GROUPS = WORDS / PHILOX_GROUP };

/* Fisher and Yates, from the end: place i is exchanged with one of 0 … i. Place size - 1 - n takes number n of the
 * stream. */
static void shuffle(RandomStream stream, int64_t *values, int64_t size)
{
    uint32_t words[WORDS];
    for (int64_t n = 0; n + 1 < size; n++) {
        if (n % NUMBERS == 0) {
            us_philox_words(stream, (uint64_t)(n / NUMBERS) * GROUPS, GROUPS, words);
        }
        const uint64_t number = (uint64_t)words[NUMBERS + n % NUMBERS] << 32 | words[n % NUMBERS];
        const int64_t last = size - 1 - n;
        const int64_t other = (int64_t)us_random_below(number, (uint64_t)last + 1);
        const int64_t kept = values[last];
        values[last] = values[other];
        values[other] = kept;
    }
}

KernelStatus us_permutation(const View *views, const void *attributes)
{
    const View *out = &views[0];
    const int64_t size = us_view_elements(out);
    int64_t *values = us_scratch_array(size, sizeof *values);
    if (values == NULL) {
        return KERNEL_NO_MEMORY;
    }
    for (int64_t i = 0; i < size; i++) {
        values[i] = i;
    }
    shuffle(*(const RandomStream *)attributes, values, size);
    us_lane_store(LANE_INT64, out->data, out->dtype, out->strides[0], values, size);
    us_scratch_give_back(values);
    return KERNEL_OK;
}
