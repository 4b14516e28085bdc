#include "report/report.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const level_names[] = {"off", "error", "warn", "info", "debug", NULL};

static pthread_once_t level_once = PTHREAD_ONCE_INIT;
static LogLevel enabled_level = LOG_LEVEL_ERROR;

/* Not through us_environment_choice: that one logs, and asks for the level. */
static void read_level(void)
{
    const char *value = getenv("UNDERSTUDY_LOG");
    if (value == NULL || value[0] == '\0') {
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

const char *us_environment_text(const char *name, const char *fallback)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : fallback;
}

int64_t us_environment_integer(const char *name, int64_t fallback, int64_t lowest, int64_t highest)
{
    const char *value = us_environment_text(name, NULL);
    if (value == NULL) {
        return fallback;
    }
    char *end = NULL;
    errno = 0;
    long long number = strtoll(value, &end, 0);
    if (errno != 0 || *end != '\0' || number < lowest || number > highest) {
        us_log(LOG_LEVEL_ERROR, "%s is \"%s\"; it must be a whole number from %lld to %lld; using %lld", name, value,
               (long long)lowest, (long long)highest, (long long)fallback);
        return fallback;
    }
    return number;
}

int us_environment_choice(const char *name, const char *const *choices, int fallback)
{
    const char *value = us_environment_text(name, NULL);
    if (value == NULL) {
        return fallback;
    }
    char list[512] = "";
    for (int i = 0; choices[i] != NULL; i++) {
        if (strcmp(value, choices[i]) == 0) {
            return i;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ", choices[i]);
    }
    us_log(LOG_LEVEL_ERROR, "%s is \"%s\"; known values: %s; using %s", name, value, list, choices[fallback]);
    return fallback;
}
