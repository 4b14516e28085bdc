/* Operators by name of boxes: what two have in common, how one becomes another, which of many are chosen, and what an
 * image shows within them. */
#include "aclnnop/aclnn_roi_align_v2.h"
#include "aclnnop/aclnn_roi_align_v2_backward.h"
#include "ascend/op_compiler/calls.h"
#include "kernels/map/formulas.h"
#include "kernels/sort/suppress.h"

enum { NUMBERS = 4 }; /* of a box */

/* Number `number` of each box, along axis `own` of what is computed, which has `rank` axes. */
static View number_of_boxes(const View *boxes, int32_t axis, int64_t number, int32_t own, int32_t rank)
{
    View view = *boxes;
    const int64_t offset = number * boxes->strides[axis] * (int64_t)us_dtype_size(boxes->dtype);
    const int64_t count = boxes->shape[1 - axis], stride = boxes->strides[1 - axis];
    view.data = boxes->data == NULL ? NULL : (char *)boxes->data + offset;
    view.rank = rank;
    for (int32_t i = 0; i < rank; i++) {
        view.shape[i] = i == own ? count : 1;
        view.strides[i] = i == own ? stride : 0;
    }
    return view;
}

/* A formula in float32, of `inputs` and `outputs` views. */
static void run_formula(Named *named, const MapFormula *formula, int32_t inputs, const View *views,
                        const double *numbers)
{
    MapCall call = {.formula = formula, .compute = DTYPE_FLOAT32, .result = DTYPE_FLOAT32, .inputs = inputs,
                    .outputs = formula->outputs, .items = 1};
    NamedViews list = {.count = 0};
    for (int32_t i = 0; i < formula->numbers; i++) {
        call.numbers[i] = (Number){numbers[i], 0, 0};
    }
    for (int32_t i = 0; i < inputs + formula->outputs; i++) {
        (i < inputs ? named_read : named_write)(&list, &views[i]);
    }
    named_run(named, us_map, &list, &call, sizeof call);
}

/* float32 or float16. */
static void require_real(Named *named, int32_t index)
{
    const DType dtype = named->call.status == 0 ? named->inputs[index].dtype : DTYPE_FLOAT32;
    us_require(&named->call, dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT16, "inputDesc", "type",
               ACL_ERROR_OP_INPUT_NOT_MATCH, "input %d of %s is of type %s; it must be float32 or float16", (int)index,
               named->type, us_dtype_name(dtype));
}

/* ---- how much two boxes have in common ---- */

/* Inputs `first` and behind it, [4, n] and [4, m]; true: middles and sizes, not corners. */
static bool require_pairs(Named *named, int32_t first)
{
    const bool centred = named_bool(named, "trans", false);
    named_require_attribute(named, "mode", named_is(named, "mode", true, "iou"), "\"iou\"");
    for (int32_t i = first; i < first + 2 && named->call.status == 0; i++) {
        named_require_input(named, i, 2);
        require_real(named, i);
        const int64_t shape[] = {NUMBERS, named->inputs[i].shape[1]};
        named_require_shape(named, true, i, named->inputs[first].dtype, 2, shape);
    }
    return centred;
}

static void require_one_to_one(Named *named, int32_t first)
{
    if (named->call.status == 0) {
        named_require_shape(named, true, first + 1, DTYPE_NONE, 2, named->inputs[first].shape);
    }
}

/* Row 0 has box i with box i of the others, or row k all boxes with number k of the others. */
static void overlap(Named *named, const MapFormula *formula)
{
    named_require_counts(named, 2, 2, 1);
    const bool crossed = named_bool(named, "is_cross", true), centred = require_pairs(named, 0);
    if (!crossed) {
        require_one_to_one(named, 0);
    }
    if (named->call.status != 0) {
        return;
    }
    const View *boxes = &named->inputs[0], *others = &named->inputs[1];
    const int64_t shape[] = {crossed ? others->shape[1] : 1, boxes->shape[1]};
    named_require_shape(named, false, 0, boxes->dtype, 2, shape);
    View views[2 * NUMBERS + 1];
    for (int64_t i = 0; i < 2 * NUMBERS; i++) {
        views[i] = number_of_boxes(i < NUMBERS ? boxes : others, 0, i % NUMBERS, i < NUMBERS || !crossed, 2);
    }
    views[2 * NUMBERS] = named->outputs[0];
    run_formula(named, formula, 2 * NUMBERS, views, (const double[]){centred});
}

void named_giou(Named *named)
{
    overlap(named, &us_map_box_generalized_overlap);
}

void named_diou(Named *named)
{
    overlap(named, &us_map_box_distance_overlap);
}

/* Slopes of pairs, in any shape, boxes, others; their slopes. What two boxes have in common does not depend on their
 * order, so one formula gives both. */
static void overlap_backward(Named *named, const MapFormula *formula)
{
    enum { SLOPES, BOXES, OTHERS };
    named_require_counts(named, 3, 3, 2);
    named_require_input(named, SLOPES, -1);
    named_require_attribute(named, "is_cross", !named_bool(named, "is_cross", true), "false");
    const bool centred = require_pairs(named, BOXES);
    require_one_to_one(named, BOXES);
    if (named->call.status != 0) {
        return;
    }
    const int64_t count = named->inputs[BOXES].shape[1], given = us_view_elements(&named->inputs[SLOPES]);
    us_require(&named->call, given == count, "inputDesc", "shape", ACL_ERROR_OP_INPUT_NOT_MATCH,
               "input 0 of %s has %lld elements; there are %lld pairs of boxes", named->type, (long long)given,
               (long long)count);
    const DType dtype = named->inputs[BOXES].dtype;
    named_require_shape(named, true, SLOPES, dtype, named->inputs[SLOPES].rank, named->inputs[SLOPES].shape);
    for (int32_t k = 0; k < 2; k++) {
        named_require_shape(named, false, k, dtype, 2, named->inputs[BOXES].shape);
    }
    const View slopes = us_view_contiguous(named->inputs[SLOPES].data, dtype, 1, &count);
    for (int32_t k = 0; k < 4; k++) {
        const int32_t box = k / 2, down = k % 2;
        View views[2 * NUMBERS + 3];
        for (int64_t i = 0; i < NUMBERS; i++) {
            views[i] = number_of_boxes(&named->inputs[BOXES + box], 0, i, 0, 1);
            views[NUMBERS + i] = number_of_boxes(&named->inputs[OTHERS - box], 0, i, 0, 1);
        }
        views[2 * NUMBERS] = slopes;
        views[2 * NUMBERS + 1] = number_of_boxes(&named->outputs[box], 0, down, 0, 1);
        views[2 * NUMBERS + 2] = number_of_boxes(&named->outputs[box], 0, down + 2, 0, 1);
        run_formula(named, formula, 2 * NUMBERS + 1, views, (const double[]){centred, down});
    }
}

void named_giou_grad(Named *named)
{
    overlap_backward(named, &us_map_box_generalized_overlap_backward);
}

void named_diou_grad(Named *named)
{
    overlap_backward(named, &us_map_box_distance_overlap_backward);
}

/* ---- from one box to another ---- */

/* Four numbers of a list, or what they are where it has not been set. */
static void four_numbers(Named *named, const char *attribute, double other, double *numbers)
{
    const int32_t count = named_numbers(named, attribute, numbers, NUMBERS);
    named_require_attribute(named, attribute, count == NUMBERS || count == 0, "a list of 4 numbers");
    for (int32_t i = count; i < NUMBERS; i++) {
        numbers[i] = other;
    }
}

/* Two inputs and a result of [n, 4]. */
static void code(Named *named, const MapFormula *formula, double *numbers)
{
    named_require_counts(named, 2, 2, 1);
    four_numbers(named, "means", 0, numbers);
    four_numbers(named, "stds", 1, numbers + NUMBERS);
    named_require_input(named, 0, 2);
    named_require_input(named, 1, 2);
    require_real(named, 0);
    if (named->call.status != 0) {
        return;
    }
    const int64_t shape[] = {named->inputs[0].shape[0], NUMBERS};
    const DType dtype = named->inputs[0].dtype;
    named_require_shape(named, true, 0, dtype, 2, shape);
    named_require_shape(named, true, 1, dtype, 2, shape);
    named_require_shape(named, false, 0, dtype, 2, shape);
    View views[3 * NUMBERS];
    for (int64_t i = 0; i < 3 * NUMBERS; i++) {
        const View *boxes = i < 2 * NUMBERS ? &named->inputs[i / NUMBERS] : &named->outputs[0];
        views[i] = number_of_boxes(boxes, 1, i % NUMBERS, 0, 1);
    }
    run_formula(named, formula, 2 * NUMBERS, views, numbers);
}

void named_bounding_box_encode(Named *named)
{
    double numbers[2 * NUMBERS] = {0};
    code(named, &us_map_box_encode, numbers);
}

/* max_shape is height and width; no side grows or shrinks by more than wh_ratio_clip, or 1 over it. */
void named_bounding_box_decode(Named *named)
{
    double numbers[2 * NUMBERS + 3] = {0}, *limits = numbers + 2 * NUMBERS;
    int64_t shape[2] = {0};
    const int32_t count = named_integers(named, "max_shape", shape, 2);
    named_require_attribute(named, "max_shape", count == 2, "a list of 2 integers");
    const double clip = named_number(named, "wh_ratio_clip", 0.016);
    named_require_attribute(named, "wh_ratio_clip", clip > 0, "above 0");
    limits[0] = (double)shape[1] - 1;
    limits[1] = (double)shape[0] - 1;
    limits[2] = clip;
    code(named, &us_map_box_decode, numbers);
}

/* ---- which boxes are chosen ---- */

/* Boxes and scores [n, 5 or more]; the first five columns, their numbers and whether they are chosen. */
void named_nms_with_mask(Named *named)
{
    enum { COLUMNS = 5 };
    named_require_counts(named, 1, 1, 3);
    named_require_input(named, 0, 2);
    require_real(named, 0);
    const SuppressedMask how = {named_number(named, "iou_threshold", 0.5)};
    if (named->call.status != 0) {
        return;
    }
    const View *boxes = &named->inputs[0];
    us_require(&named->call, boxes->shape[1] >= COLUMNS, "inputDesc", "shape", ACL_ERROR_OP_INPUT_NOT_MATCH,
               "input 0 of %s has %lld columns; it must have 5 or more", named->type, (long long)boxes->shape[1]);
    named_require_shape(named, false, 0, boxes->dtype, 2, (const int64_t[]){boxes->shape[0], COLUMNS});
    named_require_shape(named, false, 1, DTYPE_INT32, 1, boxes->shape);
    named_require_shape(named, false, 2, DTYPE_UINT8, 1, boxes->shape);
    NamedViews views = {.count = 0};
    named_read(&views, boxes);
    for (int32_t i = 0; i < 3; i++) {
        named_write(&views, &named->outputs[i]);
    }
    named_run(named, us_suppressed_mask, &views, &how, sizeof how);
}

/* Boxes [n, 4], scores [n], how many at most, thresholds of overlaps and of scores; numbers of the chosen ones, how
 * many. */
void named_non_max_suppression(Named *named)
{
    enum { INPUTS = 5 };
    named_require_counts(named, INPUTS, INPUTS, 2);
    named_require_input(named, 0, 2);
    require_real(named, 0);
    if (named->call.status != 0) {
        return;
    }
    const View *boxes = &named->inputs[0];
    named_require_shape(named, true, 0, DTYPE_NONE, 2, (const int64_t[]){boxes->shape[0], NUMBERS});
    for (int32_t i = 1; i < INPUTS; i++) {
        const DType dtype = i == 2 ? DTYPE_INT32 : i == 1 ? boxes->dtype : DTYPE_FLOAT32;
        named_require_input(named, i, i == 1);
        named_require_shape(named, true, i, dtype, i == 1, boxes->shape);
    }
    us_require(&named->call, named->outputs[0].rank == 1, "outputDesc", "rank", ACL_ERROR_OP_OUTPUT_NOT_MATCH,
               "output 0 of %s has %d dimensions; it must have 1", named->type, (int)named->outputs[0].rank);
    named_require_shape(named, false, 0, DTYPE_INT32, 1, named->outputs[0].shape);
    named_require_shape(named, false, 1, DTYPE_INT32, 0, NULL);
    NamedViews views = {.count = 0};
    for (int32_t i = 0; i < INPUTS; i++) {
        named_read(&views, &named->inputs[i]);
    }
    named_write(&views, &named->outputs[0]);
    named_write(&views, &named->outputs[1]);
    named_run(named, us_suppressed, &views, NULL, 0);
}

static SuppressedClasses require_classes(Named *named, int64_t *room)
{
    const SuppressedClasses how = {named_number(named, "score_threshold", 0), named_number(named, "iou_threshold", 0),
                                   named_integer(named, "max_size_per_class", 0)};
    *room = named_integer(named, "max_total_size", 0);
    named_require_attribute(named, "max_size_per_class", how.most >= 1, "1 or more");
    named_require_attribute(named, "max_total_size", *room >= 1, "1 or more");
    named_require_attribute(named, "change_coordinate_frame", !named_bool(named, "change_coordinate_frame", false),
                            "false");
    named_require_attribute(named, "transpose_box", !named_bool(named, "transpose_box", false), "false");
    return how;
}

/* Boxes [images, n, 1 or classes, 4], scores [images, n, classes]; boxes, scores, classes and numbers of the chosen
 * ones. */
void named_batch_multi_class_non_max_suppression(Named *named)
{
    int64_t room = 0;
    named_require_counts(named, 2, 2, 4);
    named_require_input(named, 0, 4);
    named_require_input(named, 1, 3);
    require_real(named, 0);
    const SuppressedClasses how = require_classes(named, &room);
    if (named->call.status != 0) {
        return;
    }
    const View *boxes = &named->inputs[0], *scores = &named->inputs[1];
    const int64_t images = boxes->shape[0], count = boxes->shape[1], classes = scores->shape[2];
    const int64_t of_box = boxes->shape[2] == 1 ? 1 : classes;
    named_require_shape(named, true, 0, boxes->dtype, 4, (const int64_t[]){images, count, of_box, NUMBERS});
    named_require_shape(named, true, 1, boxes->dtype, 3, (const int64_t[]){images, count, classes});
    named_require_shape(named, false, 0, boxes->dtype, 3, (const int64_t[]){images, room, NUMBERS});
    named_require_shape(named, false, 1, boxes->dtype, 2, (const int64_t[]){images, room});
    named_require_shape(named, false, 2, boxes->dtype, 2, (const int64_t[]){images, room});
    named_require_shape(named, false, 3, DTYPE_INT32, 1, &images);
    NamedViews views = {.count = 0};
    named_read(&views, boxes);
    named_read(&views, scores);
    for (int32_t i = 0; i < 4; i++) {
        named_write(&views, &named->outputs[i]);
    }
    named_run(named, us_suppressed_classes, &views, &how, sizeof how);
}

/* ---- what an image shows within boxes ---- */

typedef struct RegionBins {
    int64_t height, width, samples;
    float scale;
    bool aligned;
} RegionBins;

/* roi_end_mode 3 is what the PyTorch adapter's ROIAlign tells for `aligned`. */
static RegionBins require_bins(Named *named)
{
    const RegionBins bins = {named_integer(named, "pooled_height", 0), named_integer(named, "pooled_width", 0),
                             named_integer(named, "sample_num", 2), (float)named_number(named, "spatial_scale", 1),
                             named_integer(named, "roi_end_mode", 1) == 3};
    named_require_attribute(named, "roi_end_mode", bins.aligned || named_integer(named, "roi_end_mode", 1) == 0,
                            "0 or 3");
    return bins;
}

void named_roi_align(Named *named)
{
    named_require_counts(named, 2, 2, 1);
    AclnnCall call = {.named = named};
    const RegionBins bins = require_bins(named);
    aclTensor *x = call_input(&call, 0), *boxes = call_input(&call, 1), *y = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnRoiAlignV2, x, boxes, bins.height, bins.width, bins.scale, bins.samples, bins.aligned, y);
}

void named_roi_align_grad(Named *named)
{
    named_require_counts(named, 2, 2, 1);
    AclnnCall call = {.named = named};
    int64_t shape[VIEW_RANK_LIMIT];
    const RegionBins bins = require_bins(named);
    const int32_t rank = named_integers(named, "xdiff_shape", shape, VIEW_RANK_LIMIT);
    aclIntArray *of_x = call_array(&call, shape, (uint64_t)rank);
    aclTensor *slopes = call_input(&call, 0), *boxes = call_input(&call, 1), *out = call_output(&call, 0);
    CALL_ACLNN(&call, aclnnRoiAlignV2Backward, slopes, boxes, of_x, bins.height, bins.width, bins.scale, bins.samples,
               bins.aligned, out);
}
