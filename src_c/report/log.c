#include "report/report.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const level_names[] = {"off", "error", "warn", "info", "debug", NULL};

static pthread_once_t level_once = PTHREAD_ONCE_INIT;
static LogLevel enabled_level = LOG_LEVEL_ERROR;

/* Not through us_environment_choice: that one logs, and asks for the level. */
static void read_level(void)
{
    const char *value = us_environment_text("UNDERSTUDY_LOG", NULL);
    if (value == NULL) {
        return;
    }
    for (int i = 0; level_names[i] != NULL; i++) {
        if (strcmp(value, level_names[i]) == 0) {
            enabled_level = (LogLevel)i;
            return;
        }
    }
    fprintf(stderr, "understudy: error: UNDERSTUDY_LOG is \"%s\"; use off, error, warn, info or debug\n", value);
}

bool us_log_enabled(LogLevel level)
{
    pthread_once(&level_once, read_level);
    return level <= enabled_level;
}

void us_log(LogLevel level, const char *format, ...)
{
    if (!us_log_enabled(level)) {
        return;
    }
    /* One write per line, so that lines of several threads do not mix. */
    char line[1280];
    int used = snprintf(line, sizeof line, "understudy: %s: ", level_names[level]);
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, arguments);
    va_end(arguments);
    size_t length = (size_t)used + (size_t)(wanted > 0 ? wanted : 0);
    if (length > sizeof line - 2) {
        length = sizeof line - 2;
    }
    line[length] = '\n';
    fwrite(line, 1, length + 1, stderr);
}
