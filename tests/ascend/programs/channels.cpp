// Tensors through a channel, and a route between two queues. acl_tdt.h is for C++ only.
#include "acl/acl_tdt.h"
#include "acl/acl_tdt_queue.h"
#include "program.h"

static void channel()
{
    float numbers[] = {1, 2, 3, 4};
    const int64_t dims[] = {1, 4};
    size_t waiting[2];
    acltdtChannelHandle *made = acltdtCreateChannelWithCapacity(0, "numbers", 2);
    acltdtDataItem *item = acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, dims, 2, ACL_FLOAT, numbers, sizeof numbers);
    acltdtDataset *sent = acltdtCreateDataset(), *received = acltdtCreateDataset();
    OK(acltdtAddDataItem(sent, item));
    OK(acltdtSendTensor(made, sent, 1000));
    OK(acltdtQueryChannelSize(made, &waiting[0]));
    OK(acltdtReceiveTensor(made, received, 1000));
    OK(acltdtQueryChannelSize(made, &waiting[1]));
    const acltdtDataItem *arrived = acltdtGetDataItem(received, 0);
    const float *first = static_cast<const float *>(acltdtGetDataAddrFromItem(arrived));
    printf("channel %zu %zu %zu %g\n", waiting[0], waiting[1], acltdtGetDataSizeFromItem(arrived), first[3]);
    OK(acltdtSendTensor(made, sent, 1000));
    OK(acltdtSendTensor(made, sent, 0));
    printf("full %d\n", acltdtSendTensor(made, sent, 0));
    OK(acltdtDestroyDataItem(item));
    OK(acltdtDestroyDataset(sent));
    OK(acltdtDestroyDataset(received));
    OK(acltdtStopChannel(made));
    OK(acltdtCleanChannel(made));
    OK(acltdtDestroyChannel(made));
}

static uint32_t queue(const char *name)
{
    uint32_t made = 0;
    acltdtQueueAttr *attributes = acltdtCreateQueueAttr();
    OK(acltdtSetQueueAttr(attributes, ACL_TDT_QUEUE_NAME_PTR, sizeof name, &name));
    OK(acltdtCreateQueue(attributes, &made));
    OK(acltdtDestroyQueueAttr(attributes));
    return made;
}

static void route()
{
    const uint32_t from = queue("from"), to = queue("to");
    char text[8] = "";
    size_t size = 0;
    acltdtQueueRoute *one = acltdtCreateQueueRoute(from, to);
    acltdtQueueRouteList *list = acltdtCreateQueueRouteList();
    OK(acltdtAddQueueRoute(list, one));
    OK(acltdtBindQueueRoutes(list));
    OK(acltdtEnqueueData(from, "hello", 6, nullptr, 0, -1, 0));
    OK(acltdtDequeueData(to, text, sizeof text, &size, nullptr, 0, 1000));
    printf("route %zu %zu %s\n", acltdtGetQueueRouteNum(list), size, text);
    OK(acltdtUnbindQueueRoutes(list));
    OK(acltdtDestroyQueueRouteList(list));
    OK(acltdtDestroyQueueRoute(one));
    OK(acltdtDestroyQueue(from));
    OK(acltdtDestroyQueue(to));
}

int main()
{
    OK(aclInit(nullptr));
    OK(aclrtSetDevice(0));
    channel();
    route();
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    return 0;
}
