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

/* Everything an output reaches, as one array, for operators that read what lies beside what they have written: as an output
 * of us_detach it is never the very same view, so that an input that shares any of it is copied. */
View us_detach_reach(const View *output);
KernelStatus us_detach(Detached *detached, int input_count, const View *inputs, int output_count, const View *outputs);
void us_detach_end(Detached *detached); /* also after a failure */

#endif
