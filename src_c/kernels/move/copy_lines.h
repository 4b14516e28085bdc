/* Lines of elements whose distances are anything. */
#ifndef UNDERSTUDY_COPY_LINES_H
#define UNDERSTUDY_COPY_LINES_H

#include <stdint.h>

/* `lines` lines of `count` elements of `element` bytes; distances in bytes. */
typedef struct Lines {
    char *to;
    const char *from;
    int64_t lines, line_to, line_from;
    int64_t count, to_step, from_step;
    int64_t element;
} Lines;

/* On the calling thread. */
void us_copy_lines(const Lines *lines);

#endif
