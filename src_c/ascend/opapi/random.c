/* Random numbers and dropout: src_c/kernels/random and src_c/kernels/random/dropout.h. */
#include "ascend/opapi/random.h"

#include "kernels/map/formulas.h"
#include "kernels/random/dropout.h"

#define NOTHING ((PlannedView){NULL, VIEW_READ, NULL})

static aclnnStatus plan_draws(OpCall *op, const Draws *draws, const Operand *seed, const Operand *offset,
                              PlannedView first, const Operand *second, const Operand *out)
{
    if (!op_refused(op) && op_empty(out)) {
        return op_plan_nothing(op);
    }
    const PlannedView views[] = {{out, VIEW_WRITE, NULL},
                                 {seed, VIEW_READ, NULL},
                                 {offset, VIEW_READ, NULL},
                                 first,
                                 {second, VIEW_READ, NULL}};
    return op_plan_views(op, us_draws, draws, sizeof *draws, 5, views);
}

aclnnStatus op_normal(OpCall *op, RandomStream stream, const Operand *seed, const Operand *offset, const Operand *mean,
                      const Operand *deviation, double mean_number, double deviation_number, const Operand *out)
{
    const Draws draws = {.distribution = DRAW_NORMAL, .stream = stream, .a = mean_number, .b = deviation_number};
    return plan_draws(op, &draws, seed, offset, (PlannedView){mean, VIEW_READ, NULL}, deviation, out);
}

aclnnStatus op_uniform(OpCall *op, RandomStream stream, const Operand *seed, const Operand *offset, double from,
                       double to, const Operand *out)
{
    const Draws draws = {.distribution = DRAW_UNIFORM, .stream = stream, .a = from, .b = to};
    return plan_draws(op, &draws, seed, offset, NOTHING, NULL, out);
}

aclnnStatus op_exponential(OpCall *op, RandomStream stream, double rate, const Operand *out)
{
    const Draws draws = {.distribution = DRAW_EXPONENTIAL, .stream = stream, .a = rate};
    return plan_draws(op, &draws, NULL, NULL, NOTHING, NULL, out);
}

aclnnStatus op_bernoulli(OpCall *op, RandomStream stream, double probability, const Operand *each, const Operand *out)
{
    const Draws draws = {.distribution = DRAW_BERNOULLI, .stream = stream, .a = probability};
    if (!op_given(each)) {
        return plan_draws(op, &draws, NULL, NULL, NOTHING, NULL, out);
    }
    View probabilities = each->view;
    if (op_elements(each) == 1) {
        probabilities = (View){.data = each->view.data, .dtype = each->view.dtype, .rank = 1,
                               .shape = {op_elements(out)}};
    }
    return plan_draws(op, &draws, NULL, NULL, (PlannedView){each, VIEW_READ, &probabilities}, NULL, out);
}

bool op_reaches(aclDataType dtype, int64_t number)
{
    static const int64_t largest[] = {[ACL_INT8] = INT8_MAX,   [ACL_UINT8] = UINT8_MAX, [ACL_INT16] = INT16_MAX,
                                      [ACL_INT32] = INT32_MAX, [ACL_BOOL] = 1,          [ACL_FLOAT16] = 65504};
    const size_t known = sizeof largest / sizeof *largest;
    return (size_t)dtype >= known || largest[dtype] == 0 || number <= largest[dtype];
}

aclnnStatus op_random_integers(OpCall *op, RandomStream stream, const Operand *seed, const Operand *offset, int64_t from,
                               int64_t to, const Operand *out)
{
    const Draws draws = {.distribution = DRAW_INTEGER, .stream = stream, .from = from,
                         .range = (uint64_t)to - (uint64_t)from};
    return plan_draws(op, &draws, seed, offset, NOTHING, NULL, out);
}

aclnnStatus op_permutation(OpCall *op, RandomStream stream, const Operand *out)
{
    if (!op_refused(op) && op_empty(out)) {
        return op_plan_nothing(op);
    }
    return op_plan_views(op, us_permutation, &stream, sizeof stream, 1, &(PlannedView){out, VIEW_WRITE, NULL});
}

/* ---- leaky units with random slopes ---- */

/* views: self, noise (of self's shape), out */
static KernelStatus random_slopes(const View *views, const void *attributes)
{
    const DType dtype = views[0].dtype;
    const View nothing = us_view_absent();
    const MapCall choose = {.formula = &us_map_rrelu_slope, .compute = dtype, .result = dtype, .inputs = 2,
                            .outputs = 1, .items = 1};
    const MapCall multiply = {.formula = &us_map_mul, .compute = dtype, .result = dtype, .inputs = 2, .outputs = 1,
                              .items = 1};
    KernelStatus status = us_draws((const View[]){views[1], nothing, nothing, nothing, nothing}, attributes);
    if (status == KERNEL_OK) {
        status = us_map((const View[]){views[0], views[1], views[1]}, &choose);
    }
    return status != KERNEL_OK ? status : us_map((const View[]){views[0], views[1], views[2]}, &multiply);
}

aclnnStatus op_rrelu(OpCall *op, const Operand *self, const Operand *noise, double lower, double upper, bool training,
                     RandomStream stream, const Operand *out)
{
    const bool is_alike = us_view_same_shape(&self->view, &noise->view);
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    if (!training) {
        return op_map(op, &us_map_leaky_relu, self->dtype, OPERANDS(self), OPERANDS(out),
                      NUMBERS(op_real((lower + upper) / 2, ACL_DOUBLE)));
    }
    const View factors = is_alike ? noise->view
                                  : us_view_contiguous(noise->view.data, noise->view.dtype, self->view.rank,
                                                       self->view.shape);
    const Draws draws = {.distribution = DRAW_UNIFORM, .stream = stream, .a = lower, .b = upper};
    const PlannedView views[] = {{self, VIEW_READ, NULL}, {noise, VIEW_WRITE, &factors}, {out, VIEW_WRITE, NULL}};
    return op_plan_views(op, random_slopes, &draws, sizeof draws, 3, views);
}

/* ---- classes ---- */

Shape op_shape_samples(OpCall *op, const Operand *self, int64_t count)
{
    (void)op;
    Shape shape = op_shape(self);
    if (shape.rank > 0) {
        shape.sizes[shape.rank - 1] = count;
    }
    return shape;
}

/* A row as one of a matrix. */
static View as_rows(const Operand *operand)
{
    return operand->view.rank == 1 ? us_view_insert_axis(operand->view, 0, 1, 0) : operand->view;
}

aclnnStatus op_multinomial(OpCall *op, RandomStream stream, const Operand *seed, const Operand *offset, bool replaces,
                           const Operand *self, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const Multinomial call = {stream, replaces};
    const View weights = as_rows(self), samples = as_rows(out);
    const PlannedView views[] = {
        {self, VIEW_READ, &weights}, {out, VIEW_WRITE, &samples}, {seed, VIEW_READ, NULL}, {offset, VIEW_READ, NULL}};
    return op_plan_views(op, us_multinomial, &call, sizeof call, 4, views);
}

/* ---- dropout ---- */

/* As the client reads it as well: align(elements, 128) / 8. */
static Shape mask_shape(int64_t elements)
{
    const int64_t bytes = elements < 0 ? -1 : elements / 128 * 16 + (elements % 128 != 0) * 16;
    return op_shape_of(1, &bytes);
}

Shape op_shape_dropout_mask(OpCall *op, const Operand *operand)
{
    (void)op;
    return mask_shape(op_elements(operand));
}

Shape op_shape_dropout_mask_of(OpCall *op, IntArguments sizes)
{
    return mask_shape(op_refused(op) ? 0 : us_shape_elements((int32_t)sizes.count, sizes.values));
}

aclnnStatus op_dropout_mask(OpCall *op, IntArguments sizes, double drop, RandomStream stream, const Operand *seed,
                            const Operand *offset, const Operand *mask)
{
    if (op_refused(op) || op_empty(mask)) {
        return op_plan_nothing(op);
    }
    const DrawsWith call = {{.stream = stream, .a = drop}, us_shape_elements((int32_t)sizes.count, sizes.values)};
    const PlannedView views[] = {{mask, VIEW_WRITE, NULL}, {seed, VIEW_READ, NULL}, {offset, VIEW_READ, NULL}, NOTHING, NOTHING};
    return op_plan_views(op, us_draws_with, &call, sizeof call, 5, views);
}

double op_dropout_scale(double drop)
{
    return drop < 1 ? 1 / (1 - drop) : 0;
}

aclnnStatus op_dropout_masked(OpCall *op, const Operand *self, const Operand *mask, double scale, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    if (scale == 0) {
        return op_fill(op, out, ZERO);
    }
    if (scale == 1) {
        return op_copy(op, self, out);
    }
    const DropoutScale call = {scale};
    const PlannedView views[] = {{self, VIEW_READ, NULL}, {out, VIEW_WRITE, NULL}, {mask, VIEW_READ, NULL}};
    return op_plan_views(op, us_dropout_masked, &call, sizeof call, 3, views);
}

/* Draws the mask and uses it. */
typedef struct WholeDropout {
    DropoutMask mask;
    DropoutScale scale;
} WholeDropout;

static KernelStatus whole_dropout(const View *views, const void *attributes)
{
    const WholeDropout *call = attributes;
    const KernelStatus status = us_dropout_mask(&views[2], &call->mask);
    return status != KERNEL_OK ? status : us_dropout_masked(views, &call->scale);
}

aclnnStatus op_dropout(OpCall *op, const Operand *self, double drop, RandomStream stream, const Operand *out,
                       const Operand *mask)
{
    const double scale = op_dropout_scale(drop);
    if (op_refused(op) || op_empty(out) || scale == 0 || scale == 1) {
        return op_dropout_masked(op, self, mask, scale, out);
    }
    const WholeDropout call = {{stream, drop, op_elements(self)}, {scale}};
    return op_plan_operands(op, whole_dropout, &call, sizeof call, OPERANDS(self), OPERANDS(out, mask));
}
