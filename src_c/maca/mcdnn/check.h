/* The checks that the library's functions share. All are sticky: after the first refusal the later ones do nothing, so
 * results of earlier checks may be used without testing them. Statuses: mcdnn 6.0; order: NULL, ranges, BAD_PARAM,
 * NOT_SUPPORTED (6.0.8). */
#ifndef MCDNN_CHECK_H
#define MCDNN_CHECK_H

#include "descriptors.h"
#include "launch/launch.h"

/* handle/alive */
const Dnn *check_handle(Call *call, mcdnnHandle_t handle);

/* parameter/alive, parameter/set */
const Tensor *check_tensor(Call *call, const char *parameter, mcdnnTensorDescriptor_t descriptor);

/* activationDesc/alive, activationDesc/set */
const ActivationDescriptor *check_activation(Call *call, mcdnnActivationDescriptor_t activationDesc);

/* parameter/null */
void check_given(Call *call, const char *parameter, const void *pointer);

/* parameter/null, parameter/device: what the library reads on the host, such as a scaling factor */
void check_on_host(Call *call, const char *parameter, const void *pointer);

/* parameter/range: an enumeration or number outside lowest … highest */
void check_range(Call *call, const char *parameter, int64_t value, int64_t lowest, int64_t highest);

/* parameter/sizes, parameter/strides, parameter/type: `tensor` is unlike `model`, which belongs to `model_parameter` */
void check_same_sizes(Call *call, int32_t status, const char *parameter, const Tensor *tensor,
                      const char *model_parameter, const Tensor *model);
void check_same_strides(Call *call, int32_t status, const char *parameter, const Tensor *tensor,
                        const char *model_parameter, const Tensor *model);
void check_same_type(Call *call, int32_t status, const char *parameter, const Tensor *tensor,
                     const char *model_parameter, const Tensor *model);

/* parameter/in-place: output and input are one pointer, and their strides differ */
void check_in_place(Call *call, const char *parameter, const void *output, const Tensor *output_tensor,
                    const void *input, const Tensor *input_tensor);

/* parameter/unsupported-type: not HALF, BFLOAT16, FLOAT or DOUBLE (NOT_SUPPORTED) */
void check_float_type(Call *call, const char *parameter, const Tensor *tensor);

/* The same, and INT8, or INT8x4 in NCHW_VECT_C if `vectors`, are supported too */
void check_float_or_int8(Call *call, const char *parameter, const Tensor *tensor, bool vectors);

/* parameter/packed-space: more than 5 dimensions, and the spatial ones are not packed (NOT_SUPPORTED) */
void check_packed_space(Call *call, const char *parameter, const Tensor *tensor);

/* parameter/overlap: two elements of a tensor that is written may lie at one address (NOT_SUPPORTED). Sorted by stride,
 * each dimension must step over all of those before it: dimensions that interleave count as overlapping. */
void check_apart(Call *call, const char *parameter, const Tensor *tensor);

/* parameter/negative-stride, parameter/overlap */
void check_steps(Call *call, int32_t status, const char *parameter, const Tensor *tensor);

/* parameter/packed-planes: 5 dimensions whose last three are not packed (BAD_PARAM) */
void check_packed_planes(Call *call, const char *parameter, const Tensor *tensor);

/* ---- operands and their rules as a table ---- */

/* A tensor of a call: its descriptor and its data, each under its name in the prototype. */
typedef struct Operand {
    const char *shape_name;
    mcdnnTensorDescriptor_t shape;
    const char *name;
    const void *data;
    const Tensor *tensor; /* from check_operands on */
} Operand;

static inline Operand operand(const char *shape_name, mcdnnTensorDescriptor_t shape, const char *name, const void *data)
{
    return (Operand){.shape_name = shape_name, .shape = shape, .name = name, .data = data};
}

/* The descriptors; the data pointers. */
void check_shapes(Call *call, Operand *operands, int count);
void check_pointers(Call *call, const Operand *operands, int count);

/* The descriptors, alpha and beta, then the data pointers. */
void check_operands(Call *call, const void *alpha, const void *beta, Operand *operands, int count);

/* The checks above by their names (FLOAT_OR_BYTES: INT8, and vectors of it in images); `like`: the operand that another
 * one is compared with. */
typedef enum TensorCheck {
    SAME_SIZES, SAME_STRIDES, SAME_TYPE, IN_PLACE, FLOAT_TYPE, FLOAT_OR_INT8, FLOAT_OR_BYTES, PACKED_SPACE, PACKED_PLANES,
    STEPS, APART
} TensorCheck;

typedef struct TensorRule {
    TensorCheck check;
    int operand, like;
} TensorRule;

/* In the order of the table. `status`: of operands that are not the same, and of STEPS. */
void check_rules(Call *call, int32_t status, const Operand *operands, const TensorRule *rules, int count);

/* A size of an output as a query gives it: the largest int where it is more. */
static inline int size_given(int64_t size)
{
    return size > INT32_MAX ? INT32_MAX : (int)size;
}

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof *(array)))

/* A scaling factor: a host pointer to a float, or to a double when the destination is DOUBLE (mcdnn 6.0.1). */
double scaling_factor(const void *factor, const Tensor *destination);

/* Adds an array of bytes. */
void launch_bytes(Launch *launch, const char *parameter, const void *data, size_t bytes, ViewAccess access);

/* Adds the tensor at a device address to the launch, seen with at least `rank` dimensions. */
void launch_tensor(Launch *launch, const char *parameter, const Tensor *tensor, const void *data, int32_t rank);
/* The same for a tensor that is written, and read before unless beta is 0. */
void launch_output(Launch *launch, const char *parameter, const Tensor *tensor, const void *data, int32_t rank,
                   double beta);

/* A tensor, or an absent view where there is no data. */
void launch_optional(Launch *launch, const char *parameter, const Tensor *tensor, const void *data, int32_t rank);

/* The same of an operand. */
void launch_operand(Launch *launch, const Operand *operand, int32_t rank);
void launch_result(Launch *launch, const Operand *operand, int32_t rank, const void *beta);

/* Queues the launch on the handle's stream, unless the call was refused: handle/launch (EXECUTION_FAILED). */
void submit(Call *call, const Dnn *dnn, const Launch *launch);
void submit_task(Call *call, const Dnn *dnn, const LaunchTask *task);

/* The kernel as the launch's, queued: the end of a call. */
mcdnnStatus_t run_kernel(Call *call, const Dnn *dnn, Launch *launch, Kernel *kernel, const void *attributes,
                         size_t size);

#endif
