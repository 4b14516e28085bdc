#include "launch/view_part.h"

PartColumn us_part_column(const View *view, const ViewPart *part, int64_t column)
{
    const int64_t least = part->least - part->slope * column, most = part->most - part->slope * column;
    const int64_t lowest = part->above, highest = view->shape[1] - part->below - 1;
    const int64_t first = least > lowest ? least : lowest, last = most < highest ? most : highest;
    return (PartColumn){first, last < first ? 0 : last - first + 1};
}
