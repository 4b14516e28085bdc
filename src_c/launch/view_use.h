/* The bytes that kernels use of views, for UNDERSTUDY_CHECK. */
#ifndef UNDERSTUDY_VIEW_USE_H
#define UNDERSTUDY_VIEW_USE_H

#include "device/device.h"
#include "launch/view_part.h"

/* From the first byte that a view reaches to its last, as the program addresses them; false when they exceed the address
 * space. */
bool us_view_use_reach(const View *view, Use *use);

/* What is used of a view with elements, part by part; gives how many uses that are. */
enum { USES_OF_A_VIEW = 4 };
size_t us_uses_of_view(const View *view, const ViewPart *part, bool writes, Use uses[USES_OF_A_VIEW]);

#endif
