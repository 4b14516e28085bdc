/* Other processes that threads of this one wait for: somebody is told when they end, however that happens. */
#ifndef UNDERSTUDY_PROCESS_END_H
#define UNDERSTUDY_PROCESS_END_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ProcessWatch ProcessWatch;

/* Also when its parent has not asked for its status yet. */
bool us_process_has_ended(int32_t process);

/* `wake` is called, by a thread of this library, when the process ends. It must not call these functions. NULL: the process
 * has ended, or cannot be watched (Linux before 5.3, no memory, no descriptor). */
ProcessWatch *us_process_watch(int32_t process, void (*wake)(void *argument), void *argument);
/* `wake` is not called any more, and does not run. NULL is allowed. */
void us_process_unwatch(ProcessWatch *watch);

#endif
