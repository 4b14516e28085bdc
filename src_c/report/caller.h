/* Where in the program a call came from, so that a message alone is enough to find the mistake. */
#ifndef UNDERSTUDY_CALLER_H
#define UNDERSTUDY_CALLER_H

#include <stdbool.h>
#include <stddef.h>

/* Whether somebody may want to know later where today's calls came from: what is queued and allocated then remembers its
 * caller. UNDERSTUDY_CHECK or UNDERSTUDY_LOG asks for it. */
bool us_callers_are_wanted(void);

/* The calling thread's place in the program: the address behind the call of one of our functions. NULL: unknown. */
const void *us_find_caller(void);

/* In a signal handler: the program's place that was interrupted at `instruction`, or that called what was. */
const void *us_find_interrupted(const void *instruction);

/* " at FILE:LINE in FUNCTION", or " in FUNCTION of PROGRAM" where there is no debug information; "" when nothing is known. */
typedef struct Place {
    char text[480];
} Place;
Place us_place(const void *caller);

/* UNDERSTUDY_LOG=info: the program's calls that led here, a line each. */
void us_log_calls(void);

#endif
