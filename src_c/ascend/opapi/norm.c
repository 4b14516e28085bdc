/* Normalizations: from the pages' operands to the kernels' views. */
#include "ascend/opapi/norm.h"

#include "kernels/norm/batch_norm.h"
#include "kernels/norm/gather_statistics.h"
#include "kernels/norm/normalized.h"
#include "kernels/norm/renorm.h"

#include <math.h>

bool op_masked(BoolArguments mask, int64_t at)
{
    return at < mask.count && mask.values[at];
}

const Operand *op_asked(const Operand *output, BoolArguments mask, int64_t at)
{
    return op_masked(mask, at) ? output : NULL;
}

static int64_t elements_of(const Operand *x, int64_t first, int64_t end)
{
    int64_t product = 1;
    for (int64_t axis = first < 0 ? 0 : first; axis < end && axis < x->view.rank; axis++) {
        product = op_times(product, x->view.shape[axis]);
    }
    return product;
}

int64_t op_leading_elements(const Operand *x, int64_t count)
{
    return elements_of(x, 0, x->view.rank - count);
}

int64_t op_trailing_elements(const Operand *x, int64_t count)
{
    return elements_of(x, x->view.rank - count, x->view.rank);
}

bool op_has_room_for_lines(const Operand *room, const Operand *x, int32_t dims)
{
    return op_elements(room) == op_leading_elements(x, dims) ||
           (us_view_same_shape(&room->view, &x->view) && us_view_is_contiguous(&room->view));
}

/* Whether the last dimensions of x have these sizes. */
static bool ends_with(const View *x, int64_t count, const int64_t *sizes)
{
    return count <= x->rank && memcmp(x->shape + x->rank - count, sizes, (size_t)count * sizeof *sizes) == 0;
}

void op_require_trailing(OpCall *op, const Operand *x, IntArguments sizes)
{
    op_require(op, sizes.count <= x->view.rank, sizes.name, "rank", op->invalid, "%s has %lld sizes, %s is %s",
               sizes.name, (long long)sizes.count, x->name, op_shape_text(op, x));
    op_require(op, op_refused(op) || ends_with(&x->view, sizes.count, sizes.values), x->name, "normalized", op->invalid,
               "%s is %s; its last sizes are not those of %s", x->name, op_shape_text(op, x), sizes.name);
}

bool op_ends_with(const Operand *x, const Operand *gamma)
{
    return ends_with(&x->view, gamma->view.rank, gamma->view.shape);
}

/* ---- lines ---- */

static PlannedView reads(const Operand *operand)
{
    return (PlannedView){operand, VIEW_READ, NULL};
}

static PlannedView writes(const Operand *operand)
{
    return (PlannedView){operand, VIEW_WRITE, NULL};
}

static Normalize of_lines(const LayerNorm *norm)
{
    const int64_t line = op_trailing_elements(norm->x, norm->dims);
    return (Normalize){.line = line, .parameter_run = 1, .parameter_count = line, .epsilon = norm->epsilon,
                       .factor = norm->factor, .centred = !norm->root_mean_square, .scale_from_one = norm->scale_from_one};
}

/* As wide as x, if it is given. */
static View spread(const Operand *x, const Operand *operand)
{
    return operand != NULL && op_given(operand) ? us_view_broadcast(&operand->view, x->view.rank, x->view.shape)
                                                : us_view_absent();
}

/* With a copy where there is one. */
static aclnnStatus plan_layer_norm(OpCall *op, const LayerNorm *norm, const Operand *copy)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const Normalize attributes = of_lines(norm);
    const View bias = spread(norm->x, norm->bias);
    const int64_t lines = op_leading_elements(norm->x, norm->dims);
    const bool wider = norm->inverse != NULL && op_given(norm->inverse) && op_elements(norm->inverse) != lines;
    const View first = wider ? us_view_contiguous(norm->inverse->view.data, norm->inverse->view.dtype, 1, &lines)
                             : us_view_absent();
    const PlannedView views[] = {reads(norm->x),     reads(norm->added),  {norm->bias, VIEW_READ, &bias},
                                 reads(norm->scale), reads(norm->offset), writes(norm->sum),
                                 writes(norm->y),    writes(norm->mean),
                                 {norm->inverse, VIEW_WRITE, wider ? &first : NULL}, writes(copy)};
    return op_plan_views(op, copy == NULL ? us_normalize : us_normalize_and_copy, &attributes, sizeof attributes,
                         copy == NULL ? 9 : 10, views);
}

aclnnStatus op_layer_norm(OpCall *op, const LayerNorm *norm)
{
    return plan_layer_norm(op, norm, NULL);
}

aclnnStatus op_layer_norm_twice(OpCall *op, const LayerNorm *norm, const Operand *copy)
{
    return plan_layer_norm(op, norm, copy);
}

bool op_quantized_asked(BoolArguments mask, int64_t at, const Operand *smooth1, const Operand *smooth2)
{
    return mask.given ? op_masked(mask, at) : at == 0 || (op_given(smooth1) && op_given(smooth2));
}

aclnnStatus op_layer_norm_quantized(OpCall *op, const LayerNormQuantized *quantized)
{
    const LayerNorm *norm = &quantized->norm;
    if (op_refused(op) || op_empty(norm->x)) {
        return op_plan_nothing(op);
    }
    NormalizeAndQuantize attributes = {.norm = of_lines(norm), .by_rows = quantized->by_rows, .divides = quantized->divides,
                                       .whole = quantized->whole};
    const View bias = spread(norm->x, norm->bias);
    PlannedView views[15] = {reads(norm->x),      reads(norm->added), {norm->bias, VIEW_READ, &bias}, reads(norm->scale),
                             reads(norm->offset), writes(norm->sum),  writes(norm->y)}; /* the rest absent */
    View scales[2], zeros[2];
    Integers to[2];
    for (int i = 0; i < 2; i++) {
        const QuantizedOutput *output = &quantized->outputs[i];
        PlannedView *own = views + 7 + 4 * i;
        to[i] = output->y != NULL ? op_integers_of(output->y) : (Integers){us_view_absent(), NOT_PACKED, true};
        own[2] = (PlannedView){output->y, VIEW_WRITE, &to[i].view};
        if (!output->asked) {
            to[i].view.dtype = DTYPE_INT8; /* nothing of it, even where its shape could not be packed */
            to[i].view.rank = 1;
            to[i].view.shape[0] = 0;
            continue;
        }
        scales[i] = spread(norm->x, output->scale);
        zeros[i] = spread(norm->x, output->zero);
        attributes.packed = to[i].axis != NOT_PACKED;
        own[0] = (PlannedView){output->scale, VIEW_READ, quantized->by_rows ? NULL : &scales[i]};
        own[1] = (PlannedView){output->zero, VIEW_READ, &zeros[i]};
        own[3] = writes(output->step);
    }
    return op_plan_views(op, us_normalize_and_quantize, &attributes, sizeof attributes, 15, views);
}

Shape op_shape_row_ends(OpCall *op, const Operand *x)
{
    Shape shape = op_shape(x);
    if (!op_refused(op)) {
        shape.sizes[shape.rank - 1] = 1;
    }
    return shape;
}

bool op_is_of_samples(const Operand *x, const Operand *lines)
{
    const View *all = &x->view, *view = &lines->view;
    const int32_t samples = all->rank - 2;
    bool fits = view->rank == samples + 1 || (view->rank == samples + 2 && view->shape[samples] == 1);
    for (int32_t d = 0; d < samples && fits; d++) {
        fits = view->shape[d] == all->shape[d];
    }
    return fits && view->shape[view->rank - 1] == all->shape[all->rank - 1];
}

/* Lines of samples, as wide as x. */
static View wide_samples(const Operand *x, const Operand *lines)
{
    View view = x->view;
    const int32_t samples = view.rank - 2;
    view.data = lines->view.data;
    view.dtype = lines->view.dtype;
    memcpy(view.strides, lines->view.strides, (size_t)samples * sizeof *view.strides);
    view.strides[samples] = 0;
    view.strides[samples + 1] = lines->view.strides[lines->view.rank - 1];
    return view;
}

aclnnStatus op_layer_norm_modulated(OpCall *op, const LayerNorm *norm, const Operand *scale, const Operand *shift)
{
    if (op_refused(op) || op_empty(norm->x)) {
        return op_plan_nothing(op);
    }
    const Normalize attributes = of_lines(norm);
    const View scales = wide_samples(norm->x, scale), shifts = wide_samples(norm->x, shift);
    const PlannedView views[] = {reads(norm->x), reads(norm->scale), reads(norm->offset), {scale, VIEW_READ, &scales},
                                 {shift, VIEW_READ, &shifts}, writes(norm->y), writes(norm->mean), writes(norm->inverse)};
    return op_plan_views(op, us_normalize_and_modulate, &attributes, sizeof attributes, 8, views);
}

aclnnStatus op_layer_norm_modulated_backward(OpCall *op, const ModulatedBackward *norm)
{
    if (op_refused(op) || op_empty(norm->x)) {
        return op_plan_nothing(op);
    }
    const Normalize attributes = of_lines(&(LayerNorm){.x = norm->x, .dims = 1, .factor = 1});
    const View scales = wide_samples(norm->x, norm->scale);
    const PlannedView views[] = {reads(norm->dy), reads(norm->x), reads(norm->weight), reads(norm->bias),
                                 {norm->scale, VIEW_READ, &scales}, reads(norm->mean), reads(norm->inverse), writes(norm->dx),
                                 writes(norm->scale_gradient), writes(norm->shift_gradient), writes(norm->weight_gradient),
                                 writes(norm->bias_gradient)};
    return op_plan_views(op, us_normalize_and_modulate_backward, &attributes, sizeof attributes, 12, views);
}

aclnnStatus op_layer_norm_modulated_by_rows(OpCall *op, const LayerNorm *norm, const Operand *scale, const Operand *shift,
                                            const Operand *smooth, const Operand *step)
{
    if (op_refused(op) || op_empty(norm->x)) {
        return op_plan_nothing(op);
    }
    const Normalize attributes = of_lines(norm);
    const View scales = wide_samples(norm->x, scale), shifts = wide_samples(norm->x, shift);
    const PlannedView views[] = {reads(norm->x), reads(norm->scale), reads(norm->offset), {scale, VIEW_READ, &scales},
                                 {shift, VIEW_READ, &shifts}, reads(smooth), writes(norm->y), writes(step)};
    return op_plan_views(op, us_normalize_modulate_and_quantize, &attributes, sizeof attributes, 8, views);
}

aclnnStatus op_layer_norm_backward(OpCall *op, const LayerNormBackward *norm)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const int64_t line = op_trailing_elements(norm->x, norm->dims);
    const Normalize attributes = {.line = line, .parameter_run = 1, .parameter_count = line, .factor = norm->factor,
                                  .centred = !norm->root_mean_square};
    const PlannedView views[] = {reads(norm->dy),     reads(norm->x),       reads(norm->added),
                                 reads(norm->passed), reads(norm->scale),   reads(NULL),
                                 reads(norm->mean),   reads(norm->inverse), writes(norm->first),
                                 writes(norm->second), writes(norm->scale_gradient), writes(norm->offset_gradient)};
    return op_plan_views(op, us_normalize_backward, &attributes, sizeof attributes, 12, views);
}

static Normalize of_groups(int64_t channels, int64_t groups, int64_t space)
{
    return (Normalize){.line = groups > 0 ? channels / groups * space : 0, .parameter_run = space,
                       .parameter_count = channels, .factor = 1, .centred = true};
}

static Normalize forwards(const GroupNorm *norm)
{
    Normalize attributes = of_groups(norm->channels, norm->groups, norm->space);
    attributes.epsilon = norm->epsilon;
    attributes.swish = norm->swish;
    attributes.activated = norm->activated;
    return attributes;
}

aclnnStatus op_group_norm(OpCall *op, const GroupNorm *norm)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const Normalize attributes = forwards(norm);
    const PlannedView views[] = {reads(norm->x),     reads(NULL),         reads(NULL),
                                 reads(norm->scale), reads(norm->offset), writes(NULL),
                                 writes(norm->y),    writes(norm->mean),  writes(norm->inverse)};
    return op_plan_views(op, us_normalize, &attributes, sizeof attributes, 9, views);
}

aclnnStatus op_group_norm_backward(OpCall *op, const GroupNormBackward *norm)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    Normalize attributes = of_groups(norm->channels, norm->groups, norm->space);
    attributes.swish = norm->swish;
    attributes.activated = norm->activated;
    const PlannedView views[] = {reads(norm->dy),    reads(norm->x),       reads(NULL),
                                 reads(NULL),        reads(norm->scale),   reads(norm->offset),
                                 reads(norm->mean),  reads(norm->inverse), writes(norm->dx),
                                 writes(NULL),       writes(norm->scale_gradient), writes(norm->offset_gradient)};
    return op_plan_views(op, us_normalize_backward, &attributes, sizeof attributes, 12, views);
}

/* ---- batches ---- */

void op_require_channels(OpCall *op, const Operand *x, Operands vectors)
{
    for (int32_t i = 0; i < vectors.count && !op_refused(op); i++) {
        const Operand *vector = vectors.items[i];
        if (vector == NULL || !op_given(vector)) {
            continue;
        }
        op_require(op, (vector->view.rank == 1 && vector->view.shape[0] == op_size(x, 1)),
                   vector->name, "channels", op->invalid, "%s is %s; %s is %s and has %lld channels", vector->name,
                   op_shape_text(op, vector), x->name, op_shape_text(op, x), (long long)op_size(x, 1));
    }
}

/* A vector of the channels as the kernels want it: in dimension 1, size 1 elsewhere. */
static View along_channels(const Operand *vector, int32_t rank)
{
    if (vector == NULL || !op_given(vector)) {
        return us_view_absent();
    }
    View view = vector->view;
    const int64_t stride = view.strides[0];
    for (int32_t axis = 0; axis < rank; axis++) {
        view.shape[axis] = axis == 1 ? vector->view.shape[0] : 1;
        view.strides[axis] = axis == 1 ? stride : 0;
    }
    view.rank = rank;
    return view;
}

aclnnStatus op_group_norm_quantized(OpCall *op, const GroupNorm *norm, const Operand *step)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const Normalize attributes = forwards(norm);
    const View lines = along_channels(step, norm->x->view.rank);
    const View steps = us_view_broadcast(&lines, norm->x->view.rank, norm->x->view.shape);
    const PlannedView views[] = {reads(norm->x), reads(norm->scale), reads(norm->offset), writes(norm->mean),
                                 writes(norm->inverse), {step, VIEW_READ, &steps}, writes(norm->y)};
    return op_plan_views(op, us_normalize_groups_and_quantize, &attributes, sizeof attributes, 7, views);
}

aclnnStatus op_batch_norm(OpCall *op, const ChannelNorm *norm)
{
    if (op_refused(op) || (op_empty(norm->x) && !norm->training)) {
        return op_plan_nothing(op);
    }
    if (op_empty(norm->x)) {
        return op_fill_all(op, OPERANDS(norm->mean, norm->inverse), op_real(NAN, ACL_DOUBLE));
    }
    const Operand *vectors[] = {norm->scale, norm->offset, norm->running_mean, norm->running_variance, norm->mean,
                                norm->inverse};
    View views[6];
    for (int i = 0; i < 6; i++) {
        views[i] = along_channels(vectors[i], norm->x->view.rank);
    }
    const BatchNorm attributes = {.alpha = 1, .factor = norm->momentum, .epsilon = norm->epsilon};
    const ViewAccess running = norm->training ? VIEW_READ_WRITE : VIEW_READ;
    const PlannedView planned[] = {reads(norm->x),
                                   reads(NULL),
                                   writes(norm->y),
                                   {norm->scale, VIEW_READ, &views[0]},
                                   {norm->offset, VIEW_READ, &views[1]},
                                   {norm->running_mean, running, &views[2]},
                                   {norm->running_variance, running, &views[3]},
                                   {norm->mean, VIEW_WRITE, &views[4]},
                                   {norm->inverse, VIEW_WRITE, &views[5]},
                                   reads(NULL)};
    return norm->training ? op_plan_views(op, us_batch_norm_training, &attributes, sizeof attributes, 10, planned)
                          : op_plan_views(op, us_batch_norm_inference, &attributes, sizeof attributes, 7, planned);
}

aclnnStatus op_batch_norm_backward(OpCall *op, const ChannelNormBackward *norm)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    if (op_empty(norm->x)) {
        return op_fill_all(op, OPERANDS(norm->scale_gradient, norm->offset_gradient), ZERO);
    }
    const bool saved = norm->training;
    const Operand *vectors[] = {norm->scale, norm->scale_gradient, norm->offset_gradient,
                                saved ? norm->mean : norm->running_mean,
                                saved ? norm->inverse : norm->running_variance};
    View views[5];
    for (int i = 0; i < 5; i++) {
        views[i] = along_channels(vectors[i], norm->x->view.rank);
    }
    const BatchNorm attributes = {.alpha = 1, .alpha_param = 1, .epsilon = norm->epsilon, .constant = !saved,
                                  .spread = saved ? SPREAD_INVERSE : SPREAD_VARIANCE};
    const PlannedView planned[] = {reads(norm->x),
                                   reads(norm->dy),
                                   writes(NULL),
                                   writes(norm->dx),
                                   {vectors[0], VIEW_READ, &views[0]},
                                   {vectors[1], VIEW_WRITE, &views[1]},
                                   {vectors[2], VIEW_WRITE, &views[2]},
                                   {vectors[3], VIEW_READ, &views[3]},
                                   {vectors[4], VIEW_READ, &views[4]},
                                   reads(NULL)};
    return op_plan_views(op, us_batch_norm_backward, &attributes, sizeof attributes, 10, planned);
}

/* Some tensors, then vectors of the channels, of which the last `outputs` are written: `of_nothing` where no elements are. */
static aclnnStatus plan_channels(OpCall *op, Kernel *kernel, const BatchNorm *norm, int count,
                                 const PlannedView *tensors, int vector_count, const Operand *const *vectors,
                                 int outputs, Number of_nothing)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    if (op_empty(tensors[0].operand)) {
        const Operands written = {.items = vectors + vector_count - outputs, .count = outputs, .name = ""};
        return op_fill_all(op, written, of_nothing);
    }
    View views[8];
    PlannedView planned[12];
    memcpy(planned, tensors, (size_t)count * sizeof *tensors);
    for (int i = 0; i < vector_count; i++) {
        views[i] = along_channels(vectors[i], tensors[0].operand->view.rank);
        planned[count + i] =
            (PlannedView){vectors[i], i < vector_count - outputs ? VIEW_READ : VIEW_WRITE, &views[i]};
    }
    return op_plan_views(op, kernel, norm, sizeof *norm, count + vector_count, planned);
}

aclnnStatus op_batch_statistics(OpCall *op, const Operand *x, double epsilon, const Operand *mean,
                                const Operand *inverse)
{
    const BatchNorm norm = {.alpha = 1, .factor = 1, .epsilon = epsilon};
    const PlannedView tensors[] = {reads(x), reads(NULL), writes(NULL)};
    const Operand *vectors[] = {NULL, NULL, NULL, NULL, mean, inverse, NULL};
    return plan_channels(op, us_batch_norm_training, &norm, 3, tensors, 7, vectors, 3, op_real(NAN, ACL_DOUBLE));
}

aclnnStatus op_batch_totals(OpCall *op, const Operand *x, const Operand *sum, const Operand *squares)
{
    const BatchNorm norm = {.alpha = 1, .epsilon = 1};
    const PlannedView tensors[] = {reads(x)};
    const Operand *vectors[] = {sum, squares};
    return plan_channels(op, us_batch_norm_totals, &norm, 1, tensors, 2, vectors, 2, ZERO);
}

aclnnStatus op_batch_elements(OpCall *op, const ChannelNorm *norm)
{
    const BatchNorm attributes = {.alpha = 1, .spread = SPREAD_INVERSE};
    const PlannedView tensors[] = {reads(norm->x), reads(NULL), writes(norm->y)};
    const Operand *vectors[] = {norm->scale, norm->offset, norm->mean, norm->inverse};
    return plan_channels(op, us_batch_norm_inference, &attributes, 3, tensors, 4, vectors, 0, ZERO);
}

aclnnStatus op_batch_slopes(OpCall *op, const ChannelSlopes *slopes)
{
    const BatchNorm norm = {.alpha = 1};
    const PlannedView tensors[] = {reads(slopes->x), reads(slopes->dy)};
    const Operand *vectors[] = {slopes->mean,    slopes->inverse,        slopes->sum,
                                slopes->product, slopes->scale_gradient, slopes->offset_gradient};
    return plan_channels(op, us_batch_norm_slopes, &norm, 2, tensors, 6, vectors, 4, ZERO);
}

aclnnStatus op_batch_from_sums(OpCall *op, const ChannelSlopes *slopes)
{
    if (op_refused(op) || op_empty(slopes->x)) {
        return op_plan_nothing(op);
    }
    const BatchNorm norm = {.alpha = 1};
    const Operand *vectors[] = {slopes->scale, slopes->mean, slopes->inverse, slopes->sum, slopes->product};
    View views[5];
    PlannedView planned[9] = {reads(slopes->x), reads(slopes->dy), writes(slopes->dx)};
    for (int i = 0; i < 5; i++) {
        views[i] = along_channels(vectors[i], slopes->x->view.rank);
        planned[3 + i] = (PlannedView){vectors[i], VIEW_READ, &views[i]};
    }
    planned[8] = reads(slopes->count);
    return op_plan_views(op, us_batch_norm_from_sums, &norm, sizeof norm, 9, planned);
}

aclnnStatus op_gather_statistics(OpCall *op, const GatheredStatistics *gathered)
{
    const GatherStatistics attributes = {gathered->momentum, gathered->epsilon, gathered->sums};
    const PlannedView views[] = {reads(gathered->first),
                                 reads(gathered->second),
                                 reads(gathered->counts),
                                 {gathered->running_mean, VIEW_READ_WRITE, NULL},
                                 {gathered->running_variance, VIEW_READ_WRITE, NULL},
                                 writes(gathered->mean),
                                 writes(gathered->inverse)};
    return op_plan_views(op, us_gather_statistics, &attributes, sizeof attributes, 7, views);
}

/* ---- slices ---- */

aclnnStatus op_renorm(OpCall *op, const Operand *x, double p, int32_t axis, double limit, const Operand *y)
{
    if (op_refused(op) || op_empty(x)) {
        return op_plan_nothing(op);
    }
    const Renorm renorm = {axis, p, limit};
    const PlannedView views[] = {reads(x), writes(y)};
    return op_plan_views(op, us_renorm, &renorm, sizeof renorm, 2, views);
}

aclnnStatus op_renorm_rows(OpCall *op, const Operand *x, const Operand *indices, double p, double limit)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const Renorm renorm = {0, p, limit};
    const PlannedView views[] = {{x, VIEW_READ_WRITE, NULL}, reads(indices)};
    return op_plan_views(op, us_renorm_rows, &renorm, sizeof renorm, 2, views);
}
