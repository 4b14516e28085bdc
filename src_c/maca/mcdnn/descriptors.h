/* What stands behind the library's handles, and the checks of one handle. A handle is a tagged number
 * (device/handles.h): a dead, foreign or made-up one is refused without touching memory. */
#ifndef MCDNN_DESCRIPTORS_H
#define MCDNN_DESCRIPTORS_H

#include "device/device.h"
#include "maca/common/handle_kinds.h"
#include "report/report.h"
#include "tensor/view.h"

#include <mcdnn/mcdnn.h>

/* A library handle: the device it was made on and the stream it queues work on, as the program gave it. */
typedef struct Dnn {
    Device *device;
    mcStream_t stream;
} Dnn;

/* A tensor descriptor. Rank 0 until a shape was set. Strides of vector types count vectors of `lanes` channels. */
typedef struct Tensor {
    mcdnnDataType_t type;
    int32_t rank;
    int32_t lanes; /* 1; 4 or 32 for the vector types */
    int64_t sizes[MCDNN_DIM_MAX];
    int64_t strides[MCDNN_DIM_MAX];
} Tensor;

typedef struct ActivationDescriptor {
    bool set;
    mcdnnActivationMode_t mode;
    mcdnnNanPropagation_t nan;
    double coefficient;
    double swish_beta;
} ActivationDescriptor;

enum { POOLING_AXES = 3 }; /* most spatial axes that a pooling window can have */

typedef struct PoolingDescriptor {
    int32_t axes; /* 0 until set */
    mcdnnPoolingMode_t mode;
    mcdnnNanPropagation_t nan;
    int32_t window[POOLING_AXES], padding[POOLING_AXES], stride[POOLING_AXES];
} PoolingDescriptor;

typedef struct DropoutDescriptor {
    float probability;
    void *states; /* NULL until bound */
    unsigned long long seed;
} DropoutDescriptor;

/* "FLOAT", "INT8x4" … for messages. */
const char *type_name(mcdnnDataType_t type);

/* The element type kernels know; DTYPE_NONE for vector and unknown types. */
DType type_dtype(mcdnnDataType_t type);

/* Channels that share one element of a vector type; 1 for the others. */
int32_t type_lanes(mcdnnDataType_t type);

/* "[2,3,4,5]" and the same of the strides, into a buffer that is returned. */
typedef char ShapeText[SHAPE_TEXT_SIZE];
const char *sizes_text(const Tensor *tensor, ShapeText buffer);
const char *strides_text(const Tensor *tensor, ShapeText buffer);

/* The size of one dimension in steps of its stride: channels of vector types go by vectors. */
int64_t tensor_steps(const Tensor *tensor, int32_t axis);

/* Number of elements, without gaps. */
int64_t tensor_elements(const Tensor *tensor);

/* Bytes from the first to behind the last element, gaps included. */
size_t tensor_bytes(const Tensor *tensor);

/* Sets the strides of a packed tensor in the given format; type, lanes and sizes are set. */
void tensor_pack(Tensor *tensor, mcdnnTensorFormat_t format);

/* The tensor at a device address, seen with at least `rank` dimensions (missing ones have size 1). */
View tensor_view(const Tensor *tensor, const void *data, int32_t rank);

/* A tensor of images whose channels are vectors of `lanes`, or split alike: n, vectors, lanes, h, w. */
View tensor_lanes(const Tensor *tensor, const void *data, int32_t lanes);

/* Makes a descriptor with the contents `initial`. NULL after a refusal: parameter/null, parameter/memory. */
void *descriptor_create(Call *call, const char *parameter, const void *result, HandleKind kind, const void *initial,
                        size_t size);

/* Ends a descriptor; NULL is accepted (mcdnn 7.2), anything else that is not alive is parameter/alive. */
void descriptor_destroy(Call *call, const char *parameter, const void *handle, HandleKind kind);

/* Functions that do just this: `place` points to a handle of the kind's type. */
mcdnnStatus_t descriptor_make(const char *function, HandleKind kind, const char *parameter, void *place,
                              const void *initial, size_t size);
mcdnnStatus_t descriptor_end(const char *function, HandleKind kind, const char *parameter, const void *handle);

/* Gives what a program may not want: a place that may be NULL. */
#define GIVE(place, value) ((place) != NULL ? (void)(*(place) = (value)) : (void)0)

/* The object behind a handle. NULL after a refusal: parameter/alive. `what` names the kind: "a tensor descriptor". */
void *descriptor_of(Call *call, const char *parameter, const void *handle, HandleKind kind, const char *what);

#endif
