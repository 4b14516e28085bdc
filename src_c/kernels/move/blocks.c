#include "kernels/move/blocks.h"

#include "kernels/move/copy_view.h"

/* Part of a tensor and of its blocks, both with the axes of the memory: of a cut axis whole blocks, or what follows them. */
typedef struct Part {
    View tensor, memory;
} Part;

static void cut(Part *part, int32_t axis, const BlockedAxis *how, int64_t size, bool rest)
{
    const int64_t whole = size / how->block, begin = rest ? whole : 0;
    const int64_t element = (int64_t)us_dtype_size(part->tensor.dtype), stride = part->tensor.strides[axis];
    int64_t count = rest ? size % how->block : how->block;
    if (!how->inside) {
        part->tensor.data = (char *)part->tensor.data + begin * how->block * stride * element;
        part->memory.data = (char *)part->memory.data + begin * part->memory.strides[axis] * element;
        part->tensor.strides[axis] = stride * how->block;
        count = rest ? 1 : whole;
    }
    part->tensor.shape[axis] = part->memory.shape[axis] = count;
}

/* `rests`: bits of the tensor's axes of which the part is what follows the whole blocks. */
static Part part_of(const View *tensor, const View *memory, const Blocks *blocks, uint32_t rests)
{
    Part part = {*tensor, *memory};
    part.tensor.rank = memory->rank;
    for (int32_t axis = 0; axis < memory->rank; axis++) {
        const BlockedAxis *how = &blocks->axes[axis];
        part.tensor.shape[axis] = part.memory.shape[axis] = tensor->shape[how->axis];
        part.tensor.strides[axis] = tensor->strides[how->axis];
        if (how->block > 0) {
            cut(&part, axis, how, tensor->shape[how->axis], (rests >> how->axis & 1) != 0);
        }
    }
    return part;
}

static uint32_t axes_with_rests(const View *tensor, const View *memory, const Blocks *blocks)
{
    uint32_t axes = 0;
    for (int32_t axis = 0; axis < memory->rank; axis++) {
        const BlockedAxis *how = &blocks->axes[axis];
        axes |= how->block > 0 && tensor->shape[how->axis] % how->block != 0 ? UINT32_C(1) << how->axis : 0;
    }
    return axes;
}

static void copy_parts(const View *tensor, const View *memory, const Blocks *blocks, uint32_t axes, bool into)
{
    uint32_t rests = 0;
    do {
        const Part part = part_of(tensor, memory, blocks, rests);
        us_copy_view(into ? &part.memory : &part.tensor, into ? &part.tensor : &part.memory);
        rests = (rests - axes) & axes; /* the next subset of them */
    } while (rests != 0);
}

KernelStatus us_into_blocks(const View *views, const void *attributes)
{
    const uint32_t axes = axes_with_rests(&views[0], &views[1], attributes);
    if (axes != 0) {
        us_clear_view(&views[1]);
    }
    copy_parts(&views[0], &views[1], attributes, axes, true);
    return KERNEL_OK;
}

KernelStatus us_out_of_blocks(const View *views, const void *attributes)
{
    copy_parts(&views[1], &views[0], attributes, axes_with_rests(&views[1], &views[0], attributes), false);
    return KERNEL_OK;
}
