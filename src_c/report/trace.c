#include "report/trace.h"

#include "report/descriptor.h"
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

_Atomic bool us_tracing = false;

static int trace_file = -1; /* opened once; later another file may take its number */
static bool from_environment;

/* A full disk is told once. Of a line that is cut off nothing stays. */
static void write_whole(const char *text, size_t length)
{
    static atomic_bool told;
    ssize_t written = write(trace_file, text, length);
    if (written == (ssize_t)length) {
        return;
    }
    int reason = written < 0 ? errno : ENOSPC;
    off_t end = lseek(trace_file, 0, SEEK_END);
    if (written > 0 && end >= written && ftruncate(trace_file, end - written) != 0) {
        reason = errno;
    }
    if (!atomic_exchange(&told, true)) {
        us_log(LOG_LEVEL_ERROR, "UNDERSTUDY_TRACE: events are missing: %s", strerror(reason));
    }
}

/* Appending writes of whole lines from several threads and processes do not mix. Whoever makes the file begins the array,
 * which nobody ends: so it can be read whenever the process ends. -1: it cannot be opened. */
static int open_file(const char *path)
{
    int file = us_descriptor(open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
    if (file >= 0 && write(file, "[\n", 2) != 2) {
        close(file);
        return -1;
    }
    return file >= 0 || errno != EEXIST ? file : us_descriptor(open(path, O_WRONLY | O_APPEND | O_CLOEXEC));
}

__attribute__((constructor)) static void open_trace(void)
{
    const char *path = us_environment_text("UNDERSTUDY_TRACE", NULL);
    if (path == NULL) {
        return;
    }
    trace_file = open_file(path);
    if (trace_file < 0) {
        us_log(LOG_LEVEL_ERROR, "UNDERSTUDY_TRACE: %s cannot be opened: %s", path, strerror(errno));
        return;
    }
    from_environment = true;
    us_tracing = true;
}

bool us_trace_start(const char *path)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (from_environment) {
        return true;
    }
    pthread_mutex_lock(&lock);
    int file = open_file(path);
    if (file >= 0 && trace_file < 0) {
        trace_file = file;
    } else if (file >= 0) {
        dup3(file, trace_file, O_CLOEXEC); /* threads may be writing: the number stays in use */
        close(file);
    }
    if (file >= 0) {
        us_tracing = true;
    }
    pthread_mutex_unlock(&lock);
    return file >= 0;
}

void us_trace_stop(void)
{
    if (!from_environment) {
        us_tracing = false;
    }
}

void us_trace_event(const char *category, const char *name, int64_t lane, uint64_t start, uint64_t end,
                    const char *arguments_json)
{
    enum { STREAM_LANES = 1000000 }; /* far from thread numbers */
    if (start == 0) {
        return;
    }
    char line[4096];
    long thread = lane == 0 ? (long)gettid() : STREAM_LANES + (long)lane - 1;
    int length = snprintf(line, sizeof line,
                          "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%d,\"tid\":%ld,\"ts\":%.3f,"
                          "\"dur\":%.3f,\"args\":{%s}},\n",
                          category, name, (int)getpid(), thread, (double)start * 1e-3, (double)(end - start) * 1e-3,
                          arguments_json);
    if (length > 0 && (size_t)length < sizeof line) {
        write_whole(line, (size_t)length);
    }
}
