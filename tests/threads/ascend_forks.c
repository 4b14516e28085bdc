/* A program that forks while its other threads make and end objects: what the children may still do, they do, and what they may
 * not is refused; none of them waits for a thread that it does not have. Prints "ok". */
#include "../check.h"

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 2, CHILDREN = 300, PATIENCE_SECONDS = 60 };

static _Atomic int running = 1;

static void use_objects(void)
{
    const int64_t count = 4;
    aclTensor *tensor = aclCreateTensor(&count, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &count, 1, NULL);
    CHECK(aclDestroyTensor(tensor) == 0);
    CHECK(aclDestroyTensor(tensor) != 0);
}

static void *use_objects_for_ever(void *unused)
{
    while (atomic_load(&running)) {
        use_objects();
    }
    return unused;
}

static void be_a_child(void)
{
    alarm(PATIENCE_SECONDS); /* ends one that hangs */
    use_objects();
    CHECK(aclrtSetDevice(0) != ACL_SUCCESS);
    _exit(0);
}

int main(void)
{
    pthread_t threads[THREADS];
    CHECK(aclrtSetDevice(0) == ACL_SUCCESS);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, use_objects_for_ever, NULL) == 0);
    }
    for (int i = 0; i < CHILDREN; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            be_a_child();
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    atomic_store(&running, 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    puts("ok");
    return 0;
}
