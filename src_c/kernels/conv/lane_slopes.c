/* Slopes of a gather by vectors of results: not of depthwise filters. */
#include "kernels/conv/lanes.h"
#include "kernels/move/transpose.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/parallel.h"

#include <stdatomic.h>
#include <string.h>

/* Weights whose slopes are formed together, of one vector of results or two, and of those that are left. */
enum { TOGETHER = REGISTER_BYTES == 64 ? 9 : 6, TOGETHER_OF_TWO = REGISTER_BYTES == 64 ? 9 : 4, LEAST_TOGETHER = 3 };

typedef struct Slopes {
    Plan plan;
    const float *dy;
    int64_t parts, parts_each; /* parts of the positions have their own sums; parts of the cut in each */
    float *sums;               /* [part][unit][block][channel][tap][lane] */
    float *result;             /* packed */
    atomic_bool no_memory;
} Slopes;

/* Adds to the slopes of some weights, from `first` on, the products of dy with what their taps see: [weight][lane]. */
US_ALWAYS_INLINE void add_products(const Patch *patch, int vectors, int count, const float *dy, int64_t first,
                                   float *slopes)
{
    const int64_t taps = gather_taps(patch->plan->gather);
    Lanes sum[TOGETHER][2];
    const float *seen[TOGETHER];
#pragma GCC unroll 9
    for (int i = 0; i < count; i++) {
        seen[i] = patch->cells + (first + i) / taps * patch->grid.all + patch->shifts[(first + i) % taps];
        sum[i][0] = sum[i][1] = (Lanes){0};
    }
    for (int64_t row = 0; row < patch->rows; row++) {
        const int64_t first_seen = patch->starts[row], end = first_seen + patch->width * patch->apart;
        for (int64_t at = first_seen; at < end; at += patch->apart, dy += vectors * WIDTH) {
            const Lanes of_dy = *(const Lanes *)dy, second = *(const Lanes *)(dy + (vectors - 1) * WIDTH);
#pragma GCC unroll 9
            for (int i = 0; i < count; i++) {
                const Lanes values = all_lanes(seen[i][at]);
                sum[i][0] = fused(of_dy, values, sum[i][0]);
                if (vectors == 2) {
                    sum[i][1] = fused(second, values, sum[i][1]);
                }
            }
        }
    }
#pragma GCC unroll 9
    for (int i = 0; i < count; i++) {
        *(Lanes *)(slopes + (first + i) * vectors * WIDTH) += sum[i][0];
        if (vectors == 2) {
            *(Lanes *)(slopes + ((first + i) * vectors + 1) * WIDTH) += sum[i][1];
        }
    }
}

US_ALWAYS_INLINE void add_all(const Patch *patch, int vectors, const float *dy, float *slopes)
{
    const int64_t depth = patch->plan->depth;
    const int together = vectors == 1 ? TOGETHER : TOGETHER_OF_TWO;
    int64_t first = 0;
    for (; first + together <= depth; first += together) {
        add_products(patch, vectors, together, dy, first, slopes);
    }
    for (; first + LEAST_TOGETHER <= depth; first += LEAST_TOGETHER) {
        add_products(patch, vectors, LEAST_TOGETHER, dy, first, slopes);
    }
    for (; first < depth; first++) {
        add_products(patch, vectors, 1, dy, first, slopes);
    }
}

static void add_one(const Patch *patch, const float *dy, float *slopes)
{
    add_all(patch, 1, dy, slopes);
}

static void add_two(const Patch *patch, const float *dy, float *slopes)
{
    add_all(patch, 2, dy, slopes);
}

/* dy of some results: [position][lane]. */
static void turn_dy(const Slopes *slopes, const Patch *patch, const Block *block, float *turned)
{
    const GridPart *part = &patch->part;
    const Gather *gather = slopes->plan.gather;
    const int64_t image = conv_product3(gather->out_size), size = (int64_t)sizeof(float);
    if (block->results < block->lanes) {
        memset(turned, 0, (size_t)(part->count * block->lanes * size));
    }
    for (int64_t done = 0, some; done < part->count; done += some) {
        const int64_t position = part->begin + done, within = position % image;
        some = smaller(part->count - done, image - within);
        const int64_t plane = position / image * gather->groups * gather->results + block->first;
        const float *from = slopes->dy + plane * image + within;
        us_transpose((char *)(turned + done * block->lanes), block->lanes * size, (const char *)from, image * size,
                     block->results, some, size);
    }
}

/* Adds what a part of the positions gives a set of units; false: no memory. */
static bool add_part(const Slopes *slopes, int64_t number, int64_t begin, int64_t end, float *sums)
{
    const Plan *plan = &slopes->plan;
    const Among among = us_lanes_all(plan->gather->out_size);
    Patch patch = us_lanes_patch(plan, plan->gather, number);
    char *begun = us_scratch_take(us_lanes_patch_bytes(&patch)), *cursor = begun;
    if (begun == NULL) {
        return false;
    }
    us_lanes_begin(&patch, &among, &cursor);
    const int64_t lanes = smaller(plan->vectors, 2) * WIDTH;
    const size_t of_dy = us_scratch_bytes(us_scratch_count(patch.part.count, lanes), sizeof(float));
    char *memory = us_scratch_take(us_lanes_cell_bytes(&patch) + of_dy);
    cursor = memory;
    if (memory != NULL) {
        us_lanes_take_cells(&patch, &cursor);
    }
    for (int64_t unit = begin; memory != NULL && unit < end; unit++) {
        us_lanes_pack(&patch, unit);
        for (int64_t number = 0; number < plan->blocks; number++) {
            const Block block = us_lanes_block(plan, unit * plan->blocks + number);
            turn_dy(slopes, &patch, &block, (float *)cursor);
            float *const of_block = sums + block.vector * plan->depth * WIDTH;
            (block.lanes > WIDTH ? add_two : add_one)(&patch, (const float *)cursor, of_block);
        }
    }
    us_scratch_give_back(memory);
    us_scratch_give_back(begun);
    return memory != NULL;
}

static int64_t floats_of_part(const Plan *plan)
{
    return us_scratch_count(plan->units * plan->vectors * WIDTH, plan->depth);
}

static void slope_piece(void *context, int64_t number)
{
    Slopes *slopes = context;
    const Plan *plan = &slopes->plan;
    const int64_t part = number % slopes->parts, begin = number / slopes->parts * plan->each;
    const int64_t end = smaller(begin + plan->each, plan->units), of_unit = plan->vectors * WIDTH * plan->depth;
    float *sums = slopes->sums + part * floats_of_part(plan);
    memset(sums + begin * of_unit, 0, (size_t)((end - begin) * of_unit) * sizeof *sums);
    for (int64_t of = part * slopes->parts_each; of < (part + 1) * slopes->parts_each && of < plan->cut.count; of++) {
        if (!add_part(slopes, of, begin, end, sums)) {
            atomic_store(&slopes->no_memory, true);
        }
    }
}

/* Adds up the parts of a block of results, and turns them round. */
static void finish_block(void *context, int64_t number)
{
    const Slopes *slopes = context;
    const Plan *plan = &slopes->plan;
    const Block block = us_lanes_block(plan, number);
    const int64_t count = plan->depth * block.lanes, size = (int64_t)sizeof(float);
    float *sums = slopes->sums + block.vector * plan->depth * WIDTH;
    for (int64_t part = 1; part < slopes->parts; part++) {
        const float *more = sums + part * floats_of_part(plan);
        for (int64_t i = 0; i < count; i++) {
            sums[i] += more[i];
        }
    }
    us_transpose((char *)(slopes->result + block.first * plan->depth), plan->depth * size, (const char *)sums,
                 block.lanes * size, plan->depth, block.results, size);
}

KernelStatus us_gather_slopes_by_lanes(const Gather *gather, const void *dy, void *sums)
{
    Slopes slopes = {.plan = us_lanes_plan(gather), .dy = dy, .result = sums};
    Plan *plan = &slopes.plan;
    plan->each = ceiling(plan->units, smaller(FEW, plan->units));
    plan->sets = ceiling(plan->units, plan->each);
    slopes.parts_each = ceiling(plan->cut.count, bounded(FEW / plan->sets, 1, plan->cut.count));
    slopes.parts = ceiling(plan->cut.count, slopes.parts_each);
    slopes.sums = us_scratch_array(us_scratch_count(slopes.parts, floats_of_part(plan)), sizeof(float));
    if (slopes.sums == NULL) {
        return KERNEL_NO_MEMORY;
    }
    atomic_init(&slopes.no_memory, false);
    us_parallel(plan->sets * slopes.parts, slope_piece, &slopes);
    us_parallel(plan->units * plan->blocks, finish_block, &slopes);
    us_scratch_give_back(slopes.sums);
    return atomic_load(&slopes.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}
