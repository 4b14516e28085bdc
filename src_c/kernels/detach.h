/* Inputs that may share memory with outputs. */
#ifndef UNDERSTUDY_DETACH_H
#define UNDERSTUDY_DETACH_H

#include "kernels/kernels.h"

enum { DETACH_LIMIT = 4 };

/* Copies of views, each replaced by a packed copy of its elements where it shares memory with an output that is not the
 * very same view: element by element the same view is harmless, anything else is not. */
typedef struct Detached {
    View inputs[DETACH_LIMIT];
    void *copies[DETACH_LIMIT];
} Detached;

KernelStatus us_detach(Detached *detached, int input_count, const View *inputs, int output_count, const View *outputs);
/* For operators that read what lies beside what they have written: the very same view is copied, too. */
KernelStatus us_detach_same(Detached *detached, int input_count, const View *inputs, int output_count, const View *outputs);
void us_detach_end(Detached *detached); /* also after a failure */

/* The bytes that a view reaches; false: none. */
bool us_view_reach(const View *view, const char **begin, const char **end);
/* Whether they share memory and are not the very same view. */
bool us_views_collide(const View *a, const View *b);

#endif
