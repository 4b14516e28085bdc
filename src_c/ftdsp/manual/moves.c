/* Operators that move elements and do not look at them (ft-dsp-manual 3, 4). */
#include "ftdsp/manual.h"
#include "kernels/move/copy_view.h"

#include <string.h>

static View row_major(const void *data, DType dtype, int rank, const int64_t *shape)
{
    return us_view_contiguous((void *)data, dtype, rank, shape);
}

static void copy_elements(const void *from, void *to, int64_t count, DType dtype)
{
    const View source = row_major(from, dtype, 1, &count), target = row_major(to, dtype, 1, &count);
    if (from != to) {
        us_copy_view(&target, &source);
    }
}

void ft_op_reshape(FtCall *call, const FtReshape *a)
{
    copy_elements(a->input, a->output, a->length, call->dtype);
}

void ft_op_flattengrad(FtCall *call, const FtFlattengrad *a)
{
    const Shape shape = ft_shape(call, "origin_shape", a->origin_shape, a->origin_ndim);
    copy_elements(a->input, a->output, shape.elements, call->dtype);
}

void ft_op_flatten(FtCall *call, const FtFlatten *a)
{
    ft_require(call, a->param, "param", "null", FT_BAD_POINTER, "param is NULL");
    ft_require(call, a->param->elem_cnt_ >= 0 && a->param->type_size_ >= 0, "param", "range", FT_BAD_SIZE,
               "elem_cnt_ is %d, type_size_ %d", a->param->elem_cnt_, a->param->type_size_);
    const int64_t bytes = ft_ok(call) ? (int64_t)a->param->elem_cnt_ * a->param->type_size_ : 0;
    ft_operand(call, "input", a->input, bytes, DTYPE_INT8);
    ft_operand(call, "output", a->output, bytes, DTYPE_INT8);
    ft_same_or_apart(call, "output", a->output, "input", a->input, bytes, DTYPE_INT8);
    if (ft_ok(call)) {
        copy_elements(a->input, a->output, bytes, DTYPE_INT8);
    }
}

void ft_op_fill(FtCall *call, const FtFill *a)
{
    ft_require(call, a->param, "param", "null", FT_BAD_POINTER, "param is NULL");
    ft_require(call, a->param->elem_cnt_ >= 0, "param", "range", FT_BAD_SIZE, "elem_cnt_ is %d", a->param->elem_cnt_);
    const int64_t count = ft_ok(call) ? a->param->elem_cnt_ : 0;
    ft_operand(call, "output", a->output, count, call->dtype);
    ft_apart(call, "output", a->output, ft_bytes(count, call->dtype), "value", a->value, ft_bytes(1, call->dtype));
    if (ft_ok(call)) {
        View value = row_major(a->value, call->dtype, 1, &count);
        const View output = row_major(a->output, call->dtype, 1, &count);
        value.strides[0] = 0;
        us_copy_view(&output, &value);
    }
}

/* blocks of `size` elements, each `times` times in a row */
static void repeat_blocks(const void *from, void *to, int64_t blocks, int64_t times, int64_t size, DType dtype)
{
    const int64_t shape[] = {blocks, times, size};
    const View target = row_major(to, dtype, 3, shape);
    View source = row_major(from, dtype, 3, shape);
    source.strides[0] = size;
    source.strides[1] = 0;
    us_copy_view(&target, &source);
}

void ft_op_tile(FtCall *call, const FtTile *a)
{
    const Shape shape = ft_shape(call, "input_shape", a->input_shape, a->tile_dim);
    repeat_blocks(a->input, a->output, shape.elements, a->tile_num, a->stride, call->dtype);
}

void ft_op_allgather(FtCall *call, const FtAllgather *a)
{
    repeat_blocks(a->input, a->output, 1, a->output_rank, (int64_t)a->input_rank * a->data_size, call->dtype);
}

/* ---- cuts: from `first` on, `size` entries of the middle axis of [outer, axis, inner] ---- */

typedef struct Cut {
    const void *input;
    int64_t outer, axis, inner;
    void *const *outputs;
    int pieces;
    const int *sizes[2]; /* parameter arrays of an entry per piece, or NULL */
} Cut;

static int64_t cut_elements(const Cut *cut, int64_t size)
{
    return cut->outer * size * cut->inner;
}

/* The tables are read while outputs are written. */
static void check_cut(FtCall *call, const char *outputs, const Cut *cut, int piece, int64_t size)
{
    const void *output = cut->outputs[piece];
    const int64_t count = cut_elements(cut, size), bytes = ft_bytes(count, call->dtype);
    ft_entry(call, outputs, piece, output, count, call->dtype);
    ft_apart(call, outputs, output, bytes, "the input", cut->input, ft_bytes(cut_elements(cut, cut->axis), call->dtype));
    ft_apart(call, outputs, output, bytes, "the table of outputs", cut->outputs, cut->pieces * (int64_t)sizeof(void *));
    for (int k = 0; k < 2; k++) {
        ft_apart(call, outputs, output, bytes, "the sizes", cut->sizes[k], ft_bytes(cut->pieces, DTYPE_INT32));
    }
}

static void run_cut(const FtCall *call, const Cut *cut, int piece, int64_t first, int64_t size)
{
    const int64_t shape[] = {cut->outer, size, cut->inner};
    const int64_t offset = first * cut->inner * (int64_t)us_dtype_size(call->dtype);
    View source = row_major((const char *)cut->input + offset, call->dtype, 3, shape);
    const View target = row_major(cut->outputs[piece], call->dtype, 3, shape);
    source.strides[0] = cut->axis * cut->inner;
    us_copy_view(&target, &source);
}

static Cut cut_along(FtCall *call, const void *input, int axis, const int *input_shape, int input_ndim)
{
    const Shape shape = ft_shape(call, "input_shape", input_shape, input_ndim);
    ft_require(call, axis >= 0 && axis < input_ndim, "axis", "range", FT_BAD_ATTRIBUTE, "axis is %d of %d axes", axis,
               input_ndim);
    if (!ft_ok(call)) {
        return (Cut){0};
    }
    if (shape.elements == 0) { /* the sizes beside an empty axis may multiply to anything */
        return (Cut){.input = input, .axis = shape.size[axis]};
    }
    return (Cut){.input = input, .outer = us_shape_elements(axis, shape.size), .axis = shape.size[axis],
                 .inner = us_shape_elements(input_ndim - axis - 1, shape.size + axis + 1)};
}

void ft_op_split(FtCall *call, const FtSplit *a)
{
    Cut cut = cut_along(call, a->input, a->axis, a->input_shape, a->input_ndim);
    cut.outputs = a->outputs;
    cut.pieces = a->num_split;
    cut.sizes[0] = a->split_sizes;
    ft_require(call, a->outputs, "outputs", "table", FT_BAD_POINTER, "outputs is NULL; it has %d entries", a->num_split);
    int64_t sum = 0;
    for (int k = 0; ft_ok(call) && k < a->num_split; k++) {
        ft_require(call, a->split_sizes[k] >= 0, "split_sizes", "range", FT_BAD_SIZE, "split_sizes[%d] is %d", k,
                   a->split_sizes[k]);
        sum += a->split_sizes[k];
    }
    ft_require(call, sum == cut.axis, "split_sizes", "mismatch", FT_BAD_SIZE,
               "the split_sizes add up to %lld, the axis has %lld", (long long)sum, (long long)cut.axis);
    for (int k = 0; ft_ok(call) && k < a->num_split; k++) {
        check_cut(call, "outputs", &cut, k, a->split_sizes[k]);
    }
    int64_t first = 0;
    for (int k = 0; ft_ok(call) && k < a->num_split; first += a->split_sizes[k++]) {
        run_cut(call, &cut, k, first, a->split_sizes[k]);
    }
}

void ft_op_split_with_overlap(FtCall *call, const FtSplitWithOverlap *a)
{
    Cut cut = cut_along(call, a->input, a->axis, a->input_shape, a->input_ndim);
    cut.outputs = a->outputs;
    cut.pieces = a->num_split;
    cut.sizes[0] = a->start_indices;
    cut.sizes[1] = a->end_indices;
    ft_require(call, a->outputs, "outputs", "table", FT_BAD_POINTER, "outputs is NULL; it has %d entries", a->num_split);
    for (int k = 0; ft_ok(call) && k < a->num_split; k++) {
        const int start = a->start_indices[k], end = a->end_indices[k];
        ft_require(call, start >= 0 && start <= end && end <= cut.axis, "start_indices", "range", FT_BAD_SIZE,
                   "output %d is from %d to %d of %lld", k, start, end, (long long)cut.axis);
        if (ft_ok(call)) {
            check_cut(call, "outputs", &cut, k, end - start);
        }
    }
    for (int k = 0; ft_ok(call) && k < a->num_split; k++) {
        run_cut(call, &cut, k, a->start_indices[k], a->end_indices[k] - a->start_indices[k]);
    }
}

void ft_op_tensorlistfromtensor(FtCall *call, const FtTensorlistfromtensor *a)
{
    const int rows = a->input_tensor_shape[0], total = a->input_tensor_total_elements;
    ft_require(call, rows >= 1, "input_tensor_shape", "range", FT_BAD_SIZE, "input_tensor_shape[0] is %d", rows);
    ft_require(call, total % rows == 0, "input_tensor_total_elements", "mismatch", FT_BAD_SIZE,
               "%d elements cannot be cut into %d rows", total, rows);
    if (total == 0) { /* the table of outputs is not read */
        return;
    }
    ft_require(call, a->output_tensors, "output_tensors", "table", FT_BAD_POINTER, "output_tensors is NULL");
    const Cut cut = {.input = a->input_tensor_values, .outer = 1, .axis = rows, .inner = ft_ok(call) ? total / rows : 0,
                     .outputs = a->output_tensors, .pieces = rows};
    for (int row = 0; ft_ok(call) && row < rows; row++) {
        check_cut(call, "output_tensors", &cut, row, 1);
    }
    for (int row = 0; ft_ok(call) && row < rows; row++) {
        run_cut(call, &cut, row, row, 1);
    }
}

/* ---- bytes ---- */

void ft_op_tensorlistgetitem(FtCall *call, const FtTensorlistgetitem *a)
{
    const int64_t bytes = a->data_type == 0 ? a->length : (int64_t)a->length * a->data_type;
    ft_operand(call, "dst", a->dst, bytes, DTYPE_INT8);
    ft_apart(call, "dst", a->dst, bytes, "src", a->src, a->data_type == 0 ? 0 : bytes);
    if (ft_ok(call) && a->data_type == 0) {
        ft_clear(a->dst, bytes, DTYPE_INT8);
    } else if (ft_ok(call)) {
        copy_elements(a->src, a->dst, bytes, DTYPE_INT8);
    }
}

void ft_op_switchlayer(FtCall *call, const FtSwitchlayer *a)
{
    ft_require(call, a->index >= 0, "index", "negative", FT_BAD_ATTRIBUTE, "index is %d", a->index);
    ft_require(call, a->input_tensors && a->input_tensors[a->index], "input_tensors", "table", FT_BAD_POINTER,
               "input_tensors, or its entry %d, is NULL", a->index);
    ft_require(call, a->output, "output", "null", FT_BAD_POINTER, "output is NULL");
    const TensorC *input = ft_ok(call) ? a->input_tensors[a->index] : NULL;
    int64_t bytes = 0;
    ft_require(call, input->size >= 0 && input->type_size >= 0 &&
               !__builtin_mul_overflow(input->size, input->type_size, &bytes) && bytes <= FT_ELEMENT_LIMIT, "input_tensors",
               "range", FT_BAD_SIZE, "tensor %d has %lld elements of %lld bytes", a->index, input->size, input->type_size);
    if (!ft_ok(call)) {
        return;
    }
    ft_entry(call, "input_tensors", a->index, input->data, bytes, DTYPE_INT8);
    ft_operand(call, "output", a->output->data, bytes, DTYPE_INT8);
    ft_same_or_apart(call, "output", a->output->data, "input_tensors", input->data, bytes, DTYPE_INT8);
    if (ft_ok(call)) {
        copy_elements(input->data, a->output->data, bytes, DTYPE_INT8);
    }
}

/* ---- shapes ---- */

void ft_op_broadcastto(FtCall *call, const FtBroadcastto *a)
{
    const Shape from = ft_shape(call, "input_shape", a->input_shape, a->input_shape_size);
    const Shape to = ft_shape(call, "output_shape", a->output_shape, a->output_shape_size);
    ft_require(call, from.rank <= to.rank, "output_shape_size", "mismatch", FT_BAD_SIZE,
               "the output has %d axes, the input %d", to.rank, from.rank);
    for (int d = 0; ft_ok(call) && d < from.rank; d++) {
        const int64_t own = from.size[d], wanted = to.size[to.rank - from.rank + d];
        ft_require(call, own == wanted || own == 1, "output_shape", "mismatch", FT_BAD_SIZE,
                   "axis %d of the input has %lld entries, the output %lld", d, (long long)own, (long long)wanted);
    }
    if (ft_ok(call)) {
        const View input = row_major(a->input, call->dtype, from.rank, from.size);
        const View source = us_view_broadcast(&input, to.rank, to.size);
        const View target = row_major(a->output, call->dtype, to.rank, to.size);
        us_copy_view(&target, &source);
    }
}

void ft_op_spacetodepth(FtCall *call, const FtSpacetodepth *a)
{
    const Shape shape = ft_shape(call, "in_shape", a->in_shape, 4);
    const int64_t block = a->block, *size = shape.size, channels = size[3];
    ft_require(call, size[1] % block == 0 && size[2] % block == 0, "block", "mismatch", FT_BAD_SIZE,
               "%lld x %lld elements are not whole blocks of %d x %d", (long long)size[1], (long long)size[2], a->block,
               a->block);
    if (!ft_ok(call) || shape.elements == 0) {
        return;
    }
    /* output axes: image, y, x, channel, l, m */
    const int64_t out[] = {size[0], size[1] / block, size[2] / block, channels, block, block};
    const View target = row_major(a->output, call->dtype, 6, out);
    View source = row_major(a->input, call->dtype, 6, out);
    const int64_t row = size[2] * channels;
    const int64_t strides[] = {size[1] * row, block * row, block * channels, 1, row, channels};
    memcpy(source.strides, strides, sizeof strides);
    us_copy_view(&target, &source);
}

/* Between images [N, H, W, C] and blocks [bh, bw, N, h, w, C]: block (i, j) has the rows i, i + bh … of the image that begins
 * `margin` rows before it; h, w are those of a whole block. */
typedef struct Blocks {
    void *images, *blocks;
    int64_t images_count, height, width, channels; /* of the images */
    int64_t block[2], margin[2], size[2];          /* size: h, w */
} Blocks;

/* The entries k of block position i that lie in the image: margin <= k * block + i < margin + extent. */
static void inside(const Blocks *b, int axis, int64_t i, int64_t extent, int64_t *first, int64_t *count)
{
    const int64_t block = b->block[axis], margin = b->margin[axis];
    *first = margin > i ? (margin - i + block - 1) / block : 0;
    const int64_t end = margin + extent > i ? (margin + extent - i + block - 1) / block : 0;
    *count = end < b->size[axis] ? end - *first : b->size[axis] - *first;
    *count = *count < 0 ? 0 : *count;
}

static void move_blocks(const Blocks *b, DType dtype, bool to_blocks)
{
    const int64_t element = (int64_t)us_dtype_size(dtype), image_row = b->width * b->channels;
    const int64_t block_row = b->size[1] * b->channels, block_image = b->size[0] * block_row;
    for (int64_t i = 0; i < b->block[0]; i++) {
        for (int64_t j = 0; j < b->block[1]; j++) {
            int64_t y, x, rows, columns;
            inside(b, 0, i, b->height, &y, &rows);
            inside(b, 1, j, b->width, &x, &columns);
            const int64_t shape[] = {b->images_count, rows, columns, b->channels};
            const int64_t top = y * b->block[0] + i - b->margin[0], left = x * b->block[1] + j - b->margin[1];
            const int64_t image_offset = top * image_row + left * b->channels;
            const int64_t block_offset = (i * b->block[1] + j) * b->images_count * block_image + y * block_row +
                                         x * b->channels;
            View image = row_major((char *)b->images + image_offset * element, dtype, 4, shape);
            View block = row_major((char *)b->blocks + block_offset * element, dtype, 4, shape);
            const int64_t image_strides[] = {b->height * image_row, b->block[0] * image_row, b->block[1] * b->channels, 1};
            const int64_t block_strides[] = {block_image, block_row, b->channels, 1};
            memcpy(image.strides, image_strides, sizeof image_strides);
            memcpy(block.strides, block_strides, sizeof block_strides);
            us_copy_view(to_blocks ? &block : &image, to_blocks ? &image : &block);
        }
    }
}

void ft_op_spacetobatch(FtCall *call, const FtSpacetobatch *a)
{
    const Shape shape = ft_shape(call, "input_shape", a->input_shape, 4);
    const int *block = a->block_size, *pad = a->paddings;
    ft_require(call, block[0] >= 1 && block[1] >= 1, "block_size", "range", FT_BAD_SIZE, "block_size is %d x %d", block[0],
               block[1]);
    ft_require(call, pad[0] >= 0 && pad[1] >= 0 && pad[2] >= 0 && pad[3] >= 0, "paddings", "range", FT_BAD_SIZE,
               "paddings are %d %d %d %d", pad[0], pad[1], pad[2], pad[3]);
    const int64_t height = shape.size[1] + (ft_ok(call) ? (int64_t)pad[0] + pad[1] : 0);
    const int64_t width = shape.size[2] + (ft_ok(call) ? (int64_t)pad[2] + pad[3] : 0);
    ft_require(call, height % block[0] == 0 && width % block[1] == 0, "block_size", "mismatch", FT_BAD_SIZE,
               "%lld x %lld elements are not whole blocks of %d x %d", (long long)height, (long long)width, block[0],
               block[1]);
    const int64_t count = ft_count(call, "output", 4, (int64_t[]){shape.size[0], height, width, shape.size[3]});
    ft_operand(call, "output", a->output, count, call->dtype);
    ft_apart(call, "output", a->output, ft_bytes(count, call->dtype), "input", a->input,
             ft_bytes(shape.elements, call->dtype));
    if (!ft_ok(call) || count == 0) {
        return;
    }
    const Blocks blocks = {(void *)a->input, a->output, shape.size[0], shape.size[1], shape.size[2], shape.size[3],
                           {block[0], block[1]}, {pad[0], pad[2]}, {height / block[0], width / block[1]}};
    if (count > shape.elements) {
        ft_clear(a->output, count, call->dtype);
    }
    move_blocks(&blocks, call->dtype, true);
}

static void batch_to_space(FtCall *call, const void *input, void *output, const char *shape_name, const int *in_shape,
                           const char *block_name, const int *block, const int *crops)
{
    const Shape shape = ft_shape(call, shape_name, in_shape, 4);
    ft_require(call, block[0] >= 1 && block[1] >= 1, block_name, "range", FT_BAD_SIZE, "the block is %d x %d", block[0],
               block[1]);
    ft_require(call, shape.size[0] % ((int64_t)block[0] * block[1]) == 0, block_name, "mismatch", FT_BAD_SIZE,
               "%lld images are not whole blocks of %d x %d", (long long)shape.size[0], block[0], block[1]);
    ft_require(call, crops[0] >= 0 && crops[1] >= 0 && crops[2] >= 0 && crops[3] >= 0, "crops", "range", FT_BAD_SIZE,
               "crops are %d %d %d %d", crops[0], crops[1], crops[2], crops[3]);
    if (!ft_ok(call)) {
        return;
    }
    const int64_t images = shape.size[0] / block[0] / block[1];
    const int64_t height = shape.size[1] * block[0] - crops[0] - crops[1];
    const int64_t width = shape.size[2] * block[1] - crops[2] - crops[3];
    ft_require(call, height >= 0 && width >= 0, "crops", "range", FT_BAD_SIZE, "nothing of %lld x %lld elements is left",
               (long long)shape.size[1] * block[0], (long long)shape.size[2] * block[1]);
    const int64_t count = ft_ok(call) ? us_shape_elements(4, (int64_t[]){images, height, width, shape.size[3]}) : 0;
    ft_operand(call, "output", output, count, call->dtype);
    ft_apart(call, "output", output, ft_bytes(count, call->dtype), "input", input, ft_bytes(shape.elements, call->dtype));
    if (ft_ok(call) && count > 0) {
        const Blocks blocks = {output, (void *)input, images, height, width, shape.size[3], {block[0], block[1]},
                               {crops[0], crops[2]}, {shape.size[1], shape.size[2]}};
        move_blocks(&blocks, call->dtype, false);
    }
}

void ft_op_batchtospace(FtCall *call, const FtBatchtospace *a)
{
    batch_to_space(call, a->input, a->output, "input_shape", a->input_shape, "block_size", a->block_size, a->crops);
}

void ft_op_batch_to_space(FtCall *call, const FtBatchToSpace *a)
{
    batch_to_space(call, a->input, a->output, "in_shape", a->in_shape, "block", a->block, a->crops);
}

/* ---- formats ---- */

enum { FORMAT_NCHW = 0, FORMAT_NHWC = 1, FORMAT_NC4HW4 = 13, FORMAT_NC8HW8 = 19, FORMAT_NC16HW16 = 20 };

/* Channels that stand together in a format that is blocked; of NHWC all of them, of NCHW one. */
static int64_t lanes_of(int format, int64_t channels)
{
    switch (format) {
    case FORMAT_NC4HW4:
        return 4;
    case FORMAT_NC8HW8:
        return 8;
    case FORMAT_NC16HW16:
        return 16;
    default:
        return format == FORMAT_NHWC && channels > 0 ? channels : 1;
    }
}

static int64_t format_elements(FtCall *call, const char *name, int format, int64_t batch, int64_t channels, int64_t plane)
{
    const int64_t lanes = lanes_of(format, channels);
    return ft_count(call, name, 4, (int64_t[]){batch, (channels + lanes - 1) / lanes, plane, lanes});
}

/* `count` channels from `first` on, which stand in one block: [batch, plane, count]. */
static View channels_of(const FtFormattranspose *a, DType dtype, const void *data, int format, int64_t first, int64_t count)
{
    const int64_t lanes = lanes_of(format, a->channel), blocks = (a->channel + lanes - 1) / lanes;
    const int64_t shape[] = {a->batch, a->plane, count};
    const int64_t offset = first / lanes * a->plane * lanes + first % lanes;
    View view = row_major((const char *)data + offset * (int64_t)us_dtype_size(dtype), dtype, 3, shape);
    const int64_t strides[] = {blocks * a->plane * lanes, lanes, lanes == 1 ? a->plane : 1};
    memcpy(view.strides, strides, sizeof strides);
    return view;
}

void ft_op_formattranspose(FtCall *call, const FtFormattranspose *a)
{
    const int64_t from = format_elements(call, "src_data", a->src_format, a->batch, a->channel, a->plane);
    const int64_t to = format_elements(call, "dst_data", a->dst_format, a->batch, a->channel, a->plane);
    ft_operand(call, "src_data", a->src_data, from, call->dtype);
    ft_operand(call, "dst_data", a->dst_data, to, call->dtype);
    ft_apart(call, "dst_data", a->dst_data, ft_bytes(to, call->dtype), "src_data", a->src_data, ft_bytes(from, call->dtype));
    if (!ft_ok(call) || to == 0) {
        return;
    }
    if (to > (int64_t)a->batch * a->channel * a->plane) {
        ft_clear(a->dst_data, to, call->dtype);
    }
    const int64_t source = lanes_of(a->src_format, a->channel), target = lanes_of(a->dst_format, a->channel);
    /* a stretch of channels ends where a block of either format does; NCHW has none */
    for (int64_t first = 0, count; first < a->channel; first += count) {
        count = a->channel - first;
        count = source > 1 && source - first % source < count ? source - first % source : count;
        count = target > 1 && target - first % target < count ? target - first % target : count;
        const View read = channels_of(a, call->dtype, a->src_data, a->src_format, first, count);
        const View written = channels_of(a, call->dtype, a->dst_data, a->dst_format, first, count);
        us_copy_view(&written, &read);
    }
}
