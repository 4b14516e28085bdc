/* UNDERSTUDY_CHECK=init on views: element by element, gaps between elements left alone. */
#ifndef UNDERSTUDY_VIEW_CHECK_H
#define UNDERSTUDY_VIEW_CHECK_H

#include "device/check.h"
#include "tensor/view.h"

/* Reports an input some of whose elements have never been written. `view->data` is the program's address. */
void us_check_view_is_written(Platform *platform, const View *view, const char *function, const char *name);
/* Its elements have been written. */
void us_check_mark_view_written(Platform *platform, const View *view);

#endif
