#include "kernels/random/philox.h"

#include "tensor/convert.h"
#include "tensor/levels.h"

enum { ROUNDS = 10 };

static const uint64_t MULTIPLIER_0 = 0xd2511f53, MULTIPLIER_1 = 0xcd9e8d57;
static const uint32_t KEY_STEP_0 = 0x9e3779b9, KEY_STEP_1 = 0xbb67ae85;

#define TYPES "kernels/random/philox.inc"
#include "tensor/instantiate.inc"

#define LOOP_OF(level) make_words_##level

void us_philox_words(RandomStream stream, uint64_t first, int64_t groups, uint32_t *words)
{
    static void (*const levels[LEVEL_COUNT])(RandomStream, uint64_t, int64_t, uint32_t *) = {US_EACH_LEVEL(LOOP_OF)};
    levels[us_level()](stream, first, groups, words);
}
