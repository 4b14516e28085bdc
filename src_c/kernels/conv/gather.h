/* A convolution as a gather: each result position looks at input positions on a regular grid. Forward, and backward
 * to the data for each residue of the stride, are the same sum
 *   out[n, g*results + k, o] = sum over c, t of
 *       filter[g,k,c,t] * in[n, g*channels + c, o * step + offset + t * offset_step]
 *  */
#ifndef UNDERSTUDY_GATHER_H
#define UNDERSTUDY_GATHER_H

#include "kernels/conv/conv.h"
#include "tensor/convert.h"

#include <string.h>

typedef struct TapAxis {
    int64_t count, offset, offset_step;
} TapAxis;

typedef struct Gather {
    DType compute; /* float32 or float64 */
    DType column_type; /* of columns and filters: compute, or the 16-bit type that products take as it is */
    DType in_type;     /* column_type; pointwise gathers read float16 and bfloat16, too */
    const void *in; /* packed: [images, channels, positions], or [images, positions, channels] */
    bool channels_last;
    bool by_position; /* columns are [position][channel][tap] although channels are first: see us_gather_slopes_by_product */
    int64_t images, groups, channels, results; /* channels and results of one group */
    int64_t in_size[CONV_AXES], out_size[CONV_AXES], step[CONV_AXES];
    TapAxis taps[CONV_AXES];
    View filter; /* [groups, results, channels, t0, t1, t2], of column_type where it is read */
} Gather;

/* Whether the channels of a position of [images, channels, …] lie beside each other. */
static inline bool us_conv_has_channels_last(const View *view)
{
    return view->shape[1] > 1 && view->strides[1] == 1;
}

static inline int64_t conv_product3(const int64_t *sizes)
{
    return sizes[0] * sizes[1] * sizes[2];
}

static inline int64_t gather_taps(const Gather *gather)
{
    return gather->taps[0].count * gather->taps[1].count * gather->taps[2].count;
}

/* Result positions of all images, counted in row-major order. */
static inline int64_t gather_positions(const Gather *gather)
{
    return gather->images * conv_product3(gather->out_size);
}

/* Bytes of the vectors that copies of steps of 2 take. */
enum { LANE_BYTES = 32 };

/* The first and the last `part` bytes of a run, which may overlap; `part` is a constant. */
US_ALWAYS_INLINE void copy_ends(char *to, const char *from, int64_t bytes, int64_t part)
{
    memcpy(to, from, (size_t)part);
    memcpy(to + bytes - part, from + bytes - part, (size_t)part);
}

US_ALWAYS_INLINE void clear_ends(char *to, int64_t bytes, int64_t part)
{
    memset(to, 0, (size_t)part);
    memset(to + bytes - part, 0, (size_t)part);
}

/* Short runs are copied by parts of known sizes, the last one over the end of the one before it, instead of calls of
 * memcpy. */
US_ALWAYS_INLINE void copy_run(void *to, const void *from, int64_t bytes)
{
    enum { WIDE = 64, MIDDLE = 32, NARROW = 16, FEW = 8, LEAST = 4 };
    if (bytes >= WIDE) {
        for (int64_t i = WIDE; i + WIDE <= bytes; i += WIDE) {
            memcpy((char *)to + i, (const char *)from + i, WIDE);
        }
        copy_ends(to, from, bytes, WIDE);
    } else if (bytes >= MIDDLE) {
        copy_ends(to, from, bytes, MIDDLE);
    } else if (bytes >= NARROW) {
        copy_ends(to, from, bytes, NARROW);
    } else if (bytes >= FEW) {
        copy_ends(to, from, bytes, FEW);
    } else if (bytes >= LEAST) {
        copy_ends(to, from, bytes, LEAST);
    } else if (bytes > 0) {
        memcpy(to, from, sizeof(uint16_t));
    }
}

/* And cleared. */
US_ALWAYS_INLINE void clear_bytes(void *to, int64_t bytes)
{
    enum { LONG = 128, WIDE = 64, MIDDLE = 32, NARROW = 16, FEW = 8, LEAST = 4 };
    if (bytes > LONG) {
        memset(to, 0, (size_t)bytes);
    } else if (bytes >= WIDE) {
        clear_ends(to, bytes, WIDE);
    } else if (bytes >= MIDDLE) {
        clear_ends(to, bytes, MIDDLE);
    } else if (bytes >= NARROW) {
        clear_ends(to, bytes, NARROW);
    } else if (bytes >= FEW) {
        clear_ends(to, bytes, FEW);
    } else if (bytes >= LEAST) {
        clear_ends(to, bytes, LEAST);
    } else if (bytes > 0) {
        memset(to, 0, sizeof(uint16_t));
    }
}

/* The part of a line of positions that lies inside the input: `before` positions see zeros, then `inside` the elements from
 * `first` on (counted in positions of an image), then the rest zeros. */
typedef struct Part {
    int64_t before, inside, first;
} Part;

/* Spatial axes become one where every result looks at the input element of its own place along the inner one. */
void us_gather_merge_axes(Gather *gather);

/* Whether the columns of a group are the input itself: one tap, at the result's own place. */
bool us_gather_is_pointwise(const Gather *gather);

/* The columns of channels first … first + channels - 1 of a group, at positions begin … begin + count - 1, of the
 * column type, with zeros where taps lie outside: [channel][tap][position], or by position [position][channel][tap], or
 * for channels last [position][tap][channel]. */
void us_gather_columns(const Gather *gather, int64_t group, int64_t first, int64_t channels, int64_t begin,
                       int64_t count, void *columns);

/* Whether the filters of a result are a row of a matrix as they are, in the order of the columns, and the elements'
 * stride. */
bool us_gather_filter_stride(const Gather *gather, int64_t *stride);

/* Elements of the column type: [groups][results][channels][tap], or for channels last
 * [groups][results][tap][channel]. */
void us_gather_pack_filter(const Gather *gather, void *packed);

/* Whether a view of float16 or bfloat16 is a packed operand as it is, so that it can be converted part by part. */
bool us_gather_is_packed_half(const View *view, bool channels_last);

/* Whether a view of [images, channels, …] is a packed operand as it lies. */
bool us_gather_is_operand(const View *view, DType type, bool channels_last);

/* A view of [images, channels, …] as the packed operand of a gather, of float, double or its own 16-bit type: itself where
 * that is what it is, or a copy in scratch memory, that *copy owns (us_scratch_give_back). False: no memory. The view has
 * five axes. */
bool us_gather_operand(const View *view, DType type, bool channels_last, const void **data, void **copy);

/* What happens to sums before they are stored: see conv.h. All views have five axes, the bias one. */
typedef struct Finish {
    View out, bias, addend;
    double alpha, beta, addend_scale;
    bool relu;
} Finish;

/* Whether the sums are the result as they are. */
bool us_finish_is_plain(const Finish *finish);

/* Stores `count` sums of one channel at neighbouring positions (counted over all images), or of one position at
 * neighbouring channels; the array is used up. */
void us_finish_positions(const Finish *finish, DType compute, int64_t channel, int64_t begin, int64_t count,
                         void *sums);
void us_finish_channels(const Finish *finish, DType compute, int64_t position, int64_t first, int64_t count,
                        void *sums);

/* Where the sums of a channel of an image belong, stored as they are, or that and in one row; NULL: elsewhere. */
void *us_finish_in_place(const Finish *finish, DType compute, int64_t image, int64_t channel);
void *us_finish_plane(const Finish *finish, DType compute, int64_t image, int64_t channel);

/* dy of a gather, packed like its input, as one of which every position sees itself. */
Gather us_gather_of_rows(const Gather *gather, const void *dy, DType type);

/* What a gather makes of dy for its input, stored by `finish`: see folded.c. */
bool us_folds(const Gather *gather);
KernelStatus us_gather_folded(const Gather *gather, const void *dy, const Finish *finish);

/* The sums of a gather, stored by `finish`. */
KernelStatus us_gather_by_product(const Gather *gather, const Finish *finish);
KernelStatus us_gather_by_rows(const Gather *gather, const Finish *finish);
KernelStatus us_gather_by_winograd(const Gather *gather, const Finish *finish);

/* What us_gather_by_rows does where it can, with a packed filter of finite weights; and its slopes, which are not finite where
 * zeros have met what is not. */
bool us_cells_take(const Gather *gather);
KernelStatus us_gather_by_cells(const Gather *gather, const void *filter, const Finish *finish);
KernelStatus us_gather_slopes_by_cells(const Gather *gather, const void *dy, DType dy_type, void *sums);

/* The same, and what is taken, for float32 and filters of many results, or depthwise ones of many channels. */
bool us_lanes_take(const Gather *gather);
KernelStatus us_gather_by_lanes(const Gather *gather, const void *filter, const Finish *finish);
KernelStatus us_gather_slopes_by_lanes(const Gather *gather, const void *dy, void *sums); /* not of depthwise filters */

/* Gathers of the same input, each of the results at first, first + stride, … of all. */
enum { GATHER_MOST_PHASES = 16 };
typedef struct GatherPhase {
    Gather gather;
    int64_t first[CONV_AXES];
} GatherPhase;

/* The sums of all of them. *taken false: nothing is done, for there are weights that are not finite. */
bool us_lanes_take_phases(const GatherPhase *phases, int64_t count);
KernelStatus us_gather_phases_by_lanes(const GatherPhase *phases, int64_t count, const int64_t *stride, const Finish *finish,
                                       bool *taken);

/* The sums of us_gather_by_product for 16-bit numbers where the processor multiplies these. *taken false: nothing is done. */
KernelStatus us_gather_by_shifts(const Gather *gather, const Finish *finish, bool *taken);

/* Whether Winograd's method takes the gather: 3 x 3 neighbouring taps, steps of 1, float32, and a moderate amount of
 * memory for its filter and for a row of tiles. */
bool us_winograd_takes(const Gather *gather);

/* sums[g,k,c,t] = sum over n, o of dy[n, g*results + k, o] * in[…] of the gather, in the order of a packed filter. dy
 * is packed like the input; products, and rows of depthwise filters with channels first, read float16 and bfloat16 of both,
 * too. */
KernelStatus us_gather_slopes_by_product(const Gather *gather, const void *dy, DType dy_type, void *sums);
KernelStatus us_gather_slopes_by_shifts(const Gather *gather, const void *dy, DType dy_type, void *sums, bool *taken);
KernelStatus us_gather_slopes_by_rows(const Gather *gather, const void *dy, DType dy_type, void *sums);
KernelStatus us_gather_slopes_by_winograd(const Gather *gather, const void *dy, DType target, void *sums);

#endif
