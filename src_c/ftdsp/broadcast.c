#include "ftdsp/broadcast.h"

#include "kernels/reduce/reductions.h"

View ft_array(const FtCall *call, const void *data, const Shape *shape)
{
    return us_view_contiguous((void *)data, call->dtype, shape->rank, shape->size);
}

void ft_map(FtCall *call, const MapFormula *formula, DType compute, int inputs, const View *views)
{
    const MapCall how = {.formula = formula, .compute = compute,
                         .result = formula->result == MAP_BOOL ? DTYPE_BOOL : compute, .inputs = inputs, .outputs = 1,
                         .items = 1};
    if (ft_ok(call)) {
        ft_finish(call, us_map(views, &how));
    }
}

void ft_sum_to(FtCall *call, View from, View to)
{
    ReduceCall how = {.reduction = &us_reduce_sum, .compute = from.dtype, .result = to.dtype, .outputs = 1};
    for (int d = 0; d < from.rank; d++) {
        how.axes |= (uint32_t)(to.shape[d] != from.shape[d]) << d;
    }
    if (ft_ok(call)) {
        ft_finish(call, us_reduce((const View[]){from, to}, &how));
    }
}
