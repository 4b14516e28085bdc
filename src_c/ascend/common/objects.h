/* What is behind aclTensor *, aclScalar *, the arrays and the lists. The handles are tagged numbers
 * (device/handles.h), the objects plain host memory; libnnopbase makes and ends them, the operator libraries read
 * them. */
#ifndef ASCEND_OBJECTS_H
#define ASCEND_OBJECTS_H

#include "aclnn/acl_meta.h"
#include "device/handles.h"
#include "tensor/view.h"

enum {
    HANDLE_TENSOR = 0x10,
    HANDLE_SCALAR = 0x11,
    HANDLE_INT_ARRAY = 0x12,
    HANDLE_FLOAT_ARRAY = 0x13,
    HANDLE_BOOL_ARRAY = 0x14,
    HANDLE_TENSOR_LIST = 0x15,
    HANDLE_SCALAR_LIST = 0x16,
    HANDLE_EXECUTOR = 0x17,
    HANDLE_COMMUNICATOR = 0x2a,
};

typedef struct Shape {
    int32_t rank;
    int64_t sizes[VIEW_RANK_LIMIT];
} Shape;

typedef struct Tensor {
    aclDataType dtype;
    aclFormat format;
    int64_t offset; /* elements from `address` to the first element of the view */
    void *address;  /* as the program gave it */
    Shape view;
    Shape storage;
    int64_t strides[VIEW_RANK_LIMIT];
} Tensor;

typedef struct Scalar {
    aclDataType dtype;
    _Alignas(16) unsigned char value[16];
} Scalar;

/* An int, float or bool array (the handle's kind tells), or a list: then the elements are handles. */
typedef struct Array {
    uint64_t size;
    _Alignas(16) unsigned char elements[];
} Array;

#endif
