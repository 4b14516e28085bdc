/* The environment is that of the start, whatever the program does to its own later, and mistakes are reported once. */
#include "../check.h"
#include "report/report.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

static _Atomic bool stop;

/* Moves the environment about, as os.environ does in Python. */
static void *change(void *argument)
{
    (void)argument;
    for (int i = 0; !stop; i++) {
        char name[32];
        snprintf(name, sizeof name, "CHANGED_%d", i % 5000);
        setenv(name, "value", 1);
    }
    return NULL;
}

int main(void)
{
    static const char *const choices[] = {"always", "never", NULL};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, change, NULL) == 0);
    setenv("UNDERSTUDY_DEVICES", "2", 1);
    unsetenv("UNDERSTUDY_STREAM");
    for (int i = 0; i < 20000; i++) {
        CHECK(strcmp(us_environment_text("UNDERSTUDY_DEVICES", ""), "3") == 0);
        CHECK(strcmp(us_environment_text("UNDERSTUDY_LOG", "unset"), "unset") == 0); /* empty */
        CHECK(us_environment_choice("UNDERSTUDY_STREAM", choices, 1) == 1);
        CHECK(us_environment_integer("UNDERSTUDY_DEVICES", 1, 0, 2) == 1);
        CHECK(us_environment_integer("UNDERSTUDY_DEVICES", 1, 0, 3) == 3);
        CHECK(us_environment_text("UNDERSTUDY_STREAM_", NULL) == NULL);
    }
    stop = true;
    pthread_join(thread, NULL);
    puts("ok");
    return 0;
}
