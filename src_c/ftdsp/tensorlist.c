/* Operators on lists of tensors, which move bytes: tensorarrayread and tensorliststack (ft-dsp 4). */
#include "ftdsp/operators.h"
#include "ftdsp/shape.h"
#include "tensorliststack.h"

#include <string.h>

enum { COPY_GRAIN = 4096 };

typedef struct Copy {
    const char *from;
    char *to;
} Copy;

static void run_copy(void *context, int64_t begin, int64_t end)
{
    const Copy *copy = context;
    memcpy(copy->to + begin, copy->from + begin, (size_t)(end - begin));
}

void ft_tensorarrayread(FtCall *call, const void *const *handle_data, const int *handle_size, int index,
                        void *output_data, int *output_size)
{
    ft_require(call, index >= 0, "index", "negative", FT_BAD_ATTRIBUTE, "index is %d", index);
    ft_require(call, handle_data, "handle_data", "table", FT_BAD_POINTER, "handle_data is NULL");
    ft_require(call, handle_size, "handle_size", "null", FT_BAD_POINTER, "handle_size is NULL");
    if (!ft_ok(call)) {
        return;
    }
    const int64_t bytes = handle_size[index];
    ft_require(call, bytes >= 0, "handle_size", "negative", FT_BAD_SIZE, "handle_size[%d] is %lld", index,
               (long long)bytes);
    ft_entry(call, "handle_data", index, handle_data[index], bytes, DTYPE_INT8);
    ft_operand(call, "output_data", output_data, bytes, DTYPE_INT8);
    ft_operand(call, "output_size", output_size, 1, DTYPE_INT32);
    ft_apart(call, "output_data", output_data, bytes, "handle_data", handle_data[index], bytes);
    ft_apart(call, "output_size", output_size, sizeof *output_size, "handle_data", handle_data[index], bytes);
    ft_apart(call, "output_size", output_size, sizeof *output_size, "output_data", output_data, bytes);
    if (ft_ok(call)) {
        Copy copy = {handle_data[index], output_data};
        ft_split(call, bytes, COPY_GRAIN, run_copy, &copy);
        *output_size = (int)bytes;
    }
}

typedef struct ListStack {
    const int *element_nums, *data_types;
    const void *const *data;
    char *output;
    int tensor_num, unknown_bytes;
} ListStack;

static int64_t tensor_bytes(const ListStack *work, int tensor)
{
    const int64_t elements = work->element_nums[tensor];
    return work->data_types[tensor] == 0 ? work->unknown_bytes : elements * work->data_types[tensor];
}

/* Bytes begin … end-1 of the output, a core's part: of every tensor what lies between. */
static void run_list_stack(void *context, int64_t begin, int64_t end)
{
    const ListStack *work = context;
    int64_t first = 0; /* of the tensor, in the output */
    for (int tensor = 0; tensor < work->tensor_num && first < end; tensor++) {
        const int64_t behind = first + tensor_bytes(work, tensor);
        const int64_t from = begin > first ? begin : first, to = end < behind ? end : behind;
        if (from < to && work->data_types[tensor] == 0) {
            memset(work->output + from, 0, (size_t)(to - from));
        } else if (from < to) {
            memcpy(work->output + from, (const char *)work->data[tensor] + (from - first), (size_t)(to - from));
        }
        first = behind;
    }
}

/* Checks the sizes, and returns their sum. */
static int64_t list_bytes(FtCall *call, const ListStack *work)
{
    int64_t sum = 0;
    for (int tensor = 0; ft_ok(call) && tensor < work->tensor_num; tensor++) {
        ft_require(call, work->element_nums[tensor] >= 0, "tensor_element_nums", "negative", FT_BAD_SIZE,
                   "tensor %d has %d elements", tensor, work->element_nums[tensor]);
        ft_require(call, work->data_types[tensor] >= 0, "tensor_data_type", "negative", FT_BAD_ATTRIBUTE,
                   "tensor %d has %d bytes per element", tensor, work->data_types[tensor]);
        sum += ft_ok(call) ? tensor_bytes(work, tensor) : 0;
        ft_require(call, sum <= FT_ELEMENT_LIMIT, "output_data", "overflow", FT_BAD_SIZE,
                   "the output has more bytes than any memory holds");
    }
    return sum;
}

static void stack_list(FtCall *call, int tensor_num, const int *tensor_element_nums, const int *tensor_data_type,
                       const void *const *tensor_data, void *output_data, int unknown_type_offset)
{
    ft_length(call, "tensor_num", tensor_num);
    ft_length(call, "unknown_type_offset", unknown_type_offset);
    if (!ft_ok(call) || tensor_num == 0) {
        return;
    }
    ft_require(call, tensor_element_nums, "tensor_element_nums", "null", FT_BAD_POINTER, "tensor_element_nums is NULL");
    ft_require(call, tensor_data_type, "tensor_data_type", "null", FT_BAD_POINTER, "tensor_data_type is NULL");
    ft_require(call, tensor_data, "tensor_data", "table", FT_BAD_POINTER, "tensor_data is NULL");
    ListStack work = {tensor_element_nums, tensor_data_type, tensor_data, output_data, tensor_num, unknown_type_offset};
    const int64_t bytes = list_bytes(call, &work);
    ft_operand(call, "output_data", output_data, bytes, DTYPE_INT8);
    const int64_t sizes_bytes = ft_bytes(tensor_num, DTYPE_INT32);
    ft_apart(call, "output_data", output_data, bytes, "tensor_element_nums", tensor_element_nums, sizes_bytes);
    ft_apart(call, "output_data", output_data, bytes, "tensor_data_type", tensor_data_type, sizes_bytes);
    ft_apart(call, "output_data", output_data, bytes, "the table tensor_data", tensor_data,
             tensor_num * (int64_t)sizeof *tensor_data);
    for (int tensor = 0; ft_ok(call) && tensor < tensor_num; tensor++) {
        if (tensor_data_type[tensor] != 0) {
            const int64_t size = tensor_bytes(&work, tensor);
            ft_entry(call, "tensor_data", tensor, tensor_data[tensor], size, DTYPE_INT8);
            ft_apart(call, "output_data", output_data, bytes, "tensor_data", tensor_data[tensor], size);
        }
    }
    if (ft_ok(call)) {
        ft_split(call, bytes, COPY_GRAIN, run_list_stack, &work);
    }
}

/* The one operator without a prefix, so it is not in a prefix's file; every chip has float32. */
void tensorliststack_s(int tensor_num, int *tensor_element_nums, int *tensor_data_type, void **tensor_data,
                       void *output_data, int unknown_type_offset, int core_mask)
{
    FT_CALL call = ft_shared("tensorliststack_s", DTYPE_FLOAT32, core_mask);
    stack_list(&call, tensor_num, tensor_element_nums, tensor_data_type, (const void *const *)tensor_data,
               output_data, unknown_type_offset);
}
