#include "kernels/norm/lrn.h"

#include "kernels/detach.h"
#include "kernels/norm/power.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"
#include "tensor/levels.h"

#include <stdatomic.h>
#include <string.h>

/* Positions handled together: the rows of a window fit into a core's first cache. Where rows have to be gathered
 * element by element, all channels of the positions fit into its second. A few calls on small images get shorter
 * blocks, for all threads. */
enum { BLOCK_LIMIT = 1024, BLOCK_LEAST = 64, GATHERED_ELEMENTS = 16 * 1024, GATHERED_LEAST = 16, PIECES_WANTED = 16,
       WINDOW_LIMIT = LRN_WINDOW_LIMIT /* of an LRN descriptor (mcdnn 3) */,
       TILE = 64 /* positions of one channel whose sums wait in registers' reach */,
       LINES_ELEMENTS = 2048 /* of lines of channels */ };

/* The inputs; forward has X only. */
enum { X, DY, INPUT_LIMIT };

/* Sums from here on are formed in double: beyond, squares and quotients of floats leave their range. */
#define SUM_LIMIT 1e20

/* One call. A row is one channel at a block of positions. */
typedef struct Lrn {
    const LocalNorm *norm;
    View inputs[INPUT_LIMIT], out;
    int input_count;
    bool in_place[INPUT_LIMIT], out_in_place; /* the rows are unit-stride arrays of the compute type */
    int64_t images, channels, positions, block, blocks;
    int64_t back, ahead; /* channels of the window on both sides of its own */
    bool by_lines;       /* forward where the channels of a position lie together */
    struct Lrn *wide; /* the same call in double; NULL: it is */
    bool repeatable;        /* a block may be formed twice: no input is overwritten, no prior value counts */
    atomic_int out_of_memory;
} Lrn;

/* The positions of a piece. */
typedef struct Block {
    int64_t image, begin, count;
} Block;

/* Elements of one channel at neighbouring positions. */
typedef void Transfer(const View *view, char *data, int64_t stride, int64_t count, void *values);

static void walk(const View *view, const Block *block, int64_t channel, char *values, size_t value_size,
                 Transfer *transfer)
{
    const int32_t last = view->rank - 1;
    const int64_t size = (int64_t)us_dtype_size(view->dtype);
    const int64_t base = block->image * view->strides[0] + channel * view->strides[1];
    const int64_t width = last > 1 ? view->shape[last] : 1;
    for (int64_t done = 0; done < block->count;) {
        int64_t offset = base, rest = block->begin + done;
        int64_t run = width - rest % width;
        run = run < block->count - done ? run : block->count - done;
        for (int32_t axis = last; axis > 1; axis--) {
            offset += rest % view->shape[axis] * view->strides[axis];
            rest /= view->shape[axis];
        }
        transfer(view, (char *)view->data + offset * size, last > 1 ? view->strides[last] : 1, run,
                 values + (size_t)done * value_size);
        done += run;
    }
}

/* Neighbouring spatial axes that are packed become one: longer runs. */
static View merged(const View *view)
{
    View result = *view;
    while (result.rank > 3 && result.strides[result.rank - 2] ==
                                  result.strides[result.rank - 1] * result.shape[result.rank - 1]) {
        result.shape[result.rank - 2] *= result.shape[result.rank - 1];
        result.strides[result.rank - 2] = result.strides[result.rank - 1];
        result.rank--;
    }
    return result;
}

static bool has_unit_rows(const View *view)
{
    return view->rank == 2 || (view->rank == 3 && view->strides[2] == 1);
}

static bool has_lines(const View *view)
{
    return view->rank == 3 && view->strides[1] == 1;
}

static char *line_at(const View *view, int64_t image, int64_t position)
{
    const int64_t offset = image * view->strides[0] + position * view->strides[2];
    return (char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
}

static bool has_rows(const View *view, DType compute)
{
    return view->dtype == compute && has_unit_rows(view);
}

static Block block_of(const Lrn *lrn, int64_t piece)
{
    Block block = {piece / lrn->blocks, piece % lrn->blocks * lrn->block, lrn->block};
    block.count = lrn->positions - block.begin < block.count ? lrn->positions - block.begin : block.count;
    return block;
}

/* S = factor * (sum of squares) + offset, to the power -exponent */
typedef struct Window {
    double factor, offset, exponent;
} Window;

static Window window_of(const Lrn *lrn)
{
    const LocalNorm *norm = lrn->norm;
    return (Window){norm->norm_alpha / norm->window, norm->norm_k, norm->norm_beta};
}

/* Rows of the inputs that are needed next. Rows are short and far from each other, so the processor would not look for
 * them by itself. */
typedef struct Ahead {
    const char *rows[INPUT_LIMIT];
    int count;
    int64_t size; /* of an element */
} Ahead;

static Ahead ahead_of(const Lrn *lrn, const Block *block, int64_t channel)
{
    Ahead ahead = {.size = (int64_t)us_dtype_size(lrn->out.dtype)};
    for (int k = 0; channel < lrn->channels && k < lrn->input_count; k++) {
        const View *view = &lrn->inputs[k];
        if (has_unit_rows(view)) {
            const int64_t offset = block->image * view->strides[0] + channel * view->strides[1] + block->begin;
            ahead.rows[ahead.count++] = (const char *)view->data + offset * ahead.size;
        }
    }
    return ahead;
}

/* Lines of channels from a position on, read and written. */
static Ahead lines_ahead(const Lrn *lrn, const Block *block, int64_t position)
{
    const View *from = &lrn->inputs[X], *to = &lrn->out;
    Ahead ahead = {.size = (int64_t)us_dtype_size(to->dtype)};
    if (position < lrn->positions && from->dtype == to->dtype) {
        ahead.rows[ahead.count++] = line_at(from, block->image, position);
        ahead.rows[ahead.count++] = line_at(to, block->image, position);
    }
    return ahead;
}

US_ALWAYS_INLINE void prefetch(const Ahead *ahead, int64_t begin, int64_t count)
{
    for (int k = 0; k < ahead->count; k++) {
        for (int64_t i = begin * ahead->size; i < (begin + count) * ahead->size; i += CACHE_LINE_BYTES) {
            __builtin_prefetch(ahead->rows[k] + i);
        }
    }
}

#define ELEMENT float
#define NAME(name) name##_float
#include "kernels/norm/lrn_body.inc"

#define ELEMENT double
#define NAME(name) name##_double
#include "kernels/norm/lrn_body.inc"

/* Whether some window of a block has too large a sum. */
static bool has_large_sums(Lrn *lrn, const Block *block)
{
    Rows_float inputs[INPUT_LIMIT];
    const Window window = window_of(lrn);
    float *memory = begin_block_float(lrn, block, 0, inputs), sums[TILE];
    bool fits = true;
    for (int64_t ready = 0; memory != NULL && fits && ready < lrn->channels; ready++) {
        fetch_float(lrn, X, block, ready, &inputs[X]);
        const float *row[WINDOW_LIMIT];
        const int64_t rows = window_float(lrn, &inputs[X], ready - lrn->back - lrn->ahead, ready, row);
        for (int64_t i = 0; i < block->count; i += TILE) {
            const int64_t length = block->count - i < TILE ? block->count - i : TILE;
            fits = fits && window_sums_float(&window, row, rows, length, sums);
            move_float(row, rows, length);
        }
    }
    us_scratch_give_back(memory);
    return !fits;
}

/* A block in float, or in double where sums pass SUM_LIMIT. */
typedef bool Piece(Lrn *lrn, const Block *block);

static void run_piece(Lrn *lrn, int64_t piece, Piece *in_float, Piece *in_double)
{
    const Block block = block_of(lrn, piece);
    if (lrn->wide == NULL) {
        in_double(lrn, &block);
        return;
    }
    const bool large = !lrn->repeatable && has_large_sums(lrn, &block);
    if (large || !in_float(lrn, &block)) {
        in_double(lrn->wide, &block);
    }
}

static void forward_piece(void *context, int64_t piece)
{
    run_piece(context, piece, forward_piece_float, forward_piece_double);
}

static void backward_piece(void *context, int64_t piece)
{
    run_piece(context, piece, backward_piece_float, backward_piece_double);
}

/* Results do not depend on the blocks: every position is on its own. */
static void choose_blocks(Lrn *lrn)
{
    int64_t block = BLOCK_LIMIT;
    bool gathered = false;
    for (int k = 0; k < lrn->input_count; k++) {
        gathered = gathered || !has_unit_rows(&lrn->inputs[k]);
    }
    if (gathered && GATHERED_ELEMENTS / lrn->channels < block) {
        block = GATHERED_ELEMENTS / lrn->channels;
        block = block < GATHERED_LEAST ? GATHERED_LEAST : block;
    }
    while (block > BLOCK_LEAST && lrn->images * ((lrn->positions + block - 1) / block) < PIECES_WANTED) {
        block /= 2;
    }
    lrn->block = block < lrn->positions ? block : lrn->positions;
    lrn->blocks = (lrn->positions + lrn->block - 1) / lrn->block;
}

static void set_in_place(Lrn *lrn, DType compute)
{
    lrn->out_in_place = has_rows(&lrn->out, compute);
    for (int k = 0; k < lrn->input_count; k++) {
        /* Channels are read after their neighbours were written. */
        lrn->in_place[k] = has_rows(&lrn->inputs[k], compute) && lrn->inputs[k].data != lrn->out.data;
    }
}

static KernelStatus run(const LocalNorm *norm, int input_count, const View *inputs, const View *out, ParallelBody *body)
{
    Lrn lrn = {.norm = norm, .out = merged(out), .input_count = input_count, .images = out->shape[0],
               .channels = out->shape[1], .back = (norm->window - 1) / 2};
    lrn.ahead = norm->window - 1 - lrn.back;
    lrn.positions = us_view_elements(out) / (lrn.images * lrn.channels);
    lrn.repeatable = norm->beta == 0;
    for (int k = 0; k < input_count; k++) {
        lrn.inputs[k] = merged(&inputs[k]);
        lrn.repeatable = lrn.repeatable && inputs[k].data != out->data;
    }
    lrn.by_lines = has_lines(&lrn.inputs[X]) && has_lines(&lrn.out) && norm->alpha == 1 && norm->beta == 0;
    choose_blocks(&lrn);
    atomic_init(&lrn.out_of_memory, 0);
    Lrn wide = lrn;
    set_in_place(&wide, DTYPE_FLOAT64);
    if (out->dtype != DTYPE_FLOAT64) {
        lrn.wide = &wide;
    }
    set_in_place(&lrn, out->dtype != DTYPE_FLOAT64 ? DTYPE_FLOAT32 : DTYPE_FLOAT64);
    run_pieces(lrn.images * lrn.blocks, us_view_elements(out), body, &lrn);
    return atomic_load(&lrn.out_of_memory) || atomic_load(&wide.out_of_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

KernelStatus us_lrn_forward(const View *views, const void *attributes)
{
    Detached detached;
    KernelStatus status = us_detach(&detached, 1, views, 1, &views[1]);
    if (status == KERNEL_OK) {
        status = run(attributes, 1, detached.inputs, &views[1], forward_piece);
    }
    us_detach_end(&detached);
    return status;
}

KernelStatus us_lrn_backward(const View *views, const void *attributes)
{
    Detached detached;
    KernelStatus status = us_detach(&detached, 2, views, 1, &views[2]);
    if (status == KERNEL_OK) {
        status = run(attributes, 2, detached.inputs, &views[2], backward_piece);
    }
    us_detach_end(&detached);
    return status;
}
