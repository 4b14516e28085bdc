#include "ascend/common/promotion.h"

#include <stddef.h>

/* Columns and rows of the tables. */
typedef enum Row { F32, F16, BF, F64, S8, S16, S32, S64, U8, U16, U32, U64, BL, C32, C64, Z128, ROWS, NO = ROWS } Row;

static const aclDataType types[ROWS] = {
    [F32] = ACL_FLOAT,    [F16] = ACL_FLOAT16, [BF] = ACL_BF16,    [F64] = ACL_DOUBLE,
    [S8] = ACL_INT8,      [S16] = ACL_INT16,   [S32] = ACL_INT32,  [S64] = ACL_INT64,
    [U8] = ACL_UINT8,     [U16] = ACL_UINT16,  [U32] = ACL_UINT32, [U64] = ACL_UINT64,
    [BL] = ACL_BOOL,      [C32] = ACL_COMPLEX32, [C64] = ACL_COMPLEX64, [Z128] = ACL_COMPLEX128,
};

/* COMPLEX32 with BF16 is COMPLEX64 here (the vendor's code; its document says COMPLEX32). UINT16, UINT32 and UINT64
 * mix with no other type (its document; its code has exceptions with complex types in one operand order). */
static const unsigned char tensor_table[ROWS][ROWS] = {
    /*          F32   F16   BF    F64   S8    S16   S32   S64   U8    U16  U32  U64  BL    C32   C64   Z128 */
    [F32] = {F32, F32, F32, F64, F32, F32, F32, F32, F32, NO, NO, NO, F32, C64, C64, Z128},
    [F16] = {F32, F16, F32, F64, F16, F16, F16, F16, F16, NO, NO, NO, F16, C32, C64, Z128},
    [BF] = {F32, F32, BF, F64, BF, BF, BF, BF, BF, NO, NO, NO, BF, C64, C64, Z128},
    [F64] = {F64, F64, F64, F64, F64, F64, F64, F64, F64, NO, NO, NO, F64, Z128, Z128, Z128},
    [S8] = {F32, F16, BF, F64, S8, S16, S32, S64, S16, NO, NO, NO, S8, C32, C64, Z128},
    [S16] = {F32, F16, BF, F64, S16, S16, S32, S64, S16, NO, NO, NO, S16, C32, C64, Z128},
    [S32] = {F32, F16, BF, F64, S32, S32, S32, S64, S32, NO, NO, NO, S32, C32, C64, Z128},
    [S64] = {F32, F16, BF, F64, S64, S64, S64, S64, S64, NO, NO, NO, S64, C32, C64, Z128},
    [U8] = {F32, F16, BF, F64, S16, S16, S32, S64, U8, NO, NO, NO, U8, C32, C64, Z128},
    [U16] = {NO, NO, NO, NO, NO, NO, NO, NO, NO, U16, NO, NO, NO, NO, NO, NO},
    [U32] = {NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, U32, NO, NO, NO, NO, NO},
    [U64] = {NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, U64, NO, NO, NO, NO},
    [BL] = {F32, F16, BF, F64, S8, S16, S32, S64, U8, NO, NO, NO, BL, C32, C64, Z128},
    [C32] = {C64, C32, C64, Z128, C32, C32, C32, C32, C32, NO, NO, NO, C32, C32, C64, Z128},
    [C64] = {C64, C64, C64, Z128, C64, C64, C64, C64, C64, NO, NO, NO, C64, C64, C64, Z128},
    [Z128] = {Z128, Z128, Z128, Z128, Z128, Z128, Z128, Z128, Z128, NO, NO, NO, Z128, Z128, Z128, Z128},
};

/* Categories of a scalar, and what a tensor becomes with one of each. */
enum { BOOLEAN, SIGNED_OR_U8, WIDE_UNSIGNED, REAL, DOUBLE, COMPLEX, COMPLEX_DOUBLE, CATEGORIES };
enum { SCALAR = ROWS + 1 }; /* the scalar's own type */

static const unsigned char category_of[ROWS] = {
    [F32] = REAL,         [F16] = REAL,          [BF] = REAL,           [F64] = DOUBLE,
    [S8] = SIGNED_OR_U8,  [S16] = SIGNED_OR_U8,  [S32] = SIGNED_OR_U8,  [S64] = SIGNED_OR_U8,
    [U8] = SIGNED_OR_U8,  [U16] = WIDE_UNSIGNED, [U32] = WIDE_UNSIGNED, [U64] = WIDE_UNSIGNED,
    [BL] = BOOLEAN,       [C32] = COMPLEX,       [C64] = COMPLEX,       [Z128] = COMPLEX_DOUBLE,
};

static const unsigned char scalar_table[ROWS][CATEGORIES] = {
    /*          bool  s*,u8   u16.. real  double complex complex128 */
    [F32] = {F32, F32, F32, F32, F32, C64, C64},
    [F16] = {F16, F16, F16, F16, F16, C32, C32},
    [BF] = {BF, BF, BF, BF, BF, C64, C64},
    [F64] = {F64, F64, F64, F64, F64, Z128, Z128},
    [S8] = {S8, S8, S8, F32, F32, C64, C64},
    [S16] = {S16, S16, S16, F32, F32, C64, C64},
    [S32] = {S32, S32, S32, F32, F32, C64, C64},
    [S64] = {S64, S64, S64, F32, F32, C64, C64},
    [U8] = {U8, U8, U8, F32, F32, C64, C64},
    [U16] = {U16, U16, U16, NO, NO, C64, C64},
    [U32] = {U32, U32, U32, NO, NO, C64, C64},
    [U64] = {U64, U64, U64, NO, NO, C64, C64},
    [BL] = {BL, SCALAR, NO, F32, F32, C64, C64},
    [C32] = {C32, C32, C32, C32, Z128, C32, C32},
    [C64] = {C64, C64, C64, C64, Z128, C64, C64},
    [Z128] = {Z128, Z128, Z128, Z128, Z128, Z128, Z128},
};

static Row row_of(aclDataType dtype)
{
    for (int row = 0; row < ROWS; row++) {
        if (types[row] == dtype) {
            return (Row)row;
        }
    }
    return NO;
}

aclDataType acl_promote(aclDataType a, aclDataType b)
{
    if (a == b) {
        return a; /* also types that mix with no other: strings, packed integers */
    }
    Row row = row_of(a);
    Row column = row_of(b);
    Row joint = row == NO || column == NO ? NO : (Row)tensor_table[row][column];
    return joint == NO ? ACL_DT_UNDEFINED : types[joint];
}

aclDataType acl_promote_scalar(aclDataType tensor, aclDataType scalar)
{
    Row row = row_of(tensor);
    Row column = row_of(scalar);
    if (row == NO || column == NO) {
        return ACL_DT_UNDEFINED;
    }
    int joint = scalar_table[row][category_of[column]];
    if (joint == SCALAR) {
        return scalar;
    }
    return joint == NO ? ACL_DT_UNDEFINED : types[joint];
}

static bool is_complex(Row row)
{
    return row == C32 || row == C64 || row == Z128;
}

static bool is_float(Row row)
{
    return row == F32 || row == F16 || row == BF || row == F64;
}

bool acl_can_cast(aclDataType from, aclDataType to)
{
    Row source = row_of(from);
    Row result = row_of(to);
    if (source == NO || result == NO) {
        return from == to;
    }
    if (is_complex(source)) {
        return is_complex(result);
    }
    if (is_float(source)) {
        return is_float(result) || is_complex(result);
    }
    return source == BL || result != BL;
}
