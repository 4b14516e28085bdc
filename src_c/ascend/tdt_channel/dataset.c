#include "ascend/tdt_channel/dataset.h"
#include "report/grow.h"

#include <stdlib.h>
#include <string.h>

/* ---- items ---- */

static DataItem *new_item(size_t rank)
{
    DataItem *item = rank <= SIZE_MAX / 16 ? calloc(1, sizeof *item + rank * sizeof(int64_t)) : NULL;
    if (item != NULL) {
        item->rank = rank;
        item->dims = (int64_t *)(item + 1);
    }
    return item;
}

DataItem *tdt_copy_item(const DataItem *item, const void *bytes)
{
    DataItem *copy = new_item(item->rank);
    void *data = copy != NULL ? malloc(item->size > 0 ? item->size : 1) : NULL;
    if (data == NULL) {
        free(copy);
        return NULL;
    }
    int64_t *dims = copy->dims;
    *copy = *item;
    copy->dims = dims;
    if (item->rank > 0) {
        memcpy(dims, item->dims, item->rank * sizeof *dims);
    }
    if (item->size > 0) {
        memcpy(data, bytes, item->size);
    }
    copy->handle = NULL;
    copy->data = data;
    copy->owned = true;
    return copy;
}

static void bury_item(void *object)
{
    DataItem *item = object;
    if (item->owned) {
        free(item->data);
    }
    free(item);
}

void tdt_end_item(DataItem *item)
{
    if (item->handle == NULL) {
        bury_item(item);
    } else if (us_handle_end(item->handle, HANDLE_DATA_ITEM) != NULL) {
        us_grace_bury(bury_item, item);
    }
}

acltdtDataItem *acltdtCreateDataItem(acltdtTensorType tdtType, const int64_t *dims, size_t dimNum, aclDataType dataType,
                                     void *data, size_t size)
{
    Call call = us_call_begin("acltdtCreateDataItem");
    us_require(&call, dims != NULL || dimNum == 0, "dims", "null", ACL_ERROR_INVALID_PARAM,
               "dims is NULL for %zu dimensions", dimNum);
    us_require(&call, data != NULL || size == 0, "data", "null", ACL_ERROR_INVALID_PARAM, "data is NULL for %zu bytes",
               size);
    DataItem *item = call.status == 0 ? new_item(dimNum) : NULL;
    void *handle = item != NULL ? us_handle_create(HANDLE_DATA_ITEM, item) : NULL;
    us_require(&call, handle != NULL, "item", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for an item");
    if (call.status == 0) {
        item->handle = handle;
        item->type = tdtType;
        item->dtype = dataType;
        item->data = data;
        item->size = size;
        if (dimNum > 0) {
            memcpy(item->dims, dims, dimNum * sizeof *dims);
        }
    } else {
        free(item);
    }
    us_call_end(&call);
    return handle;
}

aclError acltdtDestroyDataItem(acltdtDataItem *dataItem)
{
    Call call = us_call_begin("acltdtDestroyDataItem");
    DataItem *item = tdt_require(&call, "dataItem", dataItem, HANDLE_DATA_ITEM);
    us_require(&call, !item->owned, "dataItem", "owned", ACL_ERROR_INVALID_PARAM,
               "the item was received, and belongs to its dataset");
    if (call.status == 0) {
        tdt_end_item(item);
    }
    return us_call_end(&call);
}

/* Getters answer with nothing for what is no item; they refuse nothing. */
static DataItem item_of(const acltdtDataItem *handle)
{
    static const DataItem none = {.type = ACL_TENSOR_DATA_UNDEFINED, .dtype = ACL_DT_UNDEFINED};
    us_grace_enter();
    const DataItem *item = us_handle_object(handle, HANDLE_DATA_ITEM);
    DataItem copy = item != NULL ? *item : none;
    us_grace_leave();
    return copy;
}

acltdtTensorType acltdtGetTensorTypeFromItem(const acltdtDataItem *dataItem)
{
    return item_of(dataItem).type;
}

aclDataType acltdtGetDataTypeFromItem(const acltdtDataItem *dataItem)
{
    return item_of(dataItem).dtype;
}

void *acltdtGetDataAddrFromItem(const acltdtDataItem *dataItem)
{
    return item_of(dataItem).data;
}

size_t acltdtGetDataSizeFromItem(const acltdtDataItem *dataItem)
{
    return item_of(dataItem).size;
}

size_t acltdtGetDimNumFromItem(const acltdtDataItem *dataItem)
{
    return item_of(dataItem).rank;
}

aclError acltdtGetDimsFromItem(const acltdtDataItem *dataItem, int64_t *dims, size_t dimNum)
{
    Call call = us_call_begin("acltdtGetDimsFromItem");
    const DataItem *item = tdt_require(&call, "dataItem", dataItem, HANDLE_DATA_ITEM);
    us_require(&call, dims != NULL || item->rank == 0, "dims", "null", ACL_ERROR_INVALID_PARAM, "dims is NULL");
    us_require(&call, dimNum >= item->rank, "dimNum", "limit", ACL_ERROR_INVALID_PARAM,
               "dimNum is %zu, but the item has %zu dimensions", dimNum, item->rank);
    if (call.status == 0 && item->rank > 0) {
        memcpy(dims, item->dims, item->rank * sizeof *dims);
    }
    return us_call_end(&call);
}

aclError acltdtGetSliceInfoFromItem(const acltdtDataItem *dataItem, size_t *sliceNum, size_t *sliceId)
{
    Call call = us_call_begin("acltdtGetSliceInfoFromItem");
    us_require(&call, sliceNum != NULL && sliceId != NULL, "sliceNum", "null", ACL_ERROR_INVALID_PARAM,
               "sliceNum or sliceId is NULL");
    tdt_require(&call, "dataItem", dataItem, HANDLE_DATA_ITEM);
    if (call.status == 0) {
        *sliceNum = 1; /* nothing is cut here */
        *sliceId = 0;
    }
    return us_call_end(&call);
}

/* ---- datasets; one thread at a time uses one ---- */

static void bury_dataset(void *object)
{
    Dataset *dataset = object;
    free(dataset->items);
    free(dataset->name);
    free(dataset);
}

acltdtDataset *acltdtCreateDataset(void)
{
    Call call = us_call_begin("acltdtCreateDataset");
    Dataset *dataset = calloc(1, sizeof *dataset);
    void *handle = dataset != NULL ? us_handle_create(HANDLE_DATASET, dataset) : NULL;
    us_require(&call, handle != NULL, "dataset", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a dataset");
    if (handle != NULL) {
        dataset->handle = handle;
    } else {
        free(dataset);
    }
    us_call_end(&call);
    return handle;
}

aclError acltdtDestroyDataset(acltdtDataset *dataset)
{
    Call call = us_call_begin("acltdtDestroyDataset");
    Dataset *found = tdt_require(&call, "dataset", dataset, HANDLE_DATASET);
    tdt_require_end(&call, "dataset", dataset, HANDLE_DATASET);
    if (call.status == 0) {
        for (size_t i = 0; i < found->count; i++) {
            DataItem *item = us_handle_object(found->items[i], HANDLE_DATA_ITEM);
            if (item != NULL && item->owned) {
                tdt_end_item(item);
            }
        }
        us_grace_bury(bury_dataset, found);
    }
    return us_call_end(&call);
}

bool tdt_add_item(Dataset *dataset, void *item)
{
    void **items = us_grown(dataset->items, dataset->count, &dataset->capacity, sizeof *items);
    if (items == NULL) {
        return false;
    }
    dataset->items = items;
    dataset->items[dataset->count++] = item;
    return true;
}

aclError acltdtAddDataItem(acltdtDataset *dataset, acltdtDataItem *dataItem)
{
    Call call = us_call_begin("acltdtAddDataItem");
    Dataset *found = tdt_require(&call, "dataset", dataset, HANDLE_DATASET);
    DataItem *item = tdt_require(&call, "dataItem", dataItem, HANDLE_DATA_ITEM);
    us_require(&call, !item->owned, "dataItem", "owned", ACL_ERROR_INVALID_PARAM,
               "the item was received, and belongs to its dataset");
    us_require(&call, tdt_add_item(found, dataItem), "dataset", "memory", ACL_ERROR_BAD_ALLOC,
               "no host memory for another item");
    return us_call_end(&call);
}

acltdtDataItem *acltdtGetDataItem(const acltdtDataset *dataset, size_t index)
{
    us_grace_enter();
    const Dataset *found = us_handle_object(dataset, HANDLE_DATASET);
    void *item = found != NULL && index < found->count ? found->items[index] : NULL;
    us_grace_leave();
    return item;
}

size_t acltdtGetDatasetSize(const acltdtDataset *dataset)
{
    us_grace_enter();
    const Dataset *found = us_handle_object(dataset, HANDLE_DATASET);
    size_t count = found != NULL ? found->count : 0;
    us_grace_leave();
    return count;
}

const char *acltdtGetDatasetName(const acltdtDataset *dataset)
{
    us_grace_enter();
    const Dataset *found = us_handle_object(dataset, HANDLE_DATASET);
    const char *name = found == NULL ? NULL : found->name != NULL ? found->name : "";
    us_grace_leave();
    return name;
}
