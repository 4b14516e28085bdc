#include "kernels/quantize/sparse.h"

#include "kernels/pieces.h"
#include "kernels/quantize/product.h"
#include "kernels/scratch.h"

#include <string.h>

enum { X, KEPT, PLACES, OUT, COLUMN_SCALE, ROW_SCALE, BIAS };
enum { OF = 4, PLACE_BITS = 2, PLACES_OF_BYTE = 4, LAST_PLACE = 2 };

typedef struct Expansion {
    const View *views;
    int8_t *to;
    int64_t bad; /* the first row that makes no sense; n: none */
} Expansion;

static void keep_first(int64_t *bad, int64_t row)
{
    int64_t known = __atomic_load_n(bad, __ATOMIC_RELAXED);
    while (row < known && !__atomic_compare_exchange_n(bad, &known, row, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

static void expand_row(void *context, int64_t row)
{
    Expansion *work = context;
    const View *kept = &work->views[KEPT], *places = &work->views[PLACES];
    const int64_t depth = work->views[X].shape[1];
    const int8_t *from = (const int8_t *)kept->data + row * kept->strides[0];
    const uint8_t *bytes = (const uint8_t *)places->data + row * places->strides[0];
    int8_t *to = work->to + row * depth;
    memset(to, 0, (size_t)depth);
    for (int64_t i = 0; i < kept->shape[1]; i++) {
        const int8_t value = from[i * kept->strides[1]];
        const int place = bytes[i / PLACES_OF_BYTE * places->strides[1]] >> i % PLACES_OF_BYTE * PLACE_BITS & 3;
        const int64_t at = i / 2 * OF + i % 2 + place;
        const bool counts = value != 0 && (at < depth || place > LAST_PLACE);
        if (counts && (place > LAST_PLACE || to[at] != 0)) {
            keep_first(&work->bad, row);
        } else if (counts) {
            to[at] = value;
        }
    }
}

static KernelStatus multiply(const View *views, const int8_t *weight)
{
    const int64_t n = views[KEPT].shape[0], k = views[X].shape[1];
    View b = us_view_contiguous((void *)weight, DTYPE_INT8, 2, (const int64_t[]){k, n});
    b.strides[0] = 1;
    b.strides[1] = k;
    const View no = us_view_absent();
    const View operands[] = {views[X], b, views[COLUMN_SCALE], views[OUT], no, views[ROW_SCALE], no, no, views[BIAS]};
    return us_quantized_product(operands, &(QuantizedProduct){.group = INT64_MAX, .scale_columns = 1,
                                                              .packed_a = NOT_PACKED, .packed_b = NOT_PACKED});
}

KernelStatus us_sparse_product(const View *views, const void *attributes)
{
    (void)attributes;
    const int64_t n = views[KEPT].shape[0], count = us_scratch_count(n, views[X].shape[1]);
    Expansion work = {views, us_scratch_array(count, 1), n};
    if (work.to == NULL) {
        return KERNEL_NO_MEMORY;
    }
    run_pieces(n, count, expand_row, &work);
    const KernelStatus status = work.bad < n ? us_kernel_fault("row %lld of the weight has a place above 2, or two numbers "
                                                               "in one", (long long)work.bad)
                                             : multiply(views, work.to);
    us_scratch_give_back(work.to);
    return status;
}
