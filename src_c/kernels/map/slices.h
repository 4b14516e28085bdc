/* Operations of which an input lies across the output, as a transposed one does: slice by slice, of copies in the output's
 * order. */
#ifndef UNDERSTUDY_MAP_SLICES_H
#define UNDERSTUDY_MAP_SLICES_H

#include "kernels/map/map.h"

/* Whether the neighbours of an input are not those of the output, and there are enough elements for slices. */
bool us_map_lies_across(const MapCall *call, const View *views);

/* Calls `run` for slices one after the other, of which no input lies across the output unless there is no memory for a copy. */
typedef KernelStatus MapRun(const MapCall *call, const View *views, int64_t index);
KernelStatus us_map_by_slices(const MapCall *call, const View *views, int64_t index, MapRun *run);

#endif
