/* What of a view a kernel uses, where that is not all of it: for the checks of UNDERSTUDY_CHECK. */
#ifndef UNDERSTUDY_VIEW_PART_H
#define UNDERSTUDY_VIEW_PART_H

#include "tensor/view.h"

/* Of a column-major matrix, a view [columns, rows]: in column j the rows i with least <= i + slope * j <= most, without the
 * first `above` and the last `below` rows. Slope -1: a triangle; 1: a band, stored by its diagonals; 0: every element of a view
 * of any rank. */
typedef struct ViewPart {
    int32_t view; /* its place in the launch */
    /* The place of the view of a number: where that is 0, the elements are not read. -1: they are. */
    int32_t factor;
    int32_t slope;
    int32_t above, below;
    int64_t least, most;
} ViewPart;

typedef struct PartColumn {
    int64_t first, count; /* rows */
} PartColumn;
PartColumn us_part_column(const View *view, const ViewPart *part, int64_t column);

/* Whether every element counts; a part of NULL is all. */
static inline bool us_part_is_all(const ViewPart *part)
{
    return part == NULL || part->slope == 0;
}

#endif
