#include "kernels/attention/cached_rotary.h"

#include "kernels/map/formulas.h"
#include "kernels/move/copy_view.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/convert.h"

/* ---- angles: a line of cosines and sines for each token ---- */

static int64_t position_of(const View *positions, int64_t section, int64_t token)
{
    const int64_t down = positions->rank == 2 ? section * positions->strides[0] : 0;
    return ((const int64_t *)positions->data)[down + token * positions->strides[positions->rank - 1]];
}

/* The pairs begin … begin+count-1 of a token from row `position`. */
static void load_angles(const View *table, int64_t position, int64_t begin, int64_t count, float *angles)
{
    const int64_t pairs = table->shape[1] / 2, size = (int64_t)us_dtype_size(table->dtype);
    const char *row = (const char *)table->data + position * table->strides[0] * size;
    for (int half = 0; half < 2; half++) {
        const int64_t first = half * pairs + begin;
        us_load_float(angles + first, row + first * table->strides[1] * size, table->dtype, table->strides[1], count);
    }
}

static KernelStatus check_position(int64_t position, int64_t token, const View *table)
{
    const bool inside = position >= 0 && position < table->shape[0];
    return inside ? KERNEL_OK : us_kernel_fault("position %lld of token %lld is outside a table of %lld rows",
                                                (long long)position, (long long)token, (long long)table->shape[0]);
}

/* Pairs section, section + 3, … of a token, below `limit`. */
static void load_every_third(const View *table, int64_t position, int64_t section, int64_t limit, float *angles)
{
    for (int64_t pair = section; pair < limit; pair += 3) {
        load_angles(table, position, pair, 1, angles);
    }
}

static KernelStatus gather_alternating(const CachedRotary *call, const View *positions, const View *table, int64_t tokens,
                                       float *angles)
{
    const int64_t pairs = table->shape[1] / 2, limit = smaller(pairs, 3 * call->sections[1]);
    KernelStatus status = KERNEL_OK;
    for (int64_t token = 0; token < tokens && status == KERNEL_OK; token++) {
        float *own = angles + token * table->shape[1];
        for (int32_t section = 0; section < 3 && status == KERNEL_OK; section++) {
            const int64_t position = position_of(positions, section, token);
            status = check_position(position, token, table);
            if (status == KERNEL_OK && section == 0) {
                load_angles(table, position, 0, pairs, own);
            } else if (status == KERNEL_OK) {
                load_every_third(table, position, section, limit, own);
            }
        }
    }
    return status;
}

static KernelStatus gather_angles(const CachedRotary *call, const View *positions, const View *table, int64_t tokens,
                                  float *angles)
{
    const int64_t whole[] = {table->shape[1] / 2};
    const int64_t *sections = call->section_count > 0 ? call->sections : whole;
    const int32_t count = call->section_count > 0 ? call->section_count : 1;
    for (int64_t token = 0; token < tokens; token++) {
        int64_t begin = 0;
        for (int32_t section = 0; section < count; section++) {
            const int64_t position = position_of(positions, section, token);
            const KernelStatus status = check_position(position, token, table);
            if (status != KERNEL_OK) {
                return status;
            }
            load_angles(table, position, begin, sections[section], angles + token * table->shape[1]);
            begin += sections[section];
        }
    }
    return KERNEL_OK;
}

/* ---- heads ---- */

/* `count` elements of every head, `step` apart from `first` on: [tokens, heads, count]. */
static View part_of(const View *heads, int64_t head, int64_t first, int64_t step, int64_t count)
{
    const int64_t inner = heads->strides[1];
    View part = {.dtype = heads->dtype, .rank = 3, .shape = {heads->shape[0], heads->shape[1] / head, count},
                 .strides = {heads->strides[0], head * inner, step * inner}};
    part.data = (char *)heads->data + first * inner * (int64_t)us_dtype_size(heads->dtype);
    return part;
}

static KernelStatus turn_heads(const CachedRotary *call, const View *from, const View *to, float *angles, int64_t width)
{
    const int64_t pairs = width / 2, step = call->interleaved ? 2 : 1, second = call->interleaved ? 1 : pairs;
    const View cosines = {.data = angles, .dtype = DTYPE_FLOAT32, .rank = 3, .shape = {from->shape[0], 1, pairs},
                          .strides = {width, 0, 1}};
    View sines = cosines;
    sines.data = angles + pairs;
    const MapCall rotate = {.formula = &us_map_rotate, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .inputs = 6,
                            .outputs = 2, .items = 1};
    const KernelStatus status = us_map((const View[]){
        part_of(from, call->head, 0, step, pairs), part_of(from, call->head, second, step, pairs), cosines, cosines,
        sines, sines, part_of(to, call->head, 0, step, pairs), part_of(to, call->head, second, step, pairs)}, &rotate);
    if (status == KERNEL_OK && width < call->head) {
        const View rest = part_of(from, call->head, width, 1, call->head - width);
        const View copied = part_of(to, call->head, width, 1, call->head - width);
        us_copy_view(&copied, &rest);
    }
    return status;
}

KernelStatus us_cached_rotary(const View *views, const void *attributes)
{
    const CachedRotary *call = attributes;
    const View *positions = &views[0], *query = &views[1], *key = &views[2], *table = &views[3];
    const int64_t tokens = query->shape[0], width = table->shape[1];
    float *angles = us_scratch_take(us_scratch_bytes(us_scratch_count(tokens, width), sizeof *angles) + 64);
    KernelStatus status = angles == NULL     ? KERNEL_NO_MEMORY
                          : call->alternates ? gather_alternating(call, positions, table, tokens, angles)
                                             : gather_angles(call, positions, table, tokens, angles);
    status = status != KERNEL_OK ? status : turn_heads(call, query, &views[4], angles, width);
    status = status != KERNEL_OK ? status : turn_heads(call, key, &views[5], angles, width);
    us_scratch_give_back(angles);
    return status;
}
