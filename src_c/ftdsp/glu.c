/* glu, the gated linear unit (ft-dsp 4). */
#include "ftdsp/elementwise.h"
#include "ftdsp/operators.h"
#include "ftdsp/shape.h"

#include <string.h>

enum { HALVES = 2 };

typedef struct Glu {
    const char *input;
    char *halves[HALVES];
    int64_t block; /* elements of a half that lie together in the input */
    int64_t size;  /* of an element */
    void *output;
    ArrayMap gate;
} Glu;

/* Elements begin … end-1 of each half, from the input. */
static void cut(const Glu *work, int64_t begin, int64_t end)
{
    while (begin < end) {
        const int64_t outer = begin / work->block, within = begin % work->block;
        const int64_t run = work->block - within < end - begin ? work->block - within : end - begin;
        for (int half = 0; half < HALVES; half++) {
            const int64_t from = (HALVES * outer + half) * work->block + within;
            memcpy(work->halves[half] + begin * work->size, work->input + from * work->size,
                   (size_t)(run * work->size));
        }
        begin += run;
    }
}

static void run_glu(void *context, int64_t begin, int64_t end)
{
    Glu *work = context;
    for (; begin < end; begin += FT_GRAIN) { /* the halves of a tile are still in the cache */
        const int64_t tile_end = end - begin < FT_GRAIN ? end : begin + FT_GRAIN;
        cut(work, begin, tile_end);
        ft_run_array_map(&work->gate, begin, tile_end);
    }
}

static void check_split(FtCall *call, const Shape *shape, int split_dim, int num_split, const int *split_sizes)
{
    ft_require(call, num_split == HALVES, "num_split", "range", FT_BAD_ATTRIBUTE,
               "num_split is %d; one half is gated by the other, so it is 2", num_split);
    ft_require(call, split_sizes, "split_sizes", "null", FT_BAD_POINTER, "split_sizes is NULL; it has 2 entries");
    ft_require(call, split_sizes[0] == split_sizes[1] && 2 * (int64_t)split_sizes[0] == shape->size[split_dim],
               "split_sizes", "mismatch", FT_BAD_SIZE, "split_sizes are %d and %d, axis %d has %lld elements",
               split_sizes[0], split_sizes[1], split_dim, (long long)shape->size[split_dim]);
}

static void check_operands(FtCall *call, const Glu *work, int64_t len)
{
    const int64_t bytes = len * work->size;
    const void *output = work->output;
    ft_operand(call, "in_data", work->input, HALVES * len, call->dtype);
    for (int half = 0; half < HALVES; half++) {
        ft_entry(call, "split_data", half, work->halves[half], len, call->dtype);
        ft_apart(call, "split_data", work->halves[half], bytes, "in_data", work->input, HALVES * bytes);
    }
    ft_apart(call, "split_data", work->halves[1], bytes, "split_data", work->halves[0], bytes);
    ft_operand(call, "out_data", output, len, call->dtype);
    ft_apart(call, "out_data", output, bytes, "in_data", work->input, HALVES * bytes);
    for (int half = 0; half < HALVES; half++) {
        ft_apart(call, "out_data", output, bytes, "split_data", work->halves[half], bytes);
    }
}

void ft_glu(FtCall *call, const void *in_data, void *const *split_data, void *out_data, int ndim, int split_dim,
            const int *input_shape, int num_split, const int *split_sizes, const int *strides, int len)
{
    ft_rank(call, "ndim", ndim, 1);
    ft_require(call, split_dim >= 0 && split_dim < ndim, "split_dim", "range", FT_BAD_ATTRIBUTE,
               "split_dim is %d of %d axes", split_dim, ndim);
    const Shape shape = ft_shape(call, "input_shape", input_shape, ndim);
    check_split(call, &shape, split_dim, num_split, split_sizes);
    ft_require(call, strides, "strides", "null", FT_BAD_POINTER, "strides is NULL; it has %d entries", shape.rank);
    ft_strides(call, "strides", strides, &shape);
    ft_require(call, (int64_t)len * HALVES == shape.elements, "len", "mismatch", FT_BAD_SIZE,
               "len is %d, half of the input is %lld elements", len, (long long)shape.elements / HALVES);
    ft_require(call, split_data, "split_data", "table", FT_BAD_POINTER, "split_data is NULL; it has 2 entries");
    if (!ft_ok(call) || len == 0) {
        return;
    }
    Glu work = {
        .input = in_data,
        .halves = {split_data[0], split_data[1]},
        .block = split_sizes[0] * (int64_t)strides[split_dim],
        .size = (int64_t)us_dtype_size(call->dtype),
        .output = out_data,
    };
    check_operands(call, &work, len);
    if (ft_ok(call)) {
        static const double none[ELEMENTWISE_NUMBERS];
        ft_array_map(&work.gate, &us_map_glu, none, call->dtype, (const void *const[]){split_data[0], split_data[1]},
                     call->dtype, &work.output, len);
        ft_split(call, len, FT_GRAIN, run_glu, &work);
    }
}
