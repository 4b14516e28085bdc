/* Two threads give work to one blocking stream while the default stream has some: none of it runs before that (maca-runtime
 * 5.1). Prints "ok". */
#include "halts.h"

#include <mc_runtime.h>
#include <stdatomic.h>
#include <unistd.h>

static mcStream_t stream;
static sem_t gate;
static atomic_bool default_work_is_done;
static atomic_int early;

static void wait_for_gate(void *unused)
{
    (void)unused;
    sem_wait(&gate);
    atomic_store(&default_work_is_done, true);
}

static void look(void *unused)
{
    (void)unused;
    if (!atomic_load(&default_work_is_done)) {
        atomic_fetch_add(&early, 1);
    }
}

static void fill_default_stream(void)
{
    atomic_store(&default_work_is_done, false);
    CHECK(mcLaunchHostFunc(NULL, wait_for_gate, NULL) == mcSuccess);
}

static void launch(void)
{
    CHECK(mcLaunchHostFunc(stream, look, NULL) == mcSuccess);
}

static void check_none_is_early(void)
{
    for (int i = 0; i < 50 && atomic_load(&early) == 0; i++) { /* what does not wait runs now */
        CHECK(mcStreamQuery(stream) == mcErrorNotReady);
        usleep(200);
    }
    sem_post(&gate);
    CHECK(mcDeviceSynchronize() == mcSuccess);
    CHECK(atomic_load(&early) == 0);
}

int main(void)
{
    sem_init(&gate, 0, 0);
    CHECK(mcStreamCreate(&stream) == mcSuccess);
    try_all_orders(fill_default_stream, launch, launch, check_none_is_early);
    printf("ok\n");
    return 0;
}
