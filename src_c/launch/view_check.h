/* UNDERSTUDY_CHECK=init on views: element by element, gaps between elements left alone, and what is no part of what a
 * kernel uses (NULL: all is). */
#ifndef UNDERSTUDY_VIEW_CHECK_H
#define UNDERSTUDY_VIEW_CHECK_H

#include "device/check.h"
#include "launch/view_part.h"

/* Reports an input some of whose elements have never been written: false. `view->data` is the program's address. */
bool us_check_view_is_written(Platform *platform, const View *view, const ViewPart *part, const char *function, const char *name);
/* Its elements have been written. */
void us_check_mark_view_written(Platform *platform, const View *view, const ViewPart *part);

#endif
