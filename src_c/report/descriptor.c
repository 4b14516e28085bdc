#include "report/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int us_descriptor_copy(int file)
{
    return fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

int us_descriptor(int made)
{
    if (made < 0 || made > STDERR_FILENO) {
        return made;
    }
    const int moved = us_descriptor_copy(made), reason = errno;
    close(made);
    errno = reason;
    return moved;
}

FILE *us_file_to_write(const char *path)
{
    const int descriptor = us_descriptor(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (descriptor >= 0 && file == NULL) {
        close(descriptor);
    }
    return file;
}
