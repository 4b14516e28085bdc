#include "kernels/rnn/network.h"

#include "kernels/scratch.h"

enum { ALIGNMENT = 64 };

/* Rows and columns of a parameter of a layer's direction; no rows: there is none. */
static ParameterPlace size_of_parameter(const PackedNetwork *network, int64_t index, int which)
{
    const RecurrentSizes *sizes = &network->sizes;
    const bool is_first = index < network->recurrent.directions;
    const int64_t rows = us_recurrent_gates(network->recurrent.kind) * sizes->hidden;
    const int64_t inputs = is_first ? sizes->input : sizes->output * network->recurrent.directions;
    switch (which) {
    case PARAMETER_W_IH:
        return (ParameterPlace){.rows = is_first && network->skips_input ? 0 : rows, .columns = inputs};
    case PARAMETER_W_HH:
        return (ParameterPlace){.rows = rows, .columns = sizes->output};
    case PARAMETER_B_IH:
        return (ParameterPlace){.rows = network->has_b_ih ? rows : 0, .columns = 1};
    case PARAMETER_B_HH:
        return (ParameterPlace){.rows = network->has_b_hh ? rows : 0, .columns = 1};
    default:
        return (ParameterPlace){.rows = sizes->output < sizes->hidden ? sizes->output : 0, .columns = sizes->hidden};
    }
}

static int64_t elements_of_pass(const PackedNetwork *network, int64_t index, int parameters)
{
    int64_t elements = 0;
    for (int which = 0; which < parameters; which++) {
        const ParameterPlace place = size_of_parameter(network, index, which);
        elements += place.rows * place.columns;
    }
    return elements;
}

/* All layers but the first are alike. */
static int64_t first_of_pass(const PackedNetwork *network, int64_t index)
{
    const int64_t directions = network->recurrent.directions, above = index < directions ? 0 : index - directions;
    return (index - above) * elements_of_pass(network, 0, PARAMETER_COUNT) +
           above * elements_of_pass(network, directions, PARAMETER_COUNT);
}

ParameterPlace us_network_parameter(const PackedNetwork *network, int64_t index, int which)
{
    ParameterPlace place = size_of_parameter(network, index, which);
    place.first = first_of_pass(network, index) + elements_of_pass(network, index, which);
    return place;
}

int64_t us_network_elements(const PackedNetwork *network)
{
    return first_of_pass(network, (int64_t)network->recurrent.layers * network->recurrent.directions);
}

static DType compute_of(const PackedNetwork *network)
{
    return network->dtype == DTYPE_FLOAT64 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
}

size_t us_network_memory(const PackedNetwork *network, bool trains)
{
    return us_recurrent_memory(&network->recurrent, network->sizes, compute_of(network), trains) + ALIGNMENT;
}

size_t us_network_trace(const PackedNetwork *network)
{
    return us_recurrent_trace(&network->recurrent, network->sizes, compute_of(network)) + ALIGNMENT;
}

static void *aligned(const View *view)
{
    return us_view_is_absent(view) ? NULL
                                   : (void *)(((uintptr_t)view->data + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

static View *views_of_parameters(const PackedNetwork *network, const View *block)
{
    const int32_t count = us_recurrent_parameters(&network->recurrent);
    View *views = us_scratch_array(count, sizeof *views);
    for (int32_t i = 0; i < count && views != NULL; i++) {
        const ParameterPlace place = us_network_parameter(network, i / PARAMETER_COUNT, i % PARAMETER_COUNT);
        const int64_t shape[] = {place.rows, place.columns};
        void *data = (char *)block->data + (size_t)place.first * us_dtype_size(block->dtype);
        views[i] = place.rows > 0 ? us_view_contiguous(data, block->dtype, 2, shape) : us_view_absent();
    }
    return views;
}

/* A run of the attributes' network, with views that are absent. */
static RecurrentRun begin_run(const NetworkRun *given, Recurrent *recurrent, const View *memory, const View *trace)
{
    static const View absent = {.dtype = DTYPE_NONE};
    *recurrent = given->network.recurrent;
    recurrent->lengths = given->has_lengths ? given->lengths : NULL;
    return (RecurrentRun){.network = recurrent, .sizes = given->network.sizes, .input = &absent, .h = &absent,
                          .c = &absent, .output = &absent, .last_h = &absent, .last_c = &absent,
                          .output_slope = &absent, .h_slope = &absent, .c_slope = &absent, .to_input = &absent,
                          .to_h = &absent, .to_c = &absent, .memory = aligned(memory), .trace = aligned(trace)};
}

KernelStatus us_network_forward(const View *views, const void *attributes)
{
    const NetworkRun *given = attributes;
    Recurrent recurrent;
    RecurrentRun run = begin_run(given, &recurrent, &views[4], &views[9]);
    View *parameters = views_of_parameters(&given->network, &views[3]);
    run.input = &views[0];
    run.h = &views[1];
    run.c = &views[2];
    run.parameters = parameters;
    run.dropout_state = views[5].data;
    run.output = &views[6];
    run.last_h = &views[7];
    run.last_c = &views[8];
    const KernelStatus status = parameters == NULL ? KERNEL_NO_MEMORY
                                                   : us_recurrent_run(&run, compute_of(&given->network));
    us_scratch_give_back(parameters);
    return status;
}

KernelStatus us_network_data_gradients(const View *views, const void *attributes)
{
    const NetworkRun *given = attributes;
    Recurrent recurrent;
    RecurrentRun run = begin_run(given, &recurrent, &views[7], &views[11]);
    View *parameters = views_of_parameters(&given->network, &views[6]);
    run.output_slope = &views[1];
    run.h = &views[2];
    run.h_slope = &views[3];
    run.c = &views[4];
    run.c_slope = &views[5];
    run.parameters = parameters;
    run.to_input = &views[8];
    run.to_h = &views[9];
    run.to_c = &views[10];
    const KernelStatus status =
        parameters == NULL ? KERNEL_NO_MEMORY
                           : us_recurrent_run_back(&run, compute_of(&given->network), GRADIENTS_OF_DATA);
    us_scratch_give_back(parameters);
    return status;
}

KernelStatus us_network_parameter_gradients(const View *views, const void *attributes)
{
    const NetworkRun *given = attributes;
    Recurrent recurrent;
    RecurrentRun run = begin_run(given, &recurrent, &views[4], &views[3]);
    View *parameters = views_of_parameters(&given->network, &views[5]);
    run.input = &views[0];
    run.h = &views[1];
    run.parameters = parameters; /* which of them there are */
    run.to_parameters = parameters;
    run.adds = true;
    const KernelStatus status =
        parameters == NULL ? KERNEL_NO_MEMORY
                           : us_recurrent_run_back(&run, compute_of(&given->network), GRADIENTS_OF_PARAMETERS);
    us_scratch_give_back(parameters);
    return status;
}
