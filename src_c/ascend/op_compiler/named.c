#include "ascend/op_compiler/named.h"

#include "ascend/common/dtype.h"

#include <stdlib.h>
#include <string.h>

enum { LIST_LIMIT = 2 * VIEW_RANK_LIMIT }; /* elements of an attribute */

/* ---- operands ---- */

static aclError mismatch(bool input)
{
    return input ? ACL_ERROR_OP_INPUT_NOT_MATCH : ACL_ERROR_OP_OUTPUT_NOT_MATCH;
}

static const char *parameter(bool input)
{
    return input ? "inputDesc" : "outputDesc";
}

static const View *operand(const Named *named, bool input, int32_t index)
{
    return input ? &named->inputs[index] : &named->outputs[index];
}

void named_require_counts(Named *named, int32_t least_inputs, int32_t most_inputs, int32_t outputs)
{
    us_require(&named->call, named->input_count >= least_inputs && named->input_count <= most_inputs, "numInputs", "count",
               ACL_ERROR_OP_INPUT_NOT_MATCH, "%s has %d to %d inputs, not %d", named->type, (int)least_inputs,
               (int)most_inputs, (int)named->input_count);
    us_require(&named->call, named->output_count == outputs, "numOutputs", "count", ACL_ERROR_OP_OUTPUT_NOT_MATCH,
               "%s has %d outputs, not %d", named->type, (int)outputs, (int)named->output_count);
}

void named_require_input(Named *named, int32_t index, int32_t rank)
{
    if (named->call.status != 0) {
        return;
    }
    const View *view = &named->inputs[index];
    us_require(&named->call, !us_view_is_absent(view), "inputDesc", "absent", ACL_ERROR_OP_INPUT_NOT_MATCH,
               "input %d of %s has no type; it cannot be left out", (int)index, named->type);
    us_require(&named->call, rank < 0 || view->rank == rank, "inputDesc", "rank", ACL_ERROR_OP_INPUT_NOT_MATCH,
               "input %d of %s has %d dimensions; it must have %d", (int)index, named->type, (int)view->rank, (int)rank);
}

void named_require_absent(Named *named, int32_t index)
{
    const View *view = &named->inputs[index];
    us_require(&named->call, us_view_is_absent(view) || view->rank == 0, "inputDesc", "unsupported", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "input %d of %s is given, which is not emulated", (int)index, named->type);
}

void named_require_shape(Named *named, bool input, int32_t index, DType dtype, int32_t rank, const int64_t *shape)
{
    if (named->call.status != 0 || (input && index >= named->input_count)) {
        return;
    }
    const View *view = operand(named, input, index);
    if (us_view_is_absent(view)) {
        return;
    }
    const char *side = input ? "input" : "output";
    us_require(&named->call, dtype == DTYPE_NONE || view->dtype == dtype, parameter(input), "type", mismatch(input),
               "%s %d of %s is of type %s; it must be of %s", side, (int)index, named->type, us_dtype_name(view->dtype),
               us_dtype_name(dtype));
    us_require(&named->call, view->rank == rank, parameter(input), "rank", mismatch(input),
               "%s %d of %s has %d dimensions; it must have %d", side, (int)index, named->type, (int)view->rank, (int)rank);
    for (int32_t axis = 0; axis < rank && named->call.status == 0; axis++) {
        us_require(&named->call, view->shape[axis] == shape[axis], parameter(input), "shape", mismatch(input),
                   "%s %d of %s has size %lld in dimension %d; it must be %lld", side, (int)index, named->type,
                   (long long)view->shape[axis], (int)axis, (long long)shape[axis]);
    }
}

/* ---- attributes: "axis=1, keep_dims=true, mode=\"a, b\"" ---- */

/* Behind the value that begins at `text`. */
static const char *end_of(const char *text)
{
    bool quoted = false;
    int depth = 0;
    for (; *text != '\0' && (quoted || depth > 0 || *text != ','); text++) {
        quoted ^= *text == '"';
        depth += quoted ? 0 : (*text == '[') - (*text == ']');
    }
    return text;
}

/* Where the value of the attribute begins that was set last; NULL: it was not set. */
static const char *value_of(const Named *named, const char *attribute)
{
    const size_t length = strlen(attribute);
    const char *found = NULL, *text = named->attributes != NULL ? named->attributes->text : NULL;
    while (text != NULL && *text != '\0') {
        const char *value = strchr(text, '=');
        if (value == NULL) {
            return found;
        }
        if ((size_t)(value - text) == length && memcmp(text, attribute, length) == 0) {
            found = value + 1;
        }
        text = end_of(value + 1);
        text += strspn(text, ", ");
    }
    return found;
}

static void require_kind(Named *named, const char *attribute, bool fits, const char *kind)
{
    us_require(&named->call, fits, "attr", "type", ACL_ERROR_OP_ATTR_NOT_MATCH, "%s of %s is not %s", attribute, named->type,
               kind);
}

static bool ends(const char *text)
{
    return *text == '\0' || *text == ',';
}

int64_t named_integer(Named *named, const char *attribute, int64_t other)
{
    const char *text = value_of(named, attribute);
    char *end = NULL;
    const int64_t value = text != NULL ? strtoll(text, &end, 10) : other;
    require_kind(named, attribute, text == NULL || (end != text && ends(end)), "an integer");
    return value;
}

/* Where the elements of a list begin; 0: it has not been set. */
static int32_t list_items(Named *named, const char *attribute, const char *kind, const char **items, int32_t limit)
{
    const char *text = value_of(named, attribute);
    int32_t count = 0;
    require_kind(named, attribute, text == NULL || *text == '[', kind);
    for (; text != NULL && named->call.status == 0 && *text != ']' && text[1] != ']'; count++) {
        require_kind(named, attribute, count < limit && text[1] != '\0', kind);
        if (named->call.status == 0) {
            items[count] = text + 1;
            text += 1 + strcspn(text + 1, ",]");
        }
    }
    return named->call.status == 0 ? count : 0;
}

static bool ends_item(const char *begin, const char *end)
{
    return end != begin && (*end == ',' || *end == ']');
}

int32_t named_integers(Named *named, const char *attribute, int64_t *values, int32_t limit)
{
    const char *items[LIST_LIMIT];
    require_kind(named, attribute, value_of(named, attribute) != NULL, "a list of integers");
    const int32_t count = list_items(named, attribute, "a list of integers", items, limit);
    for (int32_t i = 0; i < count; i++) {
        char *end = NULL;
        values[i] = strtoll(items[i], &end, 10);
        require_kind(named, attribute, ends_item(items[i], end), "a list of integers");
    }
    return count;
}

int32_t named_numbers(Named *named, const char *attribute, double *values, int32_t limit)
{
    const char *items[LIST_LIMIT];
    const int32_t count = list_items(named, attribute, "a list of numbers", items, limit);
    for (int32_t i = 0; i < count; i++) {
        char *end = NULL;
        values[i] = (double)strtof(items[i], &end);
        require_kind(named, attribute, ends_item(items[i], end), "a list of numbers");
    }
    return count;
}

double named_number(Named *named, const char *attribute, double other)
{
    const char *text = value_of(named, attribute);
    char *end = NULL;
    const double value = text != NULL ? (double)strtof(text, &end) : other;
    require_kind(named, attribute, text == NULL || (end != text && ends(end)), "a number");
    return value;
}

bool named_bool(Named *named, const char *attribute, bool other)
{
    const char *text = value_of(named, attribute);
    const bool is_true = text != NULL && strncmp(text, "true", 4) == 0 && ends(text + 4);
    const bool is_false = text != NULL && strncmp(text, "false", 5) == 0 && ends(text + 5);
    require_kind(named, attribute, text == NULL || is_true || is_false, "true or false");
    return text == NULL ? other : is_true;
}

bool named_is(Named *named, const char *attribute, bool is_default, const char *text)
{
    const char *value = value_of(named, attribute);
    const size_t length = strlen(text);
    if (value == NULL) {
        return is_default;
    }
    require_kind(named, attribute, *value == '"', "a string");
    return *value == '"' && strncmp(value + 1, text, length) == 0 && value[length + 1] == '"';
}

void named_require_attribute(Named *named, const char *attribute, bool fits, const char *values)
{
    const char *value = value_of(named, attribute);
    us_require(&named->call, fits, "attr", "value", ACL_ERROR_OP_ATTR_NOT_MATCH, "%s of %s is %.*s; it must be %s", attribute,
               named->type, value != NULL ? (int)(end_of(value) - value) : 0, value != NULL ? value : "", values);
}

/* ---- the task ---- */

static void add(NamedViews *views, const View *view, ViewAccess access)
{
    views->views[views->count] = view;
    views->access[views->count++] = access;
}

void named_read(NamedViews *views, const View *view)
{
    add(views, view, VIEW_READ);
}

void named_write(NamedViews *views, const View *view)
{
    add(views, view, VIEW_WRITE);
}

void named_run(Named *named, Kernel *kernel, const NamedViews *views, const void *attributes, size_t size)
{
    if (named->call.status != 0) {
        return;
    }
    const View absent = us_view_absent(), *pointers[2 * NAMED_LIMIT];
    const char *names[2 * NAMED_LIMIT];
    for (int32_t i = 0; i < views->count; i++) {
        pointers[i] = views->views[i] != NULL ? views->views[i] : &absent;
        names[i] = views->access[i] == VIEW_READ ? "inputs" : "outputs";
    }
    const LaunchTask task = {.function = named->type, .kernel = kernel, .view_count = views->count,
                             .views = pointers, .names = names, .access = views->access, .attributes = attributes,
                             .attribute_size = size};
    us_require(&named->call, us_launch_submit_task(&task, named->stream), "stream", "memory", ACL_ERROR_BAD_ALLOC,
               "no host memory to queue %s", named->type);
}
