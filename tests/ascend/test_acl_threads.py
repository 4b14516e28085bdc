"""Objects that several threads destroy at once: one of them does, the others are refused as those that come later are."""

import ctypes

import pytest
from understudy.ascend import ffi, lib

from tests import in_step, native
from tests.conformance.ascend.acl_support import Out, device, ok

DEAD = 107017
# Python's threads take turns at calls as short as these; here both threads wait at every object for each other.
RACE = r"""
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

struct race {
    int (*destroy)(void *), (*enter)(void *);
    void *context, **handles;
    int count, *statuses;
    atomic_int arrived, thread;
};

static void *work(void *argument)
{
    struct race *race = argument;
    int *own = race->statuses + atomic_fetch_add(&race->thread, 1) * race->count;
    race->enter(race->context);
    for (int i = 0; i < race->count; i++) {
        atomic_fetch_add(&race->arrived, 1);
        for (int looked = 0; atomic_load(&race->arrived) < 2 * (i + 1); looked++) {
            if (looked > 10000) {
                sched_yield();
            }
        }
        own[i] = race->destroy(race->handles[i]);
    }
    return NULL;
}

void race(void *destroy, void *enter, void *context, void **handles, int count, int *statuses)
{
    struct race race = {.destroy = (int (*)(void *))destroy, .enter = (int (*)(void *))enter, .context = context,
                        .handles = handles, .count = count, .statuses = statuses};
    pthread_t first, second;
    pthread_create(&first, NULL, work, &race);
    pthread_create(&second, NULL, work, &race);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
}
"""


def cell(create, *arguments):
    def make():
        made = Out()
        ok(create(made.cell, *arguments))
        return made.value
    return make


def pool():
    made = Out()
    properties = ffi.new("aclrtMemPoolProps *", {
        "allocType": 0, "handleType": 0, "location": {"id": 0, "type": lib.ACL_MEM_LOCATION_TYPE_DEVICE}, "maxSize": 0})
    ok(lib.aclrtMemPoolCreate(made.cell, properties))
    return made.value


def context():
    own, made = Out(), Out()
    ok(lib.aclrtGetCurrentContext(own.cell))
    ok(lib.aclrtCreateContext(made.cell, 0))
    ok(lib.aclrtSetCurrentContext(own.value))
    return made.value


# How one is made, how it ends, what refuses the others, how many.
KINDS = {
    "stream": (cell(lib.aclrtCreateStream), lib.aclrtDestroyStream, {DEAD}, 60),
    "event": (cell(lib.aclrtCreateEvent), lib.aclrtDestroyEvent, {DEAD}, 5000),
    "notify": (cell(lib.aclrtCreateNotify, 0), lib.aclrtDestroyNotify, {DEAD}, 1000),
    "label": (cell(lib.aclrtCreateLabel), lib.aclrtDestroyLabel, {DEAD}, 5000),
    "model": (cell(lib.aclmdlRIBuildBegin, 0), lib.aclmdlRIDestroy, {DEAD}, 200),
    "pool": (pool, lib.aclrtMemPoolDestroy, {DEAD}, 5000),
    "context": (context, lib.aclrtDestroyContext, {107002, 507007}, 40),  # the second while it is being destroyed
    "memory": (cell(lib.aclrtMalloc, 64, 0), lib.aclrtFree, {107000}, 500),
    "data buffer": (lambda: lib.aclCreateDataBuffer(ffi.NULL, 0), lib.aclDestroyDataBuffer, {100000}, 5000),
    "configuration": (lib.aclrtCreateStreamConfigHandle, lib.aclrtDestroyStreamConfigHandle, {100000}, 60),
    "queue attribute": (lib.acltdtCreateQueueAttr, lib.acltdtDestroyQueueAttr, {100000}, 5000),
    "dataset": (lib.acltdtCreateDataset, lib.acltdtDestroyDataset, {100000}, 5000),
    "tensor": (lambda: lib.aclCreateTensor(ffi.new("int64_t[1]"), 1, 0, ffi.NULL, 0, 2, ffi.new("int64_t[1]"), 1, ffi.NULL),
               lib.aclDestroyTensor, {161002}, 5000),
}


@pytest.fixture(scope="module")
def race(tmp_path_factory):
    folder = tmp_path_factory.mktemp("race")
    (folder / "race.c").write_text(RACE)
    native.check(["gcc", "-O1", "-shared", "-fPIC", "-pthread", folder / "race.c", "-o", folder / "race.so"])
    function = ctypes.CDLL(str(folder / "race.so")).race
    function.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int, ctypes.c_void_p]
    return function


def address(pointer) -> int:
    return int(ffi.cast("uintptr_t", pointer))


@pytest.mark.parametrize("kind", KINDS)
def test_of_two_threads_that_destroy_an_object_one_is_refused(race, kind):
    make, destroy, refusals, count = KINDS[kind]
    with device():
        current = Out()
        ok(lib.aclrtGetCurrentContext(current.cell))
        handles = ffi.new("void *[]", [make() for _ in range(count)])
        statuses = ffi.new("int[]", 2 * count)
        race(*map(address, (destroy, lib.aclrtSetCurrentContext, current.value, handles)), count, address(statuses))
        for of_one in in_step(statuses[0:count], statuses[count : 2 * count]):
            assert of_one.count(0) == 1
            assert set(of_one) - {0} <= refusals
