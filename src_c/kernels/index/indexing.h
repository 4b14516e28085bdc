/* Elements of a tensor that index tensors name, as NumPy's and PyTorch's advanced indexing, gather and scatter: read,
 * replaced, added to, multiplied.
 *
 * A call goes over positions. Position p names the element sum(p[d] * steps[d]) + sum(index_k[p] * axes[k].stride) of
 * the tensor; the other operand and the index tensors are seen with the positions' shape (stride 0 where they repeat).
 *
 * views: before, tensor, other, one view for each index tensor. `before`, if given, is copied to the tensor first.
 * `other` receives what is read and gives what is written; absent: `value` is written.
 *
 * Indices outside an axis are a fault that names the index; nothing is read or written there. Of several positions
 * that name one element the last one stays; sums and products are formed in order in the wide type and round once. */
#ifndef UNDERSTUDY_INDEXING_H
#define UNDERSTUDY_INDEXING_H

#include "kernels/kernels.h"
#include "tensor/number.h"

typedef enum IndexAction { INDEX_READ, INDEX_PUT, INDEX_ADD, INDEX_MULTIPLY } IndexAction;
enum { INDEX_LIMIT = 8 };

typedef struct IndexedAxis {
    int64_t size, stride; /* of the tensor */
} IndexedAxis;

typedef struct Indexing {
    IndexAction action;
    bool from_end; /* negative indices count from the end, else they are outside */
    bool scales;   /* INDEX_ADD: other * value is added */
    bool clears;   /* the tensor becomes 0 first */
    Number value;
    int32_t rank; /* of the positions */
    int64_t shape[VIEW_RANK_LIMIT], steps[VIEW_RANK_LIMIT];
    int32_t index_count, axis_count;
    /* 0: integers, for one axis. Else a bool mask of that rank with a shape of its own: the coordinates of its true
     * elements index as many axes, along position axis `mask_axis`, whose size they decide (shape there: that of
     * other, or 1). */
    int32_t mask_rank[INDEX_LIMIT];
    int32_t mask_axis;
    IndexedAxis axes[INDEX_LIMIT];
} Indexing;
Kernel us_indexing;

/* INDEX_PUT of the value at indices that come with the call, along one axis. views: before, tensor. */
typedef struct IndexFill {
    Indexing call;
    int32_t axis; /* of the positions */
    int64_t count, index[];
} IndexFill;
Kernel us_index_fill;

/* The same at the indices of a view of rank 0 or 1; those outside the axis are left out. views: before, tensor, index. */
Kernel us_index_fill_inside;

/* The same on the tensor's elements in row-major order, whatever its strides: `steps` and `axes` count those. `other` may
 * have another shape of as many elements, in their order. views: as us_indexing. */
Kernel us_flat_indexing;

/* ---- for kernels of this folder ---- */

/* One axis that one index view of the positions' shape indexes. */
typedef struct PlaceAxis {
    IndexedAxis axis;
    View index;
} PlaceAxis;

/* A call with masks resolved. */
typedef struct Places {
    const Indexing *call;
    View tensor, other; /* both in the positions' shape; the tensor's strides are the steps */
    View before, target; /* without gaps and of one type: `before` is copied to the tensor itself first; or absent */
    int32_t count;
    PlaceAxis axes[INDEX_LIMIT];
} Places;

/* tensor (+)= other, in order; the elements of each target by one thread. */
KernelStatus us_accumulate_places(const Places *places);

#endif
