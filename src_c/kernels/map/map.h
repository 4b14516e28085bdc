/* Element-wise kernels of every kind: out[i] = formula(in0[i], in1[i], …; numbers). One walker and one loop for all; a
 * formula is one line of a file in this folder and knows neither types, strides, threads nor instruction sets.
 *
 * How a call computes. Every input converts to the type `compute` (rounded to it), the formula runs in the lane of that
 * type (tensor/lane.h), its result rounds to `result` and then to the output's own type.
 *
 * Operands. Inputs broadcast to the shape of the output; all outputs have one shape. Any strides. An output may be the
 * same view as an input; inputs that overlap an output otherwise are read as they were before the call.
 *   - An absent input (us_view_absent) is a scalar: its value is a number after the formula's own ones, in order of
 *     the absent inputs. So `add` with an absent second input is tensor + alpha * scalar: numbers = {alpha, scalar}.
 *   - `inputs` may exceed the formula's: each further input is a tensor of one element that gives number 0, 1, … (a
 *     scalar that lies in device memory); what `numbers` says there does not count.
 *
 * Results are the same bits for any number of threads and every instruction set. */
#ifndef UNDERSTUDY_MAP_FAMILY_H
#define UNDERSTUDY_MAP_FAMILY_H

#include "kernels/kernels.h"
#include "tensor/lane.h"
#include "tensor/levels.h"
#include "tensor/number.h"

/* Numbers of a call, operands of an item (inputs and outputs), outputs of a formula. */
enum { MAP_CALL_NUMBERS = 12, MAP_OPERANDS = 12, MAP_RESULTS = 4 };

/* What a formula's results are: of the type it computes in, true or false, or real parts of a complex type. */
typedef enum MapResult { MAP_SAME, MAP_BOOL, MAP_REAL } MapResult;

/* The formula over `count` elements (a multiple of LANES) of unit-stride arrays of a lane (of a 16-bit type where the
 * conversion is fused); results that are true or false are bytes. An output may be the same array as an input. `past`: outputs
 * are aligned to vectors and should not be kept in the caches; it is a hint, which integers, for one, do not take. */
typedef void MapBody(const Number *numbers, int64_t count, const void *const *inputs, void *const *outputs, bool past);

/* A formula's bodies by lane, LANE_BODIES of them; NULL: no such lane. */
typedef MapBody *const *MapBodies(void);

typedef struct MapFormula {
    const char *name;
    int32_t inputs, outputs, numbers;
    MapResult result;
    MapBodies *bodies; /* those of the level in use */
} MapFormula;

/* Where it is wanted, the output (of a formula that has one) becomes alpha times the result plus beta times what it was,
 * rounded once; with beta 0 what it was is not read. The type computed in is a floating one. */
typedef struct MapBlend {
    bool wanted;
    double alpha, beta;
} MapBlend;

typedef struct MapCall {
    const MapFormula *formula;
    DType compute;           /* P */
    DType result;            /* P; DTYPE_BOOL of MAP_BOOL formulas; the real type of P of MAP_REAL ones */
    int32_t inputs, outputs; /* views of an item */
    int32_t items;           /* 1; of a list its length: the views of an item follow those of the one before it. They run at the
                              * same time: no output of one may lie in another. */
    int32_t number_count;    /* numbers that differ by item: of a MapListCall, else 0 */
    Number numbers[MAP_CALL_NUMBERS];
    MapBlend blend;
} MapCall;

/* A list whose items have numbers of their own: the first number_count numbers of item i are each[i * number_count …],
 * the others those of the call. */
typedef struct MapListCall {
    MapCall call;
    Number each[];
} MapListCall;

KernelStatus us_map(const View *views, const void *attributes /* MapCall or MapListCall */);

/* A formula with one output, in float32; of numbers it has none but the factor 1 of an addition. */
static inline KernelStatus us_map_floats(const MapFormula *formula, int32_t inputs, const View *views)
{
    const MapCall call = {.formula = formula, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .inputs = inputs,
                          .outputs = 1, .items = 1, .numbers = {{1, 0, 1}}};
    return us_map(views, &call);
}

bool us_map_has_lane(const MapFormula *formula, DType compute);

#endif
