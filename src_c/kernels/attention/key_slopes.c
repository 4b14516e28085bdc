#include "kernels/attention/key_slopes.h"

#include "kernels/attention/tiles.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"

#include <string.h>

enum { GROUP = 16, GROUP_NUMBERS = 1 << 24, COLUMNS = 32 /* that a thread adds */ };

int64_t us_row_group(int64_t most, int64_t width)
{
    return bounded(GROUP_NUMBERS / larger(1, us_scratch_count(most, width)), 1, GROUP);
}

void *us_take_key_slopes(KeySlopes *slopes, int64_t keys)
{
    enum { WHOLE = sizeof(int64_t) / sizeof(float) };
    const int64_t places = us_scratch_count(slopes->group, slopes->most);
    float *of_places, *of_counts, **const arrays[] = {&slopes->sums, &slopes->slopes, &of_places, &of_counts};
    const int64_t sides[][2] = {{keys, slopes->width}, {places, slopes->width}, {places, WHOLE}, {slopes->group, WHOLE}};
    void *const block = attention_take_arrays(sizeof sides / sizeof *sides, arrays, sides);
    if (block != NULL) {
        slopes->places = (void *)of_places;
        slopes->counts = (void *)of_counts;
        memset(slopes->sums, 0, (size_t)(keys * slopes->width) * sizeof *slopes->sums);
    }
    return block;
}

typedef struct Addition {
    const KeySlopes *slopes;
    int64_t rows;
} Addition;

static void add_columns(void *context, int64_t piece)
{
    const Addition *addition = context;
    const KeySlopes *slopes = addition->slopes;
    const int64_t column = piece * COLUMNS, width = slopes->width, count = smaller(COLUMNS, width - column);
    for (int64_t row = 0; row < addition->rows; row++) {
        const int64_t *places = slopes->places + row * slopes->most;
        const float *from = slopes->slopes + row * slopes->most * width + column;
        for (int64_t i = 0; i < slopes->counts[row]; i++) {
            attention_add(slopes->sums + places[i] * width + column, from + i * width, count);
        }
    }
}

void us_add_key_slopes(const KeySlopes *slopes, int64_t rows)
{
    Addition addition = {slopes, rows};
    int64_t keys = 0;
    for (int64_t row = 0; row < rows; row++) {
        keys += slopes->counts[row];
    }
    run_pieces(ceiling(slopes->width, COLUMNS), us_scratch_count(keys, slopes->width), add_columns, &addition);
}
