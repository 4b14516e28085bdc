/* Operators on lists of tensors, which move bytes: tensorarrayread (ft-dsp 4). */
#include "ftdsp/operators.h"

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
    ft_operand(call, "handle_data", handle_data[index], bytes, DTYPE_INT8);
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
