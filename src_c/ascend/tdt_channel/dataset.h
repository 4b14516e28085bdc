/* Tensors on their way, and lists of them. */
#ifndef ASCEND_TDT_DATASET_H
#define ASCEND_TDT_DATASET_H

#include "ascend/tdt_channel/tdt.h"

typedef struct DataItem {
    void *handle;
    acltdtTensorType type;
    aclDataType dtype;
    void *data; /* the program's; of a received item: its own */
    size_t size, rank;
    bool owned;
    int64_t *dims; /* behind the item */
} DataItem;

typedef struct Dataset {
    void *handle;
    char *name; /* of the channel that it came from last; NULL: none */
    size_t count, capacity;
    void **items; /* handles: a program may destroy an item before its dataset */
} Dataset;

/* An item with a copy of the bytes of another one; it has no handle yet. NULL: no memory. */
DataItem *tdt_copy_item(const DataItem *item, const void *bytes);
void tdt_end_item(DataItem *item);
/* False: no memory. */
bool tdt_add_item(Dataset *dataset, void *item);

#endif
