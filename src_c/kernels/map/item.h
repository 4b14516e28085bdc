/* One operation on tensors, ready to run: what map.c prepares once, and runs in ranges of elements. */
#ifndef UNDERSTUDY_MAP_ITEM_H
#define UNDERSTUDY_MAP_ITEM_H

#include "kernels/map/formulas.h"
#include "kernels/map/map.h"
#include "tensor/axes.h"

/* Length of the runs along the last axis from which on operands are used in place run by run, and the same where that saves
 * no more than reading one input; side of the blocks in which operands of another order are read; elements of a tile, and
 * bytes. */
enum { MAP_LONG_RUN = 64, MAP_LONG_RUN_OF_ONE = 256, MAP_BLOCK = 32, MAP_TILE_ELEMENTS = 1024, MAP_TILE_BYTES = 8 * 1024 };

typedef struct MapOperand {
    char *data;     /* NULL: an absent input */
    DType dtype;    /* of the view */
    DType array;    /* of the elements that the body reads or writes */
    int64_t size;   /* bytes of an element of the view */
    bool in_place;    /* the body may use the view's own elements where they are neighbours */
    bool is_flat;     /* all of them are */
    bool is_scalar;   /* one value everywhere */
    bool is_direct;   /* used in place, where lanes are whole */
    bool is_constant; /* in walks by run: one value along each */
} MapOperand;

/* `count` elements of a type (a multiple of LANES) from results in its lane and what was there. */
typedef void MapBlendBody(const MapBlend *how, int64_t count, const void *results, const void *prior, void *to);
MapBlendBody *us_map_blend_body(DType dtype);

/* One tensor operation, ready to run. */
typedef struct MapItem {
    const MapCall *call;
    MapBody *body;
    MapBlendBody *blend; /* NULL: none is wanted */
    Lane lane;
    int count, inputs; /* operands: inputs first */
    MapOperand operands[MAP_OPERANDS];
    Axes axes;
    bool in_blocks; /* the two innermost axes are a block of MAP_BLOCK x MAP_BLOCK */
    bool past;      /* no cache can keep the results, and no input brings their memory into one */
    bool by_run;    /* no part of a range that is worked on at once goes beyond a run along the last axis */
    int64_t elements, tile;
    const Number *numbers; /* the call's, or */
    Number own[MAP_CALL_NUMBERS];
} MapItem;

/* Bytes before an element in its line of the caches, of an operand whose elements are neighbours. */
static inline int64_t us_map_in_line(const MapOperand *operand, int64_t position)
{
    return (int64_t)(((uintptr_t)operand->data + (uintptr_t)(position * operand->size)) % CACHE_LINE_BYTES);
}

/* `index`: of the item in a list, whose views these are. */
void us_map_prepare(MapItem *item, const MapCall *call, const View *views, int64_t index);

/* Elements begin … end - 1, in the order of the item's axes. */
void us_map_run(const MapItem *item, int64_t begin, int64_t end);

#endif
