/* A gate before a vendor's functions: while it is closed, calls of other threads than the one that closed it wait at their
 * begin, before they hold anything. There is one for the process. */
#ifndef UNDERSTUDY_GATE_H
#define UNDERSTUDY_GATE_H

#include <stdbool.h>

/* `waits` decides, for the calling thread and a function that it calls (as the vendor spells it). Not for the thread that has
 * closed the gate. */
typedef bool GateRule(const char *function);
void us_gate_close(GateRule *waits);
void us_gate_open(void);

void us_gate_pass(const char *function); /* us_call_begin does it */

#endif
