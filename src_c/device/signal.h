/* A page of memory that several processes have, with what events and notifies are made of. There are no locks in it: a
 * process may end at any instruction. */
#ifndef UNDERSTUDY_SIGNAL_H
#define UNDERSTUDY_SIGNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct SignalWords {
    _Atomic uint64_t recorded;  /* events: number of the latest record submitted */
    _Atomic uint64_t completed; /* number of the latest record that has run or been dropped */
    _Atomic int32_t recorder;   /* the process that submitted it */
    _Atomic uint32_t flag;      /* notifies: 1 when set */
    _Atomic uint32_t changes;   /* grows with every change; what threads of all processes sleep on */
} SignalWords;

/* A file of zeros; its descriptor, or -1. */
int us_signal_create(void);
SignalWords *us_signal_open(int file); /* NULL: no memory */
void us_signal_close(SignalWords *words);

/* Wakes all who wait, after a change. */
void us_signal_tell(SignalWords *words);
/* Until `changes` is no longer what it was, or so long; negative: no limit. May end early. */
void us_signal_wait(SignalWords *words, uint32_t changes, int64_t nanoseconds);

/* Whether the process that submitted the latest record has ended. */
bool us_signal_is_orphan(const SignalWords *words);

#endif
