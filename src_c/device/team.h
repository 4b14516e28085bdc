/* Processes that stand for the cores of one chip. They name the same file, which holds what they share:
 *   UNDERSTUDY_FT_MEMORY  path of a file that all can open for writing; empty at first, it is extended as needed
 *   UNDERSTUDY_FT_CORES   number of processes, 1 … TEAM_LIMIT
 *   UNDERSTUDY_FT_CORE    this process, 0 … UNDERSTUDY_FT_CORES-1
 * Without the file a process is alone. A core that waits for one that has ended ends too, with a message and status 1;
 * whoever starts the processes does the same to the rest. Who also watches them writes 1 to byte 12 of the file first, and
 * to byte 4 + i when core i has ended: it may have done so before it opened the file, and it has not when only the first of
 * its programs has. */
#ifndef UNDERSTUDY_TEAM_H
#define UNDERSTUDY_TEAM_H

#include <stdint.h>

enum { TEAM_LIMIT = 8 };

typedef struct Team {
    int rank, size;
    int file;            /* of the shared memory, kept open; -1: alone */
    int64_t file_offset; /* first byte of the file that is free for other uses */
} Team;

const Team *us_team(void); /* read once */

/* Returns when all of `members` (bit i: process i; the caller's is set) have called it with the same members. What they
 * wrote before is then visible to each. Different groups may wait at the same time. */
void us_team_barrier(uint32_t members);

#endif
