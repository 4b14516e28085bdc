/* How formats lie in memory whose axes are cut into blocks of 16 rows or outputs and of 32 bytes of columns or channels:
 *     FRACTAL_NZ   [..., columns / c, rows / 16, 16, c] of the last two axes
 *     NC1HWC0      [N, C / c, H, W, c]
 *     NDC1HWC0     [N, D, C / c, H, W, c]
 *     FRACTAL_Z    [C / c * H * W, N / 16, 16, c]
 *     FRACTAL_Z_3D [D * C / c * H * W, N / 16, 16, c]
 * divided upwards, with c elements to 32 bytes (aclnnNpuFormatCast.md). */
#ifndef ASCEND_OPAPI_BLOCKED_FORMATS_H
#define ASCEND_OPAPI_BLOCKED_FORMATS_H

#include "ascend/opapi/families.h"
#include "kernels/move/blocks.h"

enum { BLOCK_ROWS = 16, BLOCK_BYTES = 32 };

typedef struct BlockedFormat {
    Shape storage; /* as tensors state it */
    Shape axes;    /* each axis by itself */
    Blocks blocks; /* which axis of the plain tensor each is */
} BlockedFormat;

/* Formats are numbers here: the vendor's enumeration does not name all of them. */

/* A type that the casts between formats know. */
bool op_is_blocked_type(aclDataType dtype);
/* A format that they know, with blocks or without. */
bool op_is_cast_format(int format);
/* Columns or channels of a block: 32 bytes of this type, of ACL_INT4 two to a byte; 0: there are no blocks of it. */
int64_t op_block_columns(aclDataType dtype);
/* Whether there is a cast between the two: one has blocks, and the other's axes are its. */
bool op_formats_cast(int from, int to);
/* Whether a tensor of this format may have so many axes. */
bool op_rank_has_format(int32_t rank, int plain);

/* A plain tensor in the blocks of another format, so many columns to a block; there is a cast between the formats, and
 * `shape` has the axes of the plain one. False: its numbers are too large. */
bool op_blocked_format(int plain, int blocked, const Shape *shape, int64_t columns, BlockedFormat *result);

bool op_is_stored_as(const Operand *operand, const Shape *shape);

/* aclnnNpuFormatCast. */
void require_cast_shapes(OpCall *op, const Operand *from, const Operand *to);
aclnnStatus op_format_cast(OpCall *op, const Operand *from, const Operand *to);

#endif
