/* Routes from one queue to another (cann-runtime-3 17). */
#include "ascend/tdt_queue/queue.h"
#include "report/grow.h"

#include <stdlib.h>
#include <string.h>

typedef struct Route {
    uint32_t source, destination;
    int32_t status;
    bool seen; /* by leads_to */
} Route;

typedef struct RouteList {
    size_t count, capacity;
    Route *routes;
} RouteList;

typedef struct RouteQuery {
    int32_t mode;
    uint32_t source, destination;
} RouteQuery;

static RouteList bound; /* of the process; with the lock of the queues held */

acltdtQueueRoute *acltdtCreateQueueRoute(uint32_t srcId, uint32_t dstId)
{
    Call call = us_call_begin("acltdtCreateQueueRoute");
    Route initial = {.source = srcId, .destination = dstId, .status = ACL_TDT_QUEUE_ROUTE_UNBIND};
    void *handle = us_handle_new(HANDLE_QUEUE_ROUTE, &initial, sizeof initial);
    us_require(&call, handle != NULL, "route", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a route");
    us_call_end(&call);
    return handle;
}

aclError acltdtDestroyQueueRoute(const acltdtQueueRoute *route)
{
    Call call = us_call_begin("acltdtDestroyQueueRoute");
    tdt_release(&call, "route", route, HANDLE_QUEUE_ROUTE);
    return us_call_end(&call);
}

aclError acltdtGetQueueRouteParam(const acltdtQueueRoute *route, acltdtQueueRouteParamType type, size_t len,
                                  size_t *paramRetSize, void *param)
{
    static const size_t sizes[] = {sizeof(uint32_t), sizeof(uint32_t), sizeof(int32_t)};
    Call call = us_call_begin("acltdtGetQueueRouteParam");
    us_require(&call, param != NULL, "param", "null", ACL_ERROR_INVALID_PARAM, "param is NULL");
    us_require(&call, paramRetSize != NULL, "paramRetSize", "null", ACL_ERROR_INVALID_PARAM, "paramRetSize is NULL");
    const Route *found = tdt_require(&call, "route", route, HANDLE_QUEUE_ROUTE);
    tdt_require_size(&call, (int)type, sizes, 3, len);
    if (call.status == 0) {
        const void *parts[] = {&found->source, &found->destination, &found->status};
        memcpy(param, parts[type], len);
        *paramRetSize = len;
    }
    return us_call_end(&call);
}

static bool append(RouteList *list, Route route)
{
    Route *routes = us_grown(list->routes, list->count, &list->capacity, sizeof *routes);
    if (routes == NULL) {
        return false;
    }
    list->routes = routes;
    list->routes[list->count++] = route;
    return true;
}

acltdtQueueRouteList *acltdtCreateQueueRouteList(void)
{
    Call call = us_call_begin("acltdtCreateQueueRouteList");
    void *handle = us_handle_new(HANDLE_QUEUE_ROUTES, &(RouteList){0}, sizeof(RouteList));
    us_require(&call, handle != NULL, "routeList", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a list");
    us_call_end(&call);
    return handle;
}

static void bury_list(void *object)
{
    RouteList *list = object;
    free(list->routes);
    free(list);
}

aclError acltdtDestroyQueueRouteList(const acltdtQueueRouteList *routeList)
{
    Call call = us_call_begin("acltdtDestroyQueueRouteList");
    RouteList *list = tdt_require(&call, "routeList", routeList, HANDLE_QUEUE_ROUTES);
    tdt_require_end(&call, "routeList", routeList, HANDLE_QUEUE_ROUTES);
    if (call.status == 0) {
        us_grace_bury(bury_list, list);
    }
    return us_call_end(&call);
}

aclError acltdtAddQueueRoute(acltdtQueueRouteList *routeList, const acltdtQueueRoute *route)
{
    Call call = us_call_begin("acltdtAddQueueRoute");
    RouteList *list = tdt_require(&call, "routeList", routeList, HANDLE_QUEUE_ROUTES);
    const Route *found = tdt_require(&call, "route", route, HANDLE_QUEUE_ROUTE);
    us_require(&call, append(list, *found), "routeList", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a route");
    return us_call_end(&call);
}

aclError acltdtGetQueueRoute(const acltdtQueueRouteList *routeList, size_t index, acltdtQueueRoute *route)
{
    Call call = us_call_begin("acltdtGetQueueRoute");
    const RouteList *list = tdt_require(&call, "routeList", routeList, HANDLE_QUEUE_ROUTES);
    Route *found = tdt_require(&call, "route", route, HANDLE_QUEUE_ROUTE);
    us_require(&call, index < list->count, "index", "range", ACL_ERROR_INVALID_PARAM,
               "index is %zu; the list has %zu routes", index, list->count);
    if (call.status == 0) {
        *found = list->routes[index];
    }
    return us_call_end(&call);
}

size_t acltdtGetQueueRouteNum(const acltdtQueueRouteList *routeList)
{
    us_grace_enter();
    const RouteList *list = us_handle_object(routeList, HANDLE_QUEUE_ROUTES);
    size_t count = list != NULL ? list->count : 0;
    us_grace_leave();
    return count;
}

/* ---- binding; with the lock held ---- */

static size_t find_bound(const Route *route)
{
    size_t at = 0;
    while (at < bound.count &&
           (bound.routes[at].source != route->source || bound.routes[at].destination != route->destination)) {
        at++;
    }
    return at;
}

/* leads_to, by routes that have not been seen. */
static bool leads_on(uint32_t from, uint32_t to)
{
    bool leads = from == to;
    for (size_t i = 0; i < bound.count && !leads; i++) {
        Route *route = &bound.routes[i];
        if (route->source == from && !route->seen) {
            route->seen = true;
            leads = leads_on(route->destination, to);
        }
    }
    return leads;
}

/* Whether data that enter `from` come to `to`. */
static bool leads_to(uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < bound.count; i++) {
        bound.routes[i].seen = false;
    }
    return leads_on(from, to);
}

static void require_bindable(Call *call, const Route *route)
{
    us_require(call, tdt_queue_exists(route->source) && tdt_queue_exists(route->destination), "qRouteList", "queue",
               ACL_ERROR_INVALID_QUEUE_ID, "there is no queue %u, or no queue %u", (unsigned)route->source,
               (unsigned)route->destination);
    us_require(call, !leads_to(route->destination, route->source), "qRouteList", "cycle", ACL_ERROR_INVALID_PARAM,
               "with a route from queue %u to queue %u data would go round for ever", (unsigned)route->source,
               (unsigned)route->destination);
    us_require(call, find_bound(route) == bound.count, "qRouteList", "bound", ACL_ERROR_INVALID_PARAM,
               "the route from queue %u to queue %u is bound already", (unsigned)route->source,
               (unsigned)route->destination);
}

aclError acltdtBindQueueRoutes(acltdtQueueRouteList *qRouteList)
{
    Call call = us_call_begin("acltdtBindQueueRoutes");
    RouteList *list = tdt_require(&call, "qRouteList", qRouteList, HANDLE_QUEUE_ROUTES);
    us_require(&call, list->count > 0, "qRouteList", "empty", ACL_ERROR_INVALID_PARAM, "the list has no route");
    tdt_queues_lock();
    size_t before = bound.count;
    for (size_t i = 0; call.status == 0 && i < list->count; i++) {
        Route route = list->routes[i];
        require_bindable(&call, &route);
        route.status = ACL_TDT_QUEUE_ROUTE_BIND;
        us_require(&call, append(&bound, route), "qRouteList", "memory", ACL_ERROR_BAD_ALLOC,
                   "no host memory for a route");
    }
    if (call.status != 0) {
        bound.count = before; /* all or none */
    }
    for (size_t i = 0; call.status == 0 && i < list->count; i++) {
        list->routes[i].status = ACL_TDT_QUEUE_ROUTE_BIND;
    }
    tdt_queues_unlock();
    return us_call_end(&call);
}

aclError acltdtUnbindQueueRoutes(acltdtQueueRouteList *qRouteList)
{
    Call call = us_call_begin("acltdtUnbindQueueRoutes");
    RouteList *list = tdt_require(&call, "qRouteList", qRouteList, HANDLE_QUEUE_ROUTES);
    tdt_queues_lock();
    for (size_t i = 0; call.status == 0 && i < list->count; i++) {
        us_require(&call, find_bound(&list->routes[i]) < bound.count, "qRouteList", "unbound", ACL_ERROR_INVALID_PARAM,
                   "there is no route from queue %u to queue %u", (unsigned)list->routes[i].source,
                   (unsigned)list->routes[i].destination);
    }
    for (size_t i = 0; call.status == 0 && i < list->count; i++) {
        size_t at = find_bound(&list->routes[i]);
        if (at < bound.count) {
            bound.routes[at] = bound.routes[--bound.count];
        }
        list->routes[i].status = ACL_TDT_QUEUE_ROUTE_UNBIND;
    }
    tdt_queues_unlock();
    return us_call_end(&call);
}

/* ---- for queues ---- */

void tdt_routes_forget(uint32_t id)
{
    for (size_t i = bound.count; i-- > 0;) {
        if (bound.routes[i].source == id || bound.routes[i].destination == id) {
            bound.routes[i] = bound.routes[--bound.count];
        }
    }
}

bool tdt_route_from(uint32_t source, size_t index, uint32_t *destination)
{
    bool found = false;
    tdt_queues_lock();
    for (size_t i = 0; i < bound.count && !found; i++) {
        if (bound.routes[i].source == source && index-- == 0) {
            *destination = bound.routes[i].destination;
            found = true;
        }
    }
    tdt_queues_unlock();
    return found;
}

/* ---- asking for routes ---- */

acltdtQueueRouteQueryInfo *acltdtCreateQueueRouteQueryInfo(void)
{
    Call call = us_call_begin("acltdtCreateQueueRouteQueryInfo");
    void *handle = us_handle_new(HANDLE_QUEUE_QUERY, &(RouteQuery){0}, sizeof(RouteQuery));
    us_require(&call, handle != NULL, "info", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a query");
    us_call_end(&call);
    return handle;
}

aclError acltdtDestroyQueueRouteQueryInfo(const acltdtQueueRouteQueryInfo *info)
{
    Call call = us_call_begin("acltdtDestroyQueueRouteQueryInfo");
    tdt_release(&call, "info", info, HANDLE_QUEUE_QUERY);
    return us_call_end(&call);
}

static bool is_mode(int32_t mode)
{
    return (mode >= ACL_TDT_QUEUE_ROUTE_QUERY_SRC && mode <= ACL_TDT_QUEUE_ROUTE_QUERY_SRC_AND_DST) ||
           mode == ACL_TDT_QUEUE_ROUTE_QUERY_ABNORMAL;
}

aclError acltdtSetQueueRouteQueryInfo(acltdtQueueRouteQueryInfo *param, acltdtQueueRouteQueryInfoParamType type,
                                      size_t len, const void *value)
{
    static const size_t sizes[] = {sizeof(int32_t), sizeof(uint32_t), sizeof(uint32_t)};
    Call call = us_call_begin("acltdtSetQueueRouteQueryInfo");
    us_require(&call, value != NULL, "value", "null", ACL_ERROR_INVALID_PARAM, "value is NULL");
    RouteQuery *query = tdt_require(&call, "param", param, HANDLE_QUEUE_QUERY);
    tdt_require_size(&call, (int)type, sizes, 3, len);
    us_require(&call, type != ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM || is_mode(*(const int32_t *)value), "value", "mode",
               ACL_ERROR_INVALID_PARAM, "the mode is none of 0, 1, 2 and 100");
    if (call.status == 0) {
        void *parts[] = {&query->mode, &query->source, &query->destination};
        memcpy(parts[type], value, len);
    }
    return us_call_end(&call);
}

/* Routes here are never abnormal. */
static bool answers(const RouteQuery *query, const Route *route)
{
    bool source = route->source == query->source;
    bool destination = route->destination == query->destination;
    switch (query->mode) {
    case ACL_TDT_QUEUE_ROUTE_QUERY_SRC:
        return source;
    case ACL_TDT_QUEUE_ROUTE_QUERY_DST:
        return destination;
    case ACL_TDT_QUEUE_ROUTE_QUERY_SRC_AND_DST:
        return source && destination;
    default:
        return false;
    }
}

aclError acltdtQueryQueueRoutes(const acltdtQueueRouteQueryInfo *queryInfo, acltdtQueueRouteList *qRouteList)
{
    Call call = us_call_begin("acltdtQueryQueueRoutes");
    const RouteQuery *query = tdt_require(&call, "queryInfo", queryInfo, HANDLE_QUEUE_QUERY);
    RouteList *list = tdt_require(&call, "qRouteList", qRouteList, HANDLE_QUEUE_ROUTES);
    tdt_queues_lock();
    for (size_t i = 0; call.status == 0 && i < bound.count; i++) {
        us_require(&call, !answers(query, &bound.routes[i]) || append(list, bound.routes[i]), "qRouteList", "memory",
                   ACL_ERROR_BAD_ALLOC, "no host memory for a route");
    }
    tdt_queues_unlock();
    return us_call_end(&call);
}
