#include "ftdsp/shape.h"

void ft_rank(FtCall *call, const char *name, int rank, int lowest)
{
    ft_require(call, rank >= lowest && rank <= ARRAY_RANK_LIMIT, name, "range", FT_BAD_SIZE,
               "%s is %d; from %d to %d axes are supported", name, rank, lowest, (int)ARRAY_RANK_LIMIT);
}

Shape ft_shape(FtCall *call, const char *name, const int *dims, int rank)
{
    Shape shape = {.rank = 0};
    ft_require(call, dims || rank == 0, name, "null", FT_BAD_POINTER, "%s is NULL; it has %d entries", name, rank);
    if (!ft_ok(call)) {
        return shape;
    }
    for (int axis = 0; axis < rank; axis++) {
        shape.size[axis] = dims[axis];
    }
    char text[SHAPE_TEXT_SIZE];
    const int64_t elements = us_shape_elements(rank, shape.size);
    ft_require(call, elements >= 0 && elements <= FT_ELEMENT_LIMIT, name, "range", FT_BAD_SIZE,
               "%s is %s: a size is negative, or there are more elements than any memory holds", name,
               us_shape_text(rank, shape.size, text, sizeof text));
    if (ft_ok(call)) {
        shape.rank = rank;
        shape.elements = elements;
    }
    return shape;
}

void ft_strides(FtCall *call, const char *name, const int *strides, const Shape *shape)
{
    int64_t stride = 1;
    for (int axis = shape->rank - 1; axis >= 0 && shape->elements > 0; axis--) {
        ft_require(call, strides[axis] == stride, name, "mismatch", FT_BAD_SIZE,
                   "%s[%d] is %d, but in a row-major array of this shape it is %lld", name, axis, strides[axis],
                   (long long)stride);
        stride *= shape->size[axis];
    }
}
