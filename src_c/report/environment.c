/* The environment as it was when this library was loaded. Later changes are not seen, and a program may make them in any
 * thread: nothing is read after the start. */
#include "report/report.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct Variable {
    const char *text; /* "NAME=value" */
    size_t name_length;
    _Atomic bool complained; /* a value that cannot be read is reported once */
} Variable;

static Variable *variables; /* never freed; none when there was no memory */
static size_t variable_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Not on the heap: that must not begin to grow, in an executable at fixed addresses perhaps into a window of a chip, before
 * all libraries are there. */
static void *take_pages(size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages != MAP_FAILED ? pages : NULL;
}

static void copy_environment(void)
{
    size_t count = 0;
    size_t bytes = 0;
    for (; environ != NULL && environ[count] != NULL; count++) {
        bytes += strlen(environ[count]) + 1;
    }
    variables = take_pages((count + 1) * sizeof *variables + bytes);
    if (variables == NULL) {
        return;
    }
    char *copy = (char *)(variables + count + 1);
    for (size_t i = 0; i < count; i++) {
        const char *end = strchr(environ[i], '=');
        if (end != NULL) {
            strcpy(copy, environ[i]);
            variables[variable_count].text = copy;
            variables[variable_count++].name_length = (size_t)(end - environ[i]);
            copy += strlen(copy) + 1;
        }
    }
}

/* Other constructors may ask before this one has run. */
__attribute__((constructor)) static void copy_once(void)
{
    pthread_once(&once, copy_environment);
}

/* NULL: unset or empty. */
static Variable *find(const char *name)
{
    copy_once();
    size_t length = strlen(name);
    for (size_t i = 0; i < variable_count; i++) {
        Variable *variable = &variables[i];
        if (variable->name_length == length && memcmp(variable->text, name, length) == 0) {
            return variable->text[length + 1] != '\0' ? variable : NULL;
        }
    }
    return NULL;
}

static const char *value_of(const Variable *variable)
{
    return variable->text + variable->name_length + 1;
}

const char *us_environment_text(const char *name, const char *fallback)
{
    const Variable *variable = find(name);
    return variable != NULL ? value_of(variable) : fallback;
}

int64_t us_environment_integer(const char *name, int64_t fallback, int64_t lowest, int64_t highest)
{
    Variable *variable = find(name);
    if (variable == NULL) {
        return fallback;
    }
    char *end = NULL;
    errno = 0;
    long long number = strtoll(value_of(variable), &end, 0);
    if (errno == 0 && *end == '\0' && number >= lowest && number <= highest) {
        return number;
    }
    if (!atomic_exchange(&variable->complained, true)) {
        us_log(LOG_LEVEL_ERROR, "%s is \"%s\"; it must be a whole number from %lld to %lld; using %lld", name,
               value_of(variable), (long long)lowest, (long long)highest, (long long)fallback);
    }
    return fallback;
}

static void complain_about_choice(const char *name, const char *value, const char *const *choices, const char *fallback)
{
    char list[512] = "";
    for (int i = 0; choices[i] != NULL; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ", choices[i]);
    }
    us_log(LOG_LEVEL_ERROR, "%s is \"%s\"; known values: %s; %s%s", name, value, list,
           fallback != NULL ? "using " : "ignored", fallback != NULL ? fallback : "");
}

int us_environment_choice(const char *name, const char *const *choices, int fallback)
{
    Variable *variable = find(name);
    if (variable == NULL) {
        return fallback;
    }
    int count = 0;
    for (; choices[count] != NULL; count++) {
        if (strcmp(value_of(variable), choices[count]) == 0) {
            return count;
        }
    }
    if (!atomic_exchange(&variable->complained, true)) {
        complain_about_choice(name, value_of(variable), choices, fallback < count ? choices[fallback] : NULL);
    }
    return fallback;
}
