#include "ascend/opapi/blocked_formats.h"

#include "ascend/opapi/shapes.h"
#include "kernels/sizes.h"

enum {
    FORMAT_DHWCN = 31, /* by its page; acl_base.h has no name for it */
    HIGHEST_RANK = 6,
};

/* Axes by letters; in blocks a small letter counts the blocks of an axis and its capital the elements of one. */
typedef struct FormatAxes {
    int format;
    const char *axes;
    int32_t joined; /* the first so many axes are one in the storage shape */
} FormatAxes;

static const FormatAxes PLAIN[] = {
    {ACL_FORMAT_ND, NULL, 1},     {ACL_FORMAT_NCL, "NCL", 1},      {ACL_FORMAT_NCHW, "NCHW", 1},
    {ACL_FORMAT_NHWC, "NHWC", 1}, {ACL_FORMAT_HWCN, "HWCN", 1},    {ACL_FORMAT_NCDHW, "NCDHW", 1},
    {FORMAT_DHWCN, "DHWCN", 1},   {ACL_FORMAT_NDHWC, "NDHWC", 1},
};
static const FormatAxes BLOCKED[] = {
    {ACL_FORMAT_FRACTAL_NZ, NULL, 1},    {ACL_FORMAT_NC1HWC0, "NcHWC", 1}, {ACL_FORMAT_NDC1HWC0, "NDcHWC", 1},
    {ACL_FORMAT_FRACTAL_Z, "cHWnNC", 3}, {ACL_FRACTAL_Z_3D, "DcHWnNC", 4},
};
/* From whose axes; FRACTAL_NZ takes the last two of any. */
static const int CASTS[][2] = {
    {ACL_FORMAT_ND, ACL_FORMAT_FRACTAL_NZ},   {ACL_FORMAT_NCL, ACL_FORMAT_FRACTAL_NZ},
    {ACL_FORMAT_NCHW, ACL_FORMAT_FRACTAL_NZ}, {ACL_FORMAT_NCDHW, ACL_FORMAT_FRACTAL_NZ},
    {ACL_FORMAT_NCHW, ACL_FORMAT_NC1HWC0},    {ACL_FORMAT_NHWC, ACL_FORMAT_NC1HWC0},
    {ACL_FORMAT_NCDHW, ACL_FORMAT_NDC1HWC0},  {ACL_FORMAT_NDHWC, ACL_FORMAT_NDC1HWC0},
    {ACL_FORMAT_NCHW, ACL_FORMAT_FRACTAL_Z},  {ACL_FORMAT_HWCN, ACL_FORMAT_FRACTAL_Z},
    {ACL_FORMAT_NCDHW, ACL_FRACTAL_Z_3D},     {FORMAT_DHWCN, ACL_FRACTAL_Z_3D},
};

static const FormatAxes *find(const FormatAxes *table, size_t count, int format)
{
    const FormatAxes *found = NULL;
    for (size_t i = 0; i < count && found == NULL; i++) {
        found = table[i].format == format ? &table[i] : NULL;
    }
    return found;
}
#define FIND(table, format) find(table, sizeof(table) / sizeof *(table), format)

bool op_is_blocked_type(aclDataType dtype)
{
    return dtype_in(dtype, T_I8 | T_U8 | T_I32 | T_U32 | T_F32 | T_F16 | T_BF16);
}

bool op_is_cast_format(int format)
{
    return FIND(PLAIN, format) != NULL || FIND(BLOCKED, format) != NULL;
}

bool op_formats_cast(int from, int to)
{
    bool found = false;
    for (size_t i = 0; i < sizeof CASTS / sizeof *CASTS; i++) {
        found |= (CASTS[i][0] == from && CASTS[i][1] == to) || (CASTS[i][0] == to && CASTS[i][1] == from);
    }
    return found;
}

bool op_rank_has_format(int32_t rank, int format)
{
    const FormatAxes *plain = FIND(PLAIN, format);
    return plain == NULL || plain->axes == NULL || rank == (int32_t)strlen(plain->axes);
}

int64_t op_block_columns(aclDataType dtype)
{
    const int64_t bytes = (int64_t)acl_dtype_bytes(dtype);
    return dtype == ACL_INT4 ? 2 * BLOCK_BYTES : bytes > 0 ? BLOCK_BYTES / bytes : 0;
}

/* ---- the blocks of a shape ---- */

/* The letters of both: of a matrix, or a batch of them, R rows and S columns. */
typedef struct Letters {
    char plain[HIGHEST_RANK + 1], blocked[BLOCKED_RANK_LIMIT + 1];
} Letters;

static Letters letters_of(int plain, int blocked, int32_t rank)
{
    static const char batch[] = "ABDE";
    Letters letters = {{0}, {0}};
    if (blocked == ACL_FORMAT_FRACTAL_NZ) {
        memcpy(letters.plain, batch, (size_t)rank - 2);
        memcpy(letters.blocked, batch, (size_t)rank - 2);
        memcpy(letters.plain + rank - 2, "RS", 2);
        memcpy(letters.blocked + rank - 2, "srRS", 4);
    } else {
        memcpy(letters.plain, FIND(PLAIN, plain)->axes, (size_t)rank);
        strcpy(letters.blocked, FIND(BLOCKED, blocked)->axes);
    }
    return letters;
}

static BlockedAxis axis_of(const Letters *letters, int32_t place, int64_t columns)
{
    const char letter = letters->blocked[place], capital = (char)(letter & ~0x20);
    const bool outside = letter != capital, cut = strchr(letters->blocked, letter | 0x20) != NULL;
    const bool rows = capital == 'R' || capital == 'N';
    return (BlockedAxis){.axis = (int32_t)(strchr(letters->plain, capital) - letters->plain),
                         .block = !cut ? 0 : rows ? BLOCK_ROWS : (int32_t)columns, .inside = cut && !outside};
}

bool op_blocked_format(int plain, int blocked, const Shape *shape, int64_t columns, BlockedFormat *result)
{
    const Letters letters = letters_of(plain, blocked, shape->rank);
    const int32_t joined = FIND(BLOCKED, blocked)->joined;
    BlockedFormat format = {.axes = {.rank = (int32_t)strlen(letters.blocked)}};
    format.storage.rank = format.axes.rank - joined + 1;
    int64_t together = 1;
    for (int32_t k = 0; k < format.axes.rank; k++) {
        const BlockedAxis how = format.blocks.axes[k] = axis_of(&letters, k, columns);
        const int64_t size = shape->sizes[how.axis];
        format.axes.sizes[k] = how.inside ? how.block : how.block > 0 ? ceiling(size, how.block) : size;
        together = k < joined ? op_times(together, format.axes.sizes[k]) : format.axes.sizes[k];
        format.storage.sizes[k < joined ? 0 : k - joined + 1] = together;
    }
    *result = format;
    return us_shape_elements(format.axes.rank, format.axes.sizes) >= 0;
}

/* ---- aclnnNpuFormatCast ---- */

bool op_is_stored_as(const Operand *operand, const Shape *shape)
{
    return operand->storage->rank == shape->rank &&
           memcmp(operand->storage->sizes, shape->sizes, (size_t)shape->rank * sizeof *shape->sizes) == 0;
}

/* The blocks of `blocked`, whose storage tells how many columns they have; false: it is not of such blocks. */
static bool blocks_of(const Operand *plain, const Operand *blocked, BlockedFormat *format)
{
    const Shape shape = op_shape(plain), *storage = blocked->storage;
    const int64_t columns = storage->rank > 0 ? storage->sizes[storage->rank - 1] : 0;
    return (columns == 8 || columns == 16 || columns == 32) &&
           op_blocked_format(plain->format, blocked->format, &shape, columns, format) &&
           op_is_stored_as(blocked, &format->storage) && blocked->offset == 0 &&
           (op_has_shape(blocked, &shape) || op_has_shape(blocked, &format->storage));
}

static bool into_blocks(const Operand *to)
{
    return FIND(BLOCKED, to->format) != NULL;
}

void require_cast_shapes(OpCall *op, const Operand *from, const Operand *to)
{
    if (op_refused(op)) {
        return;
    }
    const bool into = into_blocks(to);
    const Operand *plain = into ? from : to, *blocked = into ? to : from;
    op_require(op, op_rank_has_format(plain->view.rank, plain->format), plain->name, "axes", op->invalid,
               "%s is %s, which has not the axes of its format %d", plain->name, op_shape_text(op, plain),
               (int)plain->format);
    BlockedFormat format;
    char text[SHAPE_TEXT_SIZE];
    op_require(op, op_refused(op) || blocks_of(plain, blocked, &format), blocked->name, "storage", op->invalid,
               "%s is %s with storage shape %s, which is not %s in blocks of format %d", blocked->name,
               op_shape_text(op, blocked),
               us_shape_text(blocked->storage->rank, blocked->storage->sizes, text, sizeof text),
               op_shape_text(op, plain), (int)blocked->format);
}

aclnnStatus op_format_cast(OpCall *op, const Operand *from, const Operand *to)
{
    if (op_refused(op) || op_empty(from)) {
        return op_plan_nothing(op);
    }
    const bool into = into_blocks(to);
    const Operand *plain = into ? from : to, *blocked = into ? to : from;
    BlockedFormat format;
    blocks_of(plain, blocked, &format);
    const View memory = us_view_contiguous(blocked->view.data, blocked->view.dtype, format.axes.rank, format.axes.sizes);
    return op_plan_views(op, into ? us_into_blocks : us_out_of_blocks, &format.blocks, sizeof format.blocks, 2,
                         (const PlannedView[]){{from, VIEW_READ, into ? NULL : &memory},
                                               {to, VIEW_WRITE, into ? &memory : NULL}});
}
