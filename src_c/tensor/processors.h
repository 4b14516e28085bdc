/* How many processors there are to work on. */
#ifndef UNDERSTUDY_PROCESSORS_H
#define UNDERSTUDY_PROCESSORS_H

/* Of the machine, whether this process may use them or not. */
int us_installed_processors(void);

/* That this process may keep busy: those that it may run on, and no more than its control groups have time for. */
int us_usable_processors(void);

/* The latter. `listing` is a file like /proc/self/cgroup; the groups' folders are in `root`, of both versions (Linux
 * documentation, cgroup-v2 "CPU Interface Files" and scheduler "CFS Bandwidth Control"). INT_MAX: there is no limit. */
int us_processors_of_groups(const char *listing, const char *root);

#endif
