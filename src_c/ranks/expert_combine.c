#include "kernels/scratch.h"
#include "ranks/expert_routes.h"
#include "tensor/convert.h"
#include "tensor/lane.h"

#include <string.h>

typedef struct Combine {
    const View *views;
    const ExpertLayout *layout;
    ExpertRoute route;
    int64_t columns, size; /* bytes of a row */
    char *sent, *received;
} Combine;

/* Rows that are by experts, by ranks become such by ranks, by experts. `sizes`: of each rank. */
static KernelStatus pack_back(const Combine *run, int64_t *sizes, int64_t rows)
{
    const int32_t ranks = run->layout->task.room->ranks;
    const View *x = &run->views[COMBINE_X], *counts = &run->views[COMBINE_COUNTS];
    const int64_t own = us_experts_of(run->layout, ranks, run->layout->task.room->rank);
    char *to = run->sent;
    for (int32_t rank = 0; rank < ranks; rank++) {
        int64_t row = 0;
        sizes[rank] = 0;
        for (int64_t i = 0; i < own * ranks; i++) {
            const int64_t count = us_integer_at(counts, i, 0);
            if (count < 0 || row + count > rows) {
                return us_kernel_fault("epSendCounts[%lld] is %lld; expandX has %lld rows, %lld before these", (long long)i,
                                       (long long)count, (long long)rows, (long long)row);
            }
            for (int64_t k = 0; i % ranks == rank && k < count; k++, to += run->size) {
                us_copy_elements(to, 1, us_element_at(x, row + k, 0), x->strides[1], (int64_t)us_dtype_size(x->dtype), run->columns);
            }
            sizes[rank] += i % ranks == rank ? count * run->size : 0;
            row += count;
        }
    }
    return KERNEL_OK;
}

static void load(float *to, const View *view, int64_t row, int64_t count)
{
    us_load_float(to, us_element_at(view, row, 0), view->dtype, view->strides[1], count);
}

/* What an expert on no rank gives; false: nothing. */
static bool compute(const Combine *run, int64_t token, int64_t choice, float *numbers)
{
    const ExpertLayout *layout = run->layout;
    const int64_t copy = us_integer_at(&run->views[COMBINE_IDS], token, choice) - layout->experts - layout->nothing;
    float *factor = numbers + run->columns, *value = factor + run->columns;
    if (!us_is_active(&run->views[COMBINE_ACTIVE], token, choice) || copy < 0) {
        return false;
    }
    load(numbers, &run->views[COMBINE_TOKENS], token, run->columns);
    if (copy >= layout->copies) {
        load(factor, &run->views[COMBINE_FACTOR], copy - layout->copies, run->columns);
        for (int64_t i = 0; i < run->columns; i++) {
            numbers[i] *= factor[i];
        }
        load(factor, &run->views[COMBINE_WEIGHT], copy - layout->copies, run->columns);
        load(value, &run->views[COMBINE_VALUE], copy - layout->copies, run->columns);
        for (int64_t i = 0; i < run->columns; i++) {
            numbers[i] += factor[i] * value[i];
        }
    }
    return true;
}

static void add_up(const Combine *run, float *sum, float *numbers)
{
    const View *out = &run->views[COMBINE_OUT], *added = &run->views[COMBINE_ADDED];
    for (int64_t token = 0; token < run->route.tokens; token++) {
        memset(sum, 0, (size_t)run->columns * sizeof *sum);
        for (int64_t choice = 0; choice < run->route.choices; choice++) {
            const int64_t place = run->route.places[token * run->route.choices + choice];
            if (place >= 0) {
                us_load_float(numbers, run->received + place * run->size, out->dtype, 1, run->columns);
            } else if (choice >= run->route.k || !compute(run, token, choice, numbers)) {
                continue;
            }
            const float weight = choice < run->route.k ? us_number_at(&run->views[COMBINE_WEIGHTS], token, choice) : 1;
            for (int64_t i = 0; i < run->columns; i++) {
                sum[i] += numbers[i] * weight;
            }
        }
        if (!us_view_is_absent(added)) {
            load(numbers, added, token, run->columns);
            for (int64_t i = 0; i < run->columns; i++) {
                sum[i] += numbers[i];
            }
        }
        us_store_float(us_element_at(out, token, 0), out->dtype, out->strides[1], sum, run->columns);
    }
}

static KernelStatus combine(Combine *run)
{
    const int32_t ranks = run->layout->task.room->ranks;
    const int64_t rows = run->views[COMBINE_X].shape[0];
    int64_t *sizes = us_scratch_array(2 * ranks, sizeof *sizes);
    float *numbers = us_scratch_array(us_scratch_count(4, run->columns), sizeof *numbers);
    run->sent = us_scratch_array(rows, (size_t)run->size);
    run->received = us_scratch_array(run->route.count, (size_t)run->size);
    const bool has_room = sizes != NULL && numbers != NULL && run->sent != NULL && run->received != NULL;
    KernelStatus status = has_room ? pack_back(run, sizes, rows) : KERNEL_NO_MEMORY;
    for (int32_t rank = 0; status == KERNEL_OK && rank < ranks; rank++) {
        sizes[ranks + rank] = us_tokens_to(run->layout, &run->route, rank) * run->size;
    }
    if (status == KERNEL_OK) {
        status = us_exchange_bytes(&run->layout->task, run->sent, sizes, run->received, sizes + ranks);
    }
    if (status == KERNEL_OK) {
        add_up(run, numbers, numbers + run->columns);
    }
    us_scratch_give_back(run->received);
    us_scratch_give_back(run->sent);
    us_scratch_give_back(numbers);
    us_scratch_give_back(sizes);
    return status;
}

KernelStatus us_combine_from_experts(const View *views, const void *attributes)
{
    Combine run = {.views = views, .layout = attributes, .columns = views[COMBINE_OUT].shape[1]};
    run.size = run.columns * (int64_t)us_dtype_size(views[COMBINE_X].dtype);
    KernelStatus status = us_collective_begin(&run.layout->task);
    if (status == KERNEL_OK) {
        status = us_expert_route(&run.route, run.layout, &views[COMBINE_IDS], &views[COMBINE_ACTIVE]);
        status = status == KERNEL_OK ? combine(&run) : status;
        us_expert_route_end(&run.route);
    }
    return us_collective_end(&run.layout->task, status);
}
