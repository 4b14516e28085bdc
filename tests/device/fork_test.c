/* A process that forks before, or after, it has used a device. */
#include "../check.h"
#include "device/device.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const PlatformProfile profile = {.name = "Test", .memory_bytes = (size_t)1 << 30};

static DeviceFault count(void *argument, Explanation *why)
{
    (void)why;
    ++*(int *)argument;
    return DEVICE_FAULT_NONE;
}

static int use_device(void)
{
    Platform *platform = us_platform(0, &profile);
    if (platform == NULL) {
        return 0;
    }
    Context *context = us_context_primary(us_device(platform, 0));
    int counter = 0;
    CHECK(us_stream_submit(context->default_stream, "count", count, NULL, &counter));
    CHECK(us_stream_synchronize(context->default_stream, -1) == WAIT_DONE && counter == 1);
    return 1;
}

int main(int argument_count, char **arguments)
{
    int before = argument_count > 1 && strcmp(arguments[1], "before") == 0;
    if (!before) {
        CHECK(use_device());
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        puts(use_device() || (!before && use_device()) ? "child ok" : "child refused");
        return 0;
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(use_device());
    puts("parent ok");
    return 0;
}
