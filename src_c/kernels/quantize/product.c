#include "kernels/quantize/product.h"

#include "kernels/matmul/bf16.h"
#include "kernels/matmul/matmul.h"
#include "kernels/pieces.h"
#include "kernels/quantize/nibbles.h"
#include "kernels/quantize/parameters.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"

#include <string.h>

enum { LINE = 256, TILE_ROWS = 64, PANEL_ELEMENTS = 1 << 20, LEAST_PANEL_COLUMNS = 16, PIECE_ELEMENTS = 1 << 16 };

static bool is_given(const View *view)
{
    return !us_view_is_absent(view);
}

/* From the data to the matrix with this number of a batch. */
static int64_t batch_offset(const View *view, int64_t batch)
{
    int64_t offset = 0;
    for (int32_t axis = view->rank - 3; axis >= 0; axis--) {
        offset += batch % view->shape[axis] * view->strides[axis];
        batch /= view->shape[axis];
    }
    return offset;
}

static const void *element(const View *view, int64_t batch, int64_t row, int64_t column)
{
    const int64_t offset = batch_offset(view, batch) + row * view->strides[view->rank - 2] +
                           column * view->strides[view->rank - 1];
    return (const char *)view->data + offset * (int64_t)us_dtype_size(view->dtype);
}

static double number_at(const View *view, int64_t batch, int64_t row, int64_t column)
{
    double value;
    us_load_double(&value, element(view, batch, row, column), view->dtype, 1, 1);
    return value;
}

/* ---- both operands are integers ---- */

enum { A, B, COLUMN_SCALE, C, SUMMAND, ROW_SCALE, ZERO, SHIFT, ADDEND };

typedef struct Product {
    const View *views;
    const QuantizedProduct *how;
    int64_t m, n, groups;
    bool row_scale_of_group;
    const int64_t *row_sums; /* [batch, m, groups] */
    int64_t *zero_sums;      /* [groups, n]: -zero_a times the sums of B's columns; NULL: none */
    double *totals;          /* [batch, m, n]; NULL: one group */
    int64_t group;           /* at hand */
} Product;

/* What belongs to some columns of a tile. */
typedef struct Columns {
    double scale[LINE], zero[LINE], scaled_zero[LINE], shift[LINE], addend[LINE];
} Columns;

static void load_columns(const View *view, int64_t batch, int64_t row, int64_t column, int64_t count, double *to)
{
    if (is_given(view)) {
        us_load_double(to, element(view, batch, row, column), view->dtype, view->strides[view->rank - 1], count);
    } else {
        memset(to, 0, (size_t)count * sizeof *to);
    }
}

static void load_scales(const Product *product, int64_t batch, int64_t column, int64_t count, double *to)
{
    const View *view = &product->views[COLUMN_SCALE];
    if (product->how->scale_columns == 1) {
        load_columns(view, batch, product->group, column, count, to);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        to[i] = number_at(view, batch, product->group, (column + i) / product->how->scale_columns);
    }
}

static bool is_last(const Product *product)
{
    return product->group == product->groups - 1;
}

/* sums become totals; `before`: those of the groups before, or NULL. */
static void scale_sums(int64_t *sums, const Columns *of, double row_sum, double row_scale, const double *before, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const double part = ((double)sums[i] - row_sum * of->zero[i]) * row_scale * of->scale[i];
        const double total = before != NULL ? before[i] + part : part;
        memcpy(&sums[i], &total, sizeof total);
    }
}

static void add_scaled_zeros(int64_t *totals, const Columns *of, double row_sum, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double total;
        memcpy(&total, &totals[i], sizeof total);
        total += row_sum * of->scaled_zero[i];
        memcpy(&totals[i], &total, sizeof total);
    }
}

static void finish_totals(int64_t *totals, const Columns *of, double row_scale, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double total;
        memcpy(&total, &totals[i], sizeof total);
        total = (total + of->shift[i]) * row_scale + of->addend[i];
        memcpy(&totals[i], &total, sizeof total);
    }
}

static void round_totals(int64_t *totals, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double total;
        memcpy(&total, &totals[i], sizeof total);
        total = __builtin_rint(total);
        memcpy(&totals[i], &total, sizeof total);
    }
}

static void finish_line(const Product *product, const Columns *of, int64_t batch, int64_t row, int64_t column,
                        int64_t *sums, int64_t count)
{
    const View *scales = &product->views[ROW_SCALE];
    const int64_t line = batch * product->m + row;
    const bool scales_group = is_given(scales) && product->row_scale_of_group;
    const bool scales_all = is_given(scales) && !product->row_scale_of_group;
    const int64_t *row_sums = product->row_sums;
    const double row_sum = row_sums != NULL ? (double)row_sums[line * product->groups + product->group] : 0;
    scale_sums(sums, of, row_sum, scales_group ? number_at(scales, batch, row, product->group) : 1,
               product->group > 0 ? product->totals + line * product->n + column : NULL, count);
    if (product->how->scaled_zero) {
        add_scaled_zeros(sums, of, row_sum, count);
    }
    if (is_last(product)) {
        finish_totals(sums, of, scales_all ? number_at(scales, batch, row, 0) : 1, count);
        if (!us_dtype_is_float(product->views[C].dtype)) {
            round_totals(sums, count);
        }
    }
}

static void finish(const void *context, const MatmulTile *tile)
{
    const Product *product = context;
    const View *views = product->views;
    Columns of;
    for (int64_t first = 0; first < tile->columns; first += LINE) {
        const int64_t count = smaller(LINE, tile->columns - first), column = tile->column + first;
        load_scales(product, tile->batch, column, count, of.scale);
        const View absent = us_view_absent(), *zero = &views[ZERO];
        const bool scaled = product->how->scaled_zero;
        load_columns(scaled ? &absent : zero, tile->batch, product->group, column, count, of.zero);
        load_columns(scaled ? zero : &absent, tile->batch, product->group, column, count, of.scaled_zero);
        load_columns(&views[SHIFT], tile->batch, 0, column, count, of.shift);
        load_columns(&views[ADDEND], tile->batch, 0, column, count, of.addend);
        for (int64_t row = 0; row < tile->rows; row++) {
            finish_line(product, &of, tile->batch, tile->row + row, column,
                        (int64_t *)tile->values + row * tile->row_stride + first, count);
        }
    }
}

/* Sums of the rows of A, by groups. */
typedef struct RowSums {
    const Product *product;
    const View *a;
    int64_t *to, lines, piece_lines;
} RowSums;

static int64_t sum_of(const int8_t *from, int64_t step, int64_t count)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < count && step == 1; i++) {
        sum += from[i];
    }
    for (int64_t i = 0; i < count && step != 1; i++) {
        sum += from[i * step];
    }
    return sum;
}

static void add_rows(void *context, int64_t piece)
{
    const RowSums *sums = context;
    const View *a = sums->a;
    const int64_t m = sums->product->m, groups = sums->product->groups, depth = sums->product->how->group;
    const int64_t k = a->shape[a->rank - 1], step = a->strides[a->rank - 1], first = piece * sums->piece_lines;
    for (int64_t line = first; line < smaller(first + sums->piece_lines, sums->lines); line++) {
        const int8_t *from = element(a, line / m, line % m, 0);
        for (int64_t group = 0; group < groups; group++) {
            const int64_t begin = group == 0 ? 0 : group * depth;
            sums->to[line * groups + group] = sum_of(from + begin * step, step, smaller(depth, k - begin));
        }
    }
}

/* What zero_a makes of some columns of B in one group. */
typedef struct ColumnSums {
    const Product *product;
    const View *b;
    int64_t tiles; /* of the columns */
} ColumnSums;

static void add_columns(void *context, int64_t piece)
{
    const ColumnSums *sums = context;
    const Product *product = sums->product;
    const int64_t group = piece / sums->tiles, column = piece % sums->tiles * LINE, depth = product->how->group;
    const int64_t count = smaller(LINE, product->n - column), step = sums->b->strides[1];
    int64_t *to = product->zero_sums + group * product->n + column;
    memset(to, 0, (size_t)count * sizeof *to);
    for (int64_t row = group * depth; row < smaller(sums->b->shape[0], group * depth + depth); row++) {
        const int8_t *from = element(sums->b, 0, row, column);
        for (int64_t i = 0; i < count; i++) {
            to[i] -= product->how->zero_a * from[i * step];
        }
    }
}

static View summand_of(const Product *product)
{
    if (product->zero_sums == NULL) {
        return product->group == 0 ? product->views[SUMMAND] : us_view_absent();
    }
    View line = us_view_contiguous(product->zero_sums + product->group * product->n, DTYPE_INT64, 2,
                                   (const int64_t[]){1, product->n});
    line.strides[0] = 0;
    return line;
}

static KernelStatus multiply_groups(Product *product, const View *a, const View *b)
{
    const View *views = product->views;
    const ViewProduct exact = {.compute = DTYPE_INT64, .alpha = {1}, .beta = {1}};
    const View absent = us_view_absent();
    const int64_t k = a->shape[a->rank - 1];
    KernelStatus status = KERNEL_OK;
    for (product->group = 0; product->group < product->groups && status == KERNEL_OK; product->group++) {
        const int64_t begin = product->group * product->how->group;
        View to = views[C];
        if (!is_last(product)) {
            to = us_view_contiguous(product->totals, DTYPE_FLOAT64, to.rank, to.shape);
        }
        Matmul matmul = us_matmul_of_views(
            (const View[]){*a, *b, summand_of(product), to, absent, absent}, &exact);
        matmul.k = smaller(product->how->group, k - begin);
        matmul.a.data = (const char *)matmul.a.data + begin * matmul.a.column;
        matmul.b.data = (const char *)matmul.b.data + begin * matmul.b.row;
        matmul.finish = finish;
        matmul.finish_context = product;
        matmul.finished = DTYPE_FLOAT64;
        status = us_matmul(&matmul);
    }
    return status;
}

static size_t unpacked_size(const View *view, int32_t packed)
{
    return packed == NOT_PACKED ? 0 : us_scratch_bytes(us_view_elements(view), 2);
}

static View unpacked(const View *view, int32_t packed, void *space)
{
    return packed == NOT_PACKED ? *view : us_unpack_nibbles(view, packed, space);
}

KernelStatus us_quantized_product(const View *views, const void *attributes)
{
    const QuantizedProduct *how = attributes;
    const View *c = &views[C];
    const int64_t elements = us_view_elements(c), k = views[A].shape[views[A].rank - 1];
    const int64_t depth = how->packed_a == NOT_PACKED ? k : 2 * k;
    if (elements == 0) {
        return KERNEL_OK;
    }
    Product product = {.views = views, .how = how, .m = c->shape[c->rank - 2], .n = c->shape[c->rank - 1],
                       .groups = depth > how->group ? ceiling(depth, how->group) : 1};
    product.row_scale_of_group = product.groups > 1 && is_given(&views[ROW_SCALE]) &&
                                 views[ROW_SCALE].shape[c->rank - 1] == product.groups;
    const size_t of_a = unpacked_size(&views[A], how->packed_a), of_b = unpacked_size(&views[B], how->packed_b);
    const size_t totals = product.groups > 1 ? us_scratch_bytes(elements, sizeof(double)) : 0;
    const int64_t rows = elements / product.n;
    const size_t row_sums =
        is_given(&views[ZERO]) ? us_scratch_bytes(us_scratch_count(rows, product.groups), sizeof(int64_t)) : 0;
    const size_t zero_sums =
        how->zero_a != 0 ? us_scratch_bytes(us_scratch_count(product.groups, product.n), sizeof(int64_t)) : 0;
    char *memory = us_scratch_take(of_a + of_b + totals + row_sums + zero_sums);
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const View a = unpacked(&views[A], how->packed_a, memory), b = unpacked(&views[B], how->packed_b, memory + of_a);
    product.totals = totals > 0 ? (double *)(memory + of_a + of_b) : NULL;
    if (row_sums > 0) {
        RowSums sums = {&product, &a, (int64_t *)(memory + of_a + of_b + totals), rows, PIECE_ELEMENTS / larger(depth, 1) + 1};
        run_pieces(ceiling(rows, sums.piece_lines), rows * depth, add_rows, &sums);
        product.row_sums = sums.to;
    }
    if (zero_sums > 0) {
        product.zero_sums = (int64_t *)(memory + of_a + of_b + totals + row_sums);
        ColumnSums sums = {&product, &b, ceiling(product.n, LINE)};
        run_pieces(product.groups * sums.tiles, depth * product.n, add_columns, &sums);
    }
    const KernelStatus status = multiply_groups(&product, &a, &b);
    us_scratch_give_back(memory);
    return status;
}

/* ---- only the weight ---- */

enum { X, WEIGHT, SCALE, Y, OFFSET, BIAS, QUANT_SCALE, QUANT_OFFSET };

/* Some columns of the weight, in float32: by columns where the numbers of a column lie side by side. Or in bfloat16 without
 * their scale, which their sums get. */
typedef struct Panel {
    const View *views;
    View weight; /* of its columns */
    int64_t group, column;
    int64_t tiles_down, tiles_across; /* of a group's rows; of the columns */
    void *to;
    DType dtype;
    bool by_columns;
} Panel;

static bool scales_sums(const Panel *panel)
{
    return panel->dtype == DTYPE_BFLOAT16;
}

static void dequantize_line(float *line, const float *scale, const float *offset, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        line[i] = (line[i] + offset[i]) * scale[i];
    }
}

static void dequantize_alike(float *line, float scale, float offset, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        line[i] = (line[i] + offset) * scale;
    }
}

static void load_floats(const View *view, int64_t row, int64_t column, int64_t count, float *to)
{
    if (is_given(view)) {
        us_load_float(to, element(view, 0, row, column), view->dtype, view->strides[1], count);
    } else {
        memset(to, 0, (size_t)count * sizeof *to);
    }
}

static void store_line(const Panel *panel, int64_t position, const float *line, int64_t count)
{
    const int64_t size = (int64_t)us_dtype_size(panel->dtype);
    us_store_float((char *)panel->to + position * size, panel->dtype, 1, line, count);
}

/* Rows of one group, and at most LINE columns. */
static void dequantize_tile(void *context, int64_t piece)
{
    const Panel *panel = context;
    const View *weight = &panel->weight;
    const int64_t depth = weight->shape[0], columns = weight->shape[1];
    const int64_t column = piece % panel->tiles_across * LINE, down = piece / panel->tiles_across;
    const int64_t group = down / panel->tiles_down, group_end = smaller(depth, (group + 1) * panel->group);
    const int64_t row = group * panel->group + down % panel->tiles_down * TILE_ROWS;
    const int64_t rows = smaller(TILE_ROWS, group_end - row), count = smaller(LINE, columns - column);
    if (rows <= 0) {
        return;
    }
    float scale[LINE], offset[LINE], line[LINE];
    load_floats(&panel->views[SCALE], group, panel->column + column, count, scale);
    load_floats(&panel->views[OFFSET], group, panel->column + column, count, offset);
    for (int64_t i = 0; i < count && scales_sums(panel); i++) {
        scale[i] = 1;
    }
    for (int64_t i = 0; i < rows && !panel->by_columns; i++) {
        us_load_float(line, element(weight, 0, row + i, column), weight->dtype, weight->strides[1], count);
        dequantize_line(line, scale, offset, count);
        store_line(panel, (row + i) * columns + column, line, count);
    }
    for (int64_t j = 0; j < count && panel->by_columns; j++) {
        us_load_float(line, element(weight, 0, row, column + j), weight->dtype, weight->strides[0], rows);
        dequantize_alike(line, scale[j], offset[j], rows);
        store_line(panel, (column + j) * depth + row, line, rows);
    }
}

/* The sums' scale and bias. */
static void scale_line(const View *views, int64_t column, int64_t count, float *values)
{
    float scale[LINE], bias[LINE];
    load_floats(&views[SCALE], 0, column, count, scale);
    load_floats(&views[BIAS], 0, column, count, bias);
    for (int64_t i = 0; i < count; i++) {
        values[i] = values[i] * scale[i] + bias[i];
    }
}

static void load_quant_offsets(const View *view, int64_t column, int64_t count, float *to)
{
    if (!is_given(view) || view->dtype != DTYPE_UINT64) {
        load_floats(view, 0, column, count, to);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        to[i] = (float)us_parameter_offset(*(const uint64_t *)element(view, 0, 0, column + i));
    }
}

static void quantize_line(const View *views, int64_t column, int64_t count, float *values)
{
    float scale[LINE], offset[LINE];
    load_floats(&views[QUANT_SCALE], 0, column, count, scale);
    load_quant_offsets(&views[QUANT_OFFSET], column, count, offset);
    for (int64_t i = 0; i < count; i++) {
        values[i] = __builtin_rintf(values[i] * scale[i] + offset[i]);
    }
}

static void finish_weight_line(const Panel *panel, int64_t column, int64_t count, float *values)
{
    if (scales_sums(panel)) {
        scale_line(panel->views, column, count, values);
    }
    if (is_given(&panel->views[QUANT_SCALE])) {
        quantize_line(panel->views, column, count, values);
    }
}

/* Y lies by rows. */
static void finish_weight_tile(const void *context, const MatmulTile *tile)
{
    const Panel *panel = context;
    for (int64_t row = 0; row < tile->rows; row++) {
        for (int64_t first = 0; first < tile->columns; first += LINE) {
            finish_weight_line(panel, panel->column + tile->column + first, smaller(LINE, tile->columns - first),
                        (float *)tile->values + row * tile->row_stride + first);
        }
    }
}

static View columns_of(const View *view, int64_t column, int64_t count)
{
    View part = *view;
    if (is_given(view)) {
        part.data = (char *)part.data + column * part.strides[1] * (int64_t)us_dtype_size(part.dtype);
        part.shape[1] = count;
    }
    return part;
}

static KernelStatus multiply_panel(const Panel *panel, int64_t count)
{
    const View *views = panel->views;
    View weight = {.data = panel->to, .dtype = panel->dtype, .rank = 2, .shape = {panel->weight.shape[0], count}};
    weight.strides[0] = panel->by_columns ? 1 : count;
    weight.strides[1] = panel->by_columns ? weight.shape[0] : 1;
    const View absent = us_view_absent(), y = columns_of(&views[Y], panel->column, count);
    const View bias = scales_sums(panel) ? absent : columns_of(&views[BIAS], panel->column, count);
    const ViewProduct sum = {.compute = DTYPE_FLOAT32, .alpha = {1}, .beta = {1}};
    Matmul product = us_matmul_of_views((const View[]){views[X], weight, bias, y, absent, absent}, &sum);
    product.addend.row = 0;
    if (is_given(&views[QUANT_SCALE]) || scales_sums(panel)) {
        product.finish = finish_weight_tile;
        product.finish_context = panel;
    }
    return us_matmul(&product);
}

/* Whether a weight of 8 bits with such offsets has whole numbers of at most 256, which bfloat16 holds. */
static bool has_small_offsets(const View *offset, int64_t n)
{
    bool small = true;
    float line[LINE];
    for (int64_t column = 0; is_given(offset) && small && column < n; column += LINE) {
        const int64_t count = smaller(LINE, n - column);
        load_floats(offset, 0, column, count, line);
        for (int64_t i = 0; i < count; i++) {
            small &= line[i] >= -128 && line[i] <= 128 && line[i] == __builtin_rintf(line[i]);
        }
    }
    return small;
}

/* The type of panels: x and weight meet in bfloat16 where that loses nothing and the machine is faster by it. */
static DType panel_type(const View *views, const WeightProduct *how)
{
    const bool meets = views[X].dtype == DTYPE_BFLOAT16 && views[WEIGHT].dtype == DTYPE_INT8 && how->packed == NOT_PACKED &&
                       how->group >= views[X].shape[1] && us_bf16_takes(DTYPE_BFLOAT16, DTYPE_BFLOAT16);
    return meets && has_small_offsets(&views[OFFSET], views[Y].shape[1]) ? DTYPE_BFLOAT16 : DTYPE_FLOAT32;
}

KernelStatus us_quantized_weight_product(const View *views, const void *attributes)
{
    const WeightProduct *how = attributes;
    const int64_t k = views[X].shape[1], n = views[Y].shape[1];
    if (k == 0 || us_view_elements(&views[Y]) == 0) {
        return KERNEL_OK;
    }
    const int64_t fitting = PANEL_ELEMENTS / k / 2 * 2;
    const int64_t width = smaller(n, fitting > LEAST_PANEL_COLUMNS ? fitting : LEAST_PANEL_COLUMNS);
    const size_t integers = how->packed == NOT_PACKED ? 0 : us_scratch_bytes(us_scratch_count(k, width + 1), 1);
    const DType dtype = panel_type(views, how);
    char *memory = us_scratch_take(integers + us_scratch_bytes(us_scratch_count(k, width), us_dtype_size(dtype)));
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const int64_t group = smaller(how->group, k), per_byte = how->packed == 1 ? 2 : 1;
    Panel panel = {.views = views, .group = group, .to = memory + integers, .dtype = dtype,
                   .tiles_down = ceiling(group, TILE_ROWS)};
    KernelStatus status = KERNEL_OK;
    for (; panel.column < n && status == KERNEL_OK; panel.column += width) {
        const int64_t count = smaller(width, n - panel.column);
        const View columns = columns_of(&views[WEIGHT], panel.column / per_byte, count / per_byte);
        panel.weight = unpacked(&columns, how->packed, memory);
        panel.by_columns = panel.weight.strides[0] == 1;
        panel.tiles_across = ceiling(count, LINE);
        run_pieces(panel.tiles_across * panel.tiles_down * ceiling(k, group), k * count, dequantize_tile, &panel);
        status = multiply_panel(&panel, count);
    }
    us_scratch_give_back(memory);
    return status;
}
