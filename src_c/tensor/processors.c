#include "tensor/processors.h"

#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

enum { PATH_BYTES = 4096 };

/* What a file says that is only a number, or begins with one; false: it is not there, or says something else ("max"). */
static bool read_numbers(const char *folder, const char *name, int count, long long *numbers)
{
    char path[PATH_BYTES];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = length > 0 && length < PATH_BYTES ? fopen(path, "re") : NULL;
    int found = 0;
    while (file != NULL && found < count && fscanf(file, "%lld", &numbers[found]) == 1) {
        found++;
    }
    if (file != NULL) {
        fclose(file);
    }
    return found == count;
}

/* Of one group, not those that it belongs to. A part of a processor counts as one. */
static int limit_of(const char *folder, bool unified)
{
    long long time[2]; /* of all processors together, in each period: microseconds */
    const bool limited = unified ? read_numbers(folder, "cpu.max", 2, time)
                                 : read_numbers(folder, "cpu.cfs_quota_us", 1, &time[0]) &&
                                       read_numbers(folder, "cpu.cfs_period_us", 1, &time[1]);
    if (!limited || time[0] <= 0 || time[1] <= 0) {
        return INT_MAX;
    }
    const long long processors = time[0] / time[1] + (time[0] % time[1] > 0);
    return processors < INT_MAX ? (int)processors : INT_MAX;
}

/* The least of a group and of those that it belongs to. Where a container sees its own groups only, the path does not exist, but
 * its first folder is the container's group. */
static int least_limit(const char *root, const char *path, bool unified)
{
    char folder[PATH_BYTES];
    const int length = snprintf(folder, sizeof folder, "%s%s%s", root, unified ? "" : "/cpu", path);
    const size_t shortest = strlen(root) + (unified ? 0 : strlen("/cpu"));
    int least = INT_MAX;
    for (size_t end = length < PATH_BYTES ? (size_t)length : 0; end >= shortest && end > 0; end--) {
        if (end == shortest || folder[end] == '/' || folder[end] == '\0') {
            folder[end] = '\0';
            const int limit = limit_of(folder, unified);
            least = limit < least ? limit : least;
        }
    }
    return least;
}

static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

int us_processors_of_groups(const char *listing, const char *root)
{
    FILE *file = fopen(listing, "re");
    char line[PATH_BYTES];
    int least = INT_MAX;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) { /* number:controllers:path */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (path == NULL) {
            continue;
        }
        *path++ = '\0';
        const bool unified = *++controllers == '\0';
        const int limit = unified || has_word(controllers, "cpu") ? least_limit(root, path, unified) : INT_MAX;
        least = limit < least ? limit : least;
    }
    if (file != NULL) {
        fclose(file);
    }
    return least;
}

static int count_usable(void)
{
    cpu_set_t set;
    const int allowed = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
    const int limit = us_processors_of_groups("/proc/self/cgroup", "/sys/fs/cgroup");
    return limit < allowed ? limit : allowed;
}

/* Asked once. */
static int kept(_Atomic int *known, int (*count)(void))
{
    int processors = atomic_load_explicit(known, memory_order_relaxed);
    if (processors == 0) {
        processors = count();
        atomic_store_explicit(known, processors, memory_order_relaxed);
    }
    return processors;
}

int us_usable_processors(void)
{
    static _Atomic int processors;
    return kept(&processors, count_usable);
}

int us_installed_processors(void)
{
    static _Atomic int processors;
    return kept(&processors, get_nprocs_conf);
}
