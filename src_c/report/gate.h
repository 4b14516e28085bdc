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

/* us_call_begin does these. Whoever closes the gate and then looks who is in a call (grace.h) sees each call that was not
 * held: a call is seen first, and looks at the gate then. */
bool us_gate_holds(const char *function);
void us_gate_wait(const char *function);

#endif
