/* Rotary embeddings. */
#include "ascend/opapi/rotary.h"

#include "kernels/attention/cached_rotary.h"
#include "kernels/attention/rotary.h"
#include "kernels/map/formulas.h"

/* ---- parts of a view ---- */

/* The halves of an axis, or its even and odd places. */
static void halve(const View *view, int32_t axis, bool pairs, View *parts)
{
    parts[0] = us_view_half(*view, axis, false, pairs);
    parts[1] = us_view_half(*view, axis, true, pairs);
}

/* The first and the second halves of its halves. */
static void quarter(const View *view, int32_t axis, View *parts)
{
    View split = *view;
    const int64_t half = view->shape[axis] / 2;
    split.rank++;
    split.shape[axis] = 2;
    split.strides[axis] = half * view->strides[axis];
    split.shape[axis + 1] = half;
    split.strides[axis + 1] = view->strides[axis];
    halve(&split, axis + 1, false, parts);
}

int64_t op_rotary_mode(const char *name)
{
    return strcmp(name, "half") == 0 ? ROTARY_HALF : strcmp(name, "interleave") == 0 ? ROTARY_INTERLEAVED
           : strcmp(name, "quarter") == 0 ? ROTARY_QUARTER : -1;
}

void op_require_rotary(OpCall *op, const Operand *x, const Operand *cos, int64_t mode)
{
    if (op_refused(op)) {
        return;
    }
    const View *a = &x->view, *b = &cos->view;
    const int64_t parts = mode == ROTARY_QUARTER ? 4 : 2;
    bool fits = a->shape[a->rank - 1] % parts == 0 && a->shape[a->rank - 1] == b->shape[b->rank - 1];
    for (int32_t axis = 0; axis + 1 < a->rank; axis++) {
        fits = fits && (b->shape[axis] == 1 || b->shape[axis] == a->shape[axis]);
    }
    op_require(op, fits, cos->name, "rotary", op->invalid,
               "%s is %s, %s is %s: sizes are equal, or 1 in %s but the last, which %lld divides", cos->name,
               op_shape_text(op, cos), x->name, op_shape_text(op, x), cos->name, (long long)parts);
}

bool op_differ_in_heads(const Operand *a, const Operand *b, int64_t layout)
{
    const int32_t heads = layout == 3 ? 1 : 2;
    for (int32_t axis = 0; axis < 4; axis++) {
        if (axis != heads && a->view.shape[axis] != b->view.shape[axis]) {
            return false;
        }
    }
    return true;
}

/* `sorted`: as cos, sin and the result have the pairs. */
static void pairs(const View *view, int64_t mode, bool sorted, View *parts)
{
    const int32_t last = view->rank - 1;
    if (mode == ROTARY_QUARTER) {
        quarter(view, last, parts);
    } else {
        halve(view, last, mode == ROTARY_INTERLEAVED || (mode == ROTARY_SORTED && !sorted), parts);
    }
}

enum { ROTARY_VIEWS = 8, ROTARY_LIMIT = 2 };

aclnnStatus op_rotary(OpCall *op, int32_t count, const Operand *const *x, const Operand *cos, const Operand *sin,
                      int64_t mode, const Operand *const *out)
{
    if (op_refused(op) || (count == 1 && op_empty(x[0]))) {
        return op_plan_nothing(op);
    }
    View views[ROTARY_LIMIT * ROTARY_VIEWS];
    PlannedView planned[ROTARY_LIMIT * ROTARY_VIEWS];
    for (int32_t item = 0; item < count; item++) {
        View *own = views + item * ROTARY_VIEWS;
        pairs(&x[item]->view, mode, false, own);
        pairs(&cos->view, mode, true, own + 2);
        pairs(&sin->view, mode, true, own + 4);
        pairs(&out[item]->view, mode, true, own + 6);
        const Operand *operands[] = {x[item], cos, sin, out[item]};
        for (int i = 0; i < ROTARY_VIEWS; i++) {
            planned[item * ROTARY_VIEWS + i] = (PlannedView){operands[i / 2], i < 6 ? VIEW_READ : VIEW_WRITE, &own[i]};
        }
    }
    const MapCall call = {.formula = &us_map_rotate, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .inputs = 6,
                          .outputs = 2, .items = count};
    return op_plan_views(op, us_map, &call, sizeof call, count * ROTARY_VIEWS, planned);
}

aclnnStatus op_rotary_backward(OpCall *op, const RotaryBackward *rotary)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    if (op_empty(rotary->dy)) {
        return op_given(rotary->x) ? op_fill_all(op, OPERANDS(rotary->dcos, rotary->dsin), ZERO) : op_plan_nothing(op);
    }
    const Operand *operands[] = {rotary->dy, rotary->x,    rotary->cos, rotary->sin,
                                 rotary->dx, rotary->dcos, rotary->dsin};
    View views[14];
    PlannedView planned[14];
    for (int i = 0; i < 7; i++) {
        const bool absent = !op_given(operands[i]), sorted = operands[i] != rotary->x && operands[i] != rotary->dx;
        View *own = views + 2 * i;
        if (absent) {
            own[0] = own[1] = us_view_absent();
        } else {
            pairs(&operands[i]->view, rotary->mode, sorted, own);
        }
        for (int k = 0; k < 2; k++) {
            planned[2 * i + k] = (PlannedView){operands[i], i < 4 ? VIEW_READ : VIEW_WRITE, &own[k]};
        }
    }
    return op_plan_views(op, us_rotary_backward, NULL, 0, 14, planned);
}

aclnnStatus op_rotary_product(OpCall *op, const Operand *x, const Operand *cos, const Operand *sin, const Operand *matrix,
                              const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    return op_plan_operands(op, us_rotary_product, NULL, 0, OPERANDS(x, cos, sin, matrix), OPERANDS(out));
}

/* ---- angles from a table ---- */

int64_t op_rotary_pairs(IntArguments sections)
{
    int64_t pairs = 0;
    for (int64_t i = 0; i < sections.count; i++) {
        pairs += sections.values[i];
    }
    return pairs;
}

int32_t op_require_rotary_sections(OpCall *op, IntArguments sections, bool second)
{
    static const struct { int64_t count, values[ROTARY_SECTIONS]; } known[] = {
        {3, {11, 11, 10}}, {3, {16, 24, 24}}, {3, {24, 20, 20}}, {3, {8, 12, 12}}, {4, {16, 16, 16, 16}}, {3, {0}}, {4, {0}},
    };
    bool fits = !sections.given;
    for (size_t i = second ? 0 : 1; i < sizeof known / sizeof *known && !fits; i++) {
        fits = sections.count == known[i].count &&
               memcmp(sections.values, known[i].values, (size_t)sections.count * sizeof *sections.values) == 0;
    }
    op_require(op, fits, sections.name, "value", op->invalid,
               "%s, of %lld integers, is none of %s[16,24,24], [24,20,20], [8,12,12] and [16,16,16,16]", sections.name,
               (long long)sections.count, second ? "[11,11,10], " : "");
    return fits && sections.given && op_rotary_pairs(sections) > 0 ? (int32_t)sections.count : 0;
}

aclnnStatus op_cached_rotary(OpCall *op, const Operand *positions, const Operand *query, const Operand *key,
                             const Operand *table, IntArguments sections, int32_t section_count, bool alternates,
                             int64_t head, bool halves, const Operand *query_out, const Operand *key_out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    CachedRotary call = {.head = head, .interleaved = !halves, .alternates = alternates, .section_count = section_count};
    for (int32_t i = 0; i < section_count; i++) {
        call.sections[i] = sections.values[i];
    }
    return op_plan_operands(op, us_cached_rotary, &call, sizeof call, OPERANDS(positions, query, key, table),
                            OPERANDS(query_out, key_out));
}
