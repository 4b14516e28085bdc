/* Communicators: made and destroyed. */
#include "ascend/hccl/communicator.h"
#include "ascend/hccl/rank_table.h"
#include "ranks/names.h"

#include "report/grace.h"
#include "report/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char ROOT_MARK[8] = {'u', 'n', 'd', 'r', 's', 't', 'd', 'y'};
static const int64_t SECOND = 1000000000;
enum { DEFAULT_WAIT = 1836, DEFAULT_CONNECT = 120 }; /* seconds */

/* ---- settings ---- */

static int64_t connect_nanoseconds(void)
{
    return us_environment_integer("HCCL_CONNECT_TIMEOUT", DEFAULT_CONNECT, DEFAULT_CONNECT, 7200) * SECOND;
}

/* A program may be older than the last fields of the structure: its first 8 bytes are its size. */
static uint64_t size_of(const HcclCommConfig *config)
{
    uint64_t size;
    memcpy(&size, config->reserved, sizeof size);
    return size;
}

#define CONFIG_HAS(config, field) \
    (size_of(config) >= offsetof(HcclCommConfig, field) + sizeof((config)->field))

static void require_config(Call *call, const HcclCommConfig *config)
{
    static const uint32_t NOT_SET = 0xffffffff;
    us_require(call, config != NULL, "config", "null", HCCL_E_PTR, "config is NULL");
    const uint64_t size = call->status == 0 ? size_of(config) : 0;
    us_require(call, size >= HCCL_COMM_CONFIG_INFO_BYTES && size <= 1 << 16, "config", "uninitialized", HCCL_E_PARA,
               "config was not set up by HcclCommConfigInit: it says that it has %llu bytes", (unsigned long long)size);
    us_require(call, !CONFIG_HAS(config, hcclBufferSize) || config->hcclBufferSize > 0, "config", "hcclBufferSize",
               HCCL_E_PARA, "hcclBufferSize is 0; it must be at least 1");
    us_require(call, !CONFIG_HAS(config, hcclDeterministic) || config->hcclDeterministic <= 2 ||
                         config->hcclDeterministic == NOT_SET, "config", "hcclDeterministic", HCCL_E_PARA,
               "hcclDeterministic is %u; it must be 0 to 2", (unsigned)config->hcclDeterministic);
    us_require(call, !CONFIG_HAS(config, hcclCommName) ||
                         memchr(config->hcclCommName, '\0', COMM_NAME_MAX_LENGTH) != NULL, "config", "hcclCommName",
               HCCL_E_PARA, "hcclCommName has no end within its %d bytes", (int)COMM_NAME_MAX_LENGTH);
}

static int64_t patience_of(const HcclCommConfig *config)
{
    const bool given = config != NULL && CONFIG_HAS(config, hcclExecTimeOut) && config->hcclExecTimeOut >= 0;
    const int64_t seconds = given ? config->hcclExecTimeOut
                                  : us_environment_integer("HCCL_EXEC_TIMEOUT", DEFAULT_WAIT, 0, INT32_MAX);
    return seconds == 0 ? -1 : seconds * SECOND;
}

static const char *name_in(const HcclCommConfig *config)
{
    return config != NULL && CONFIG_HAS(config, hcclCommName) ? config->hcclCommName : "";
}

/* ---- made ---- */

static Device *require_device(Call *call)
{
    Platform *platform = ascend_platform();
    Context *context = platform != NULL ? us_context_current(platform) : NULL;
    us_require(call, context != NULL, "context", "none", HCCL_E_RUNTIME, "the thread has no device: call aclrtSetDevice first");
    return call->status == 0 ? context->device : NULL;
}

static void open_room(Call *call, uint64_t *key)
{
    Platform *platform = ascend_platform();
    us_require(call, platform != NULL && us_room_open(platform->id, key) == IPC_OK, "ranks", "resources", HCCL_E_MEMORY,
               "no memory, thread or file descriptor is left for a communicator");
}

/* Takes a place in a room that has this key, and gives the program a handle. */
static void join(Call *call, uint64_t key, const Communicator *as, int32_t ranks, int32_t rank,
                 const HcclCommConfig *config, HcclComm *comm)
{
    Explanation why;
    bool exhausted = false;
    if (call->status != 0) {
        return;
    }
    Room *room = us_room_join(as->device->platform->id, key, ranks, rank, &exhausted, &why);
    us_require(call, room != NULL || !exhausted, "ranks", "resources", HCCL_E_MEMORY, "%s", why.text);
    us_require(call, room != NULL, "rank", "refused", HCCL_E_PARA, "%s", why.text);
    if (call->status != 0) {
        return;
    }
    Communicator made = *as;
    made.room = room;
    room->found = made.found;
    room->patience = patience_of(config);
    if (made.name[0] == '\0') {
        snprintf(made.name, sizeof made.name, "understudy-%016llx", (unsigned long long)key);
    }
    HcclComm handle = us_handle_new(HANDLE_COMMUNICATOR, &made, sizeof made);
    us_require(call, handle != NULL, "comm", "memory", HCCL_E_MEMORY, "no host memory for a communicator");
    if (call->status == 0) {
        us_room_name(room, made.name, made.device);
        *comm = handle;
    } else {
        us_room_leave(room);
        us_room_let_go(room);
    }
}

/* This rank tells nobody of the room any more; whether it did. A program may destroy a communicator while another thread's group
 * waits for its ranks. */
static bool take_back(Communicator *communicator)
{
    Meeting *meeting = __atomic_exchange_n(&communicator->meeting, NULL, __ATOMIC_ACQ_REL);
    Room *announced_in = __atomic_exchange_n(&communicator->announced_in, NULL, __ATOMIC_ACQ_REL);
    us_meeting_close(meeting);
    if (announced_in != NULL) {
        us_room_withdraw(announced_in, communicator->announced_as);
    }
    return meeting != NULL || announced_in != NULL;
}

/* Other threads may just have found it. */
static void let_go(void *room)
{
    us_room_let_go(room);
}

static void end_room(Room *room)
{
    us_room_leave(room);
    us_grace_bury(let_go, room);
}

void hccl_gather(Call *call, HcclComm comm)
{
    Explanation why;
    bool late = false;
    Communicator *communicator = us_handle_object(comm, HANDLE_COMMUNICATOR);
    if (communicator == NULL) {
        return;
    }
    Room *room = communicator->room;
    const bool complete = call->status == 0 && us_room_gather(room, connect_nanoseconds(), &late, &why);
    if (take_back(communicator) && complete) {
        us_room_close(room);
    }
    us_require(call, complete || !late, "ranks", "late", HCCL_E_TIMEOUT, "%s", why.text);
    us_require(call, complete, "ranks", "lost", HCCL_E_TCP_CONNECT, "%s", why.text);
    if (call->status != 0 && us_handle_release(comm, HANDLE_COMMUNICATOR)) {
        end_room(room);
    }
}

/* At once, or at the end of the group. */
static void wait_for_others(Call *call, HcclComm made, HcclComm *comm)
{
    if (call->status == 0 && hccl_in_group()) {
        us_require(call, hccl_group_join(made), "comm", "memory", HCCL_E_MEMORY, "no host memory for the group");
    } else if (call->status == 0) {
        hccl_gather(call, made);
    }
    if (call->status == 0) {
        *comm = made;
    }
}

static void require_ranks(Call *call, uint32_t ranks, uint32_t rank)
{
    us_require(call, ranks >= 1 && ranks <= RANK_LIMIT, "nRanks", "range", HCCL_E_PARA,
               "nRanks is %u; it must be 1 to %d", (unsigned)ranks, RANK_LIMIT);
    us_require(call, rank < ranks, "rank", "range", HCCL_E_PARA, "rank is %u of %u ranks", (unsigned)rank, (unsigned)ranks);
}

static uint64_t require_key(Call *call, const HcclRootInfo *rootInfo)
{
    us_require(call, rootInfo != NULL, "rootInfo", "null", HCCL_E_PTR, "rootInfo is NULL");
    us_require(call, memcmp(rootInfo->internal, ROOT_MARK, sizeof ROOT_MARK) == 0, "rootInfo", "unknown", HCCL_E_PARA,
               "rootInfo was not made by HcclGetRootInfo");
    uint64_t key = 0;
    if (call->status == 0) {
        memcpy(&key, rootInfo->internal + sizeof ROOT_MARK, sizeof key);
    }
    return key;
}

static void set_name(Communicator *communicator, const char *name)
{
    snprintf(communicator->name, sizeof communicator->name, "%s", name);
}

static void init(Call *call, uint32_t ranks, const HcclRootInfo *rootInfo, uint32_t rank, const HcclCommConfig *config,
                 HcclComm *comm)
{
    HcclComm made = NULL;
    us_require(call, comm != NULL, "comm", "null", HCCL_E_PTR, "comm is NULL");
    const uint64_t key = require_key(call, rootInfo);
    require_ranks(call, ranks, rank);
    Communicator as = {.device = require_device(call), .whole = true};
    set_name(&as, name_in(config));
    join(call, key, &as, (int32_t)ranks, (int32_t)rank, config, &made);
    wait_for_others(call, made, comm);
}

HcclResult HcclGetRootInfo(HcclRootInfo *rootInfo)
{
    Call call = us_call_begin("HcclGetRootInfo");
    uint64_t key;
    us_require(&call, rootInfo != NULL, "rootInfo", "null", HCCL_E_PTR, "rootInfo is NULL");
    require_device(&call);
    if (call.status == 0) {
        open_room(&call, &key);
    }
    if (call.status == 0) {
        memset(rootInfo, 0, sizeof *rootInfo);
        memcpy(rootInfo->internal, ROOT_MARK, sizeof ROOT_MARK);
        memcpy(rootInfo->internal + sizeof ROOT_MARK, &key, sizeof key);
    }
    return (HcclResult)us_call_end(&call);
}

HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank, HcclComm *comm)
{
    Call call = us_call_begin("HcclCommInitRootInfo");
    init(&call, nRanks, rootInfo, rank, NULL, comm);
    return (HcclResult)us_call_end(&call);
}

HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank,
                                      const HcclCommConfig *config, HcclComm *comm)
{
    Call call = us_call_begin("HcclCommInitRootInfoConfig");
    require_config(&call, config);
    init(&call, nRanks, rootInfo, rank, call.status == 0 ? config : NULL, comm);
    return (HcclResult)us_call_end(&call);
}

/* ---- by a rank table ---- */

/* Opens the room and tells its key from now on; or another rank has just begun to, and needs a little time. */
static void tell(Call *call, const char *name, Communicator *as, uint64_t *key)
{
    bool taken = false;
    open_room(call, key);
    as->meeting = call->status == 0 ? us_meeting_open(name, *key, &taken) : NULL;
    us_require(call, as->meeting != NULL || taken, "ranks", "resources", HCCL_E_MEMORY,
               "no memory, thread or file descriptor is left for a communicator");
    if (taken) {
        us_ipc_withdraw(*key);
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    }
}

/* The rank that comes first tells those who have the same table. It need not be rank 0: a thread that joins for several ranks in
 * a group does so in any order. */
static void meet(Call *call, const RankTable *table, Communicator *as, uint64_t *key)
{
    char name[32];
    const int64_t patience = connect_nanoseconds();
    const uint64_t start = us_now();
    snprintf(name, sizeof name, "table-%016llx", (unsigned long long)table->number);
    while (call->status == 0 && as->meeting == NULL && !as->found) {
        as->found = us_meeting_ask(name, key);
        us_require(call, as->found || (int64_t)(us_now() - start) < patience, "ranks", "late", HCCL_E_TIMEOUT,
                   "the first rank of this table does not answer");
        if (call->status == 0 && !as->found) {
            tell(call, name, as, key);
        }
    }
}

static void init_by_table(Call *call, const char *path, uint32_t rank, const HcclCommConfig *config, HcclComm *comm)
{
    uint64_t key = 0;
    HcclComm made = NULL;
    us_require(call, comm != NULL, "comm", "null", HCCL_E_PTR, "comm is NULL");
    const RankTable table = hccl_read_rank_table(call, path);
    us_require(call, rank < table.ranks, "rank", "range", HCCL_E_PARA, "rank is %u of %u ranks", (unsigned)rank,
               (unsigned)table.ranks);
    Communicator as = {.device = require_device(call), .whole = true};
    set_name(&as, name_in(config));
    meet(call, &table, &as, &key);
    join(call, key, &as, (int32_t)table.ranks, (int32_t)rank, config, &made);
    if (call->status != 0) {
        take_back(&as);
    }
    wait_for_others(call, made, comm);
}

HcclResult HcclCommInitClusterInfo(const char *clusterInfo, uint32_t rank, HcclComm *comm)
{
    Call call = us_call_begin("HcclCommInitClusterInfo");
    init_by_table(&call, clusterInfo, rank, NULL, comm);
    return (HcclResult)us_call_end(&call);
}

HcclResult HcclCommInitClusterInfoConfig(const char *clusterInfo, uint32_t rank, HcclCommConfig *config, HcclComm *comm)
{
    Call call = us_call_begin("HcclCommInitClusterInfoConfig");
    require_config(&call, config);
    init_by_table(&call, clusterInfo, rank, call.status == 0 ? config : NULL, comm);
    return (HcclResult)us_call_end(&call);
}

/* ---- for the devices of a process ---- */

static void require_devices(Call *call, uint32_t ndev, const int32_t *devices)
{
    Platform *platform = ascend_platform();
    for (uint32_t i = 0; call->status == 0 && i < ndev; i++) {
        us_require(call, platform != NULL && us_device(platform, devices[i]) != NULL, "devices", "range", HCCL_E_PARA,
                   "devices[%u] is %d, which is no device", (unsigned)i, (int)devices[i]);
        for (uint32_t k = 0; k < i; k++) {
            us_require(call, devices[i] != devices[k], "devices", "twice", HCCL_E_PARA, "devices[%u] and [%u] are both %d",
                       (unsigned)k, (unsigned)i, (int)devices[i]);
        }
    }
}

HcclResult HcclCommInitAll(uint32_t ndev, int32_t *devices, HcclComm *comms)
{
    Call call = us_call_begin("HcclCommInitAll");
    uint64_t key = 0;
    us_require(&call, devices != NULL, "devices", "null", HCCL_E_PTR, "devices is NULL");
    us_require(&call, comms != NULL, "comms", "null", HCCL_E_PTR, "comms is NULL");
    us_require(&call, ndev >= 1 && ndev <= DEVICE_LIMIT, "ndev", "range", HCCL_E_PARA, "ndev is %u; it must be 1 to %d",
               (unsigned)ndev, DEVICE_LIMIT);
    require_devices(&call, ndev, devices);
    HcclComm made[DEVICE_LIMIT];
    uint32_t count = 0;
    if (call.status == 0) {
        open_room(&call, &key);
    }
    while (call.status == 0 && count < ndev) {
        const Communicator as = {.device = us_device(ascend_platform(), devices[count]), .whole = true};
        join(&call, key, &as, (int32_t)ndev, (int32_t)count, NULL, &made[count]);
        count += call.status == 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        hccl_gather(&call, made[i]); /* nothing to wait for */
    }
    if (call.status == 0) {
        memcpy(comms, made, ndev * sizeof *comms);
    }
    return (HcclResult)us_call_end(&call);
}

/* ---- of a part of the ranks ---- */

static void require_part(Call *call, const Communicator *whole, uint32_t ranks, const uint32_t *ids, uint32_t rank)
{
    us_require(call, whole->whole, "comm", "part", HCCL_E_NOT_SUPPORT,
               "comm is a part of another communicator and cannot be divided");
    us_require(call, ids != NULL, "rankIds", "null", HCCL_E_PTR, "rankIds is NULL, and subCommId not 0xFFFFFFFF");
    us_require(call, ranks >= 1 && ranks <= (uint32_t)whole->room->ranks, "rankNum", "range", HCCL_E_PARA,
               "rankNum is %u; comm has %d ranks", (unsigned)ranks, (int)whole->room->ranks);
    for (uint32_t i = 0; call->status == 0 && i < ranks; i++) {
        us_require(call, ids[i] < (uint32_t)whole->room->ranks && (i == 0 || ids[i] > ids[i - 1]), "rankIds", "order",
                   HCCL_E_PARA, "rankIds[%u] is %u: they are ranks of comm, which has %d, in ascending order", (unsigned)i,
                   (unsigned)ids[i], (int)whole->room->ranks);
    }
    us_require(call, rank < ranks && ids[rank] == (uint32_t)whole->room->rank, "subCommRankId", "own", HCCL_E_PARA,
               "subCommRankId is %u: it must be the place of rank %d in rankIds", (unsigned)rank, (int)whole->room->rank);
}

/* Parts that share no rank may have one name: those of rows of a mesh do in many programs. */
static uint64_t number_of_part(const Communicator *as, uint32_t ranks, const uint32_t *ids)
{
    return hccl_number_of(as->name, strlen(as->name)) ^ (hccl_number_of((const char *)ids, ranks * sizeof *ids) << 2);
}

static void look_up(Call *call, Room *whole, const Communicator *as, int32_t maker, uint64_t *key)
{
    Explanation why;
    bool late = false;
    const bool found = call->status == 0 &&
                       us_room_look_up(whole, as->announced_as, maker, connect_nanoseconds(), key, &late, &why);
    us_require(call, found || !late, "ranks", "late", HCCL_E_TIMEOUT, "%s: %s", as->name, why.text);
    us_require(call, found, "ranks", "lost", HCCL_E_TCP_CONNECT, "%s: %s", as->name, why.text);
}

static void join_part(Call *call, Room *whole, Communicator *as, uint32_t ranks, const uint32_t *ids, uint32_t rank,
                      const HcclCommConfig *config, HcclComm *comm)
{
    uint64_t key = 0;
    HcclComm made = NULL;
    as->announced_as = number_of_part(as, ranks, ids);
    as->found = rank != 0;
    if (rank == 0) {
        open_room(call, &key);
        as->announced_in = call->status == 0 && us_room_announce(whole, as->announced_as, key) ? whole : NULL;
        us_require(call, as->announced_in != NULL, "subComm", "resources", HCCL_E_MEMORY,
                   "too many communicators are being made of comm at once");
    } else {
        look_up(call, whole, as, (int32_t)ids[0], &key);
    }
    join(call, key, as, (int32_t)ranks, (int32_t)rank, config, &made);
    if (call->status == 0) {
        hccl_gather(call, made);
    } else {
        take_back(as);
    }
    if (call->status == 0) {
        *comm = made;
    }
}

HcclResult HcclCreateSubCommConfig(HcclComm *comm, uint32_t rankNum, uint32_t *rankIds, uint64_t subCommId,
                                   uint32_t subCommRankId, HcclCommConfig *config, HcclComm *subComm)
{
    static const uint64_t NO_PART = 0xffffffff;
    Call call = us_call_begin("HcclCreateSubCommConfig");
    us_require(&call, comm != NULL, "comm", "null", HCCL_E_PTR, "comm is NULL");
    Communicator *whole = call.status == 0 ? hccl_require_communicator(&call, *comm) : NULL;
    if (whole == NULL || (rankIds == NULL && subCommId == NO_PART)) {
        return (HcclResult)us_call_end(&call);
    }
    us_require(&call, subComm != NULL, "subComm", "null", HCCL_E_PTR, "subComm is NULL");
    require_part(&call, whole, rankNum, rankIds, subCommRankId);
    require_config(&call, config);
    Communicator as = {.device = whole->device};
    if (call.status == 0) {
        set_name(&as, name_in(config));
        if (as.name[0] == '\0') {
            const size_t length = strnlen(whole->name, sizeof as.name / 2);
            snprintf(as.name, sizeof as.name, "%.*s_sub_%llu", (int)length, whole->name, (unsigned long long)subCommId);
        }
        join_part(&call, whole->room, &as, rankNum, rankIds, subCommRankId, config, subComm);
    }
    return (HcclResult)us_call_end(&call);
}

/* ---- destroyed ---- */

Communicator *hccl_require_communicator(Call *call, HcclComm comm)
{
    us_require(call, comm != NULL, "comm", "null", HCCL_E_PTR, "comm is NULL");
    Communicator *found = call->status == 0 ? us_handle_object(comm, HANDLE_COMMUNICATOR) : NULL;
    us_require(call, found != NULL, "comm", "dead", HCCL_E_PARA, "communicator %p has been destroyed, or never existed", comm);
    return call->status == 0 ? found : NULL;
}

HcclResult HcclCommDestroy(HcclComm comm)
{
    Call call = us_call_begin("HcclCommDestroy");
    Communicator *found = hccl_require_communicator(&call, comm);
    Room *room = found != NULL ? found->room : NULL;
    us_require(&call, atomic_load(&room->busy) == 0 || us_room_has_failed(room, NULL), "comm", "busy", HCCL_E_AGAIN,
               "operations of %s are queued or run: synchronize their streams first", found->name);
    us_require(&call, us_handle_release(comm, HANDLE_COMMUNICATOR), "comm", "dead", HCCL_E_PARA,
               "communicator %p has just been destroyed by another thread", comm);
    if (call.status == 0) {
        take_back(found);
        end_room(room);
    }
    return (HcclResult)us_call_end(&call);
}
