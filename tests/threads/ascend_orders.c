/* Registering callbacks while another thread does so too, or is in aclInit (cann-runtime-3 6). Prints "ok". */
#include "halts.h"

#include <acl/acl.h>

static int calls;
static aclError statuses[2];

static aclError count(const char *text, size_t size, void *data)
{
    (void)text, (void)size, (void)data;
    calls++;
    return ACL_SUCCESS;
}

static void start(void)
{
    CHECK(aclInit(NULL) == ACL_SUCCESS);
}

static void register_count(void)
{
    CHECK(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, count, NULL) == ACL_SUCCESS);
}

static void forget_calls(void)
{
    calls = 0;
}

static void check_one_call(void)
{
    CHECK(calls == 1);
    CHECK(aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, count) == ACL_SUCCESS);
    CHECK(aclFinalize() == ACL_SUCCESS);
}

static void on_stream(aclrtStream stream, aclrtStreamState state, void *data)
{
    (void)stream, (void)state, (void)data;
}

static uint32_t on_snapshot(int32_t device, void *data)
{
    (void)device, (void)data;
    return 0;
}

static void name_first(void)
{
    statuses[0] = aclrtRegStreamStateCallback("name", on_stream, NULL);
}

static void name_second(void)
{
    statuses[1] = aclrtRegStreamStateCallback("name", on_stream, NULL);
}

static void stage_first(void)
{
    statuses[0] = aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_LOCK_PRE, on_snapshot, NULL);
}

static void stage_second(void)
{
    statuses[1] = aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_LOCK_PRE, on_snapshot, NULL);
}

static void forget_nothing(void)
{
}

static void check_one_success(void)
{
    CHECK((statuses[0] == ACL_SUCCESS) != (statuses[1] == ACL_SUCCESS));
}

static void check_one_name(void)
{
    check_one_success();
    CHECK(aclrtRegStreamStateCallback("name", NULL, NULL) == ACL_SUCCESS);
}

static void check_one_stage(void)
{
    check_one_success();
    CHECK(aclrtSnapShotCallbackUnregister(ACL_RT_SNAPSHOT_LOCK_PRE, on_snapshot) == ACL_SUCCESS);
    CHECK(aclrtSnapShotCallbackUnregister(ACL_RT_SNAPSHOT_LOCK_PRE, on_snapshot) != ACL_SUCCESS);
}

int main(void)
{
    try_all_orders(forget_calls, start, register_count, check_one_call);
    try_all_orders(forget_calls, register_count, start, check_one_call);
    try_all_orders(forget_nothing, name_first, name_second, check_one_name);
    try_all_orders(forget_nothing, stage_first, stage_second, check_one_stage);
    printf("ok\n");
    return 0;
}
