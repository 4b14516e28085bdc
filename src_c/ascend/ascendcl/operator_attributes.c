/* aclopAttr: named values for operators by name, kept as one text that a refusal shows and op_compiler reads. */
#include "ascend/ascendcl/runtime.h"
#include "ascend/common/descriptions.h"
#include "ascend/common/dtype.h"
#include "report/grace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static OperatorAttributes *require_attributes(Call *call, const aclopAttr *attr, const char *name)
{
    us_require(call, attr != NULL, "attr", "null", ACL_ERROR_INVALID_PARAM, "attr is NULL");
    us_require(call, name != NULL, "attrName", "null", ACL_ERROR_INVALID_PARAM, "attrName is NULL");
    OperatorAttributes *attributes = us_handle_object(attr, HANDLE_OPERATOR_ATTRIBUTES);
    us_require(call, attributes != NULL, "attr", "dead", ACL_ERROR_INVALID_PARAM,
               "attr %p was destroyed, or never came from this library", (const void *)attr);
    return attributes;
}

aclopAttr *aclopCreateAttr(void)
{
    Call call = us_call_begin("aclopCreateAttr");
    void *handle = us_handle_new(HANDLE_OPERATOR_ATTRIBUTES, &(OperatorAttributes){0}, sizeof(OperatorAttributes));
    us_require(&call, handle != NULL, "attr", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for attributes");
    acl_end(&call);
    return handle;
}

static void bury_attributes(void *object)
{
    OperatorAttributes *attributes = object;
    free(attributes->text);
    free(attributes);
}

void aclopDestroyAttr(const aclopAttr *attr)
{
    OperatorAttributes *attributes = us_handle_end(attr, HANDLE_OPERATOR_ATTRIBUTES);
    if (attributes != NULL) {
        us_grace_bury(bury_attributes, attributes); /* another thread may set one now */
    }
}

/* ---- text: a list's values go through `write_value` one by one ---- */

typedef void WriteValue(FILE *out, const void *values, int index);

static void write_bool(FILE *out, const void *values, int index)
{
    fputs(((const uint8_t *)values)[index] != 0 ? "true" : "false", out);
}

static void write_int(FILE *out, const void *values, int index)
{
    fprintf(out, "%lld", (long long)((const int64_t *)values)[index]);
}

static void write_float(FILE *out, const void *values, int index)
{
    const float value = ((const float *)values)[index];
    char text[32];
    int digits = 6;
    do { /* until it reads back as the same number */
        snprintf(text, sizeof text, "%.*g", digits++, (double)value);
    } while (digits <= 9 && strtof(text, NULL) != value);
    fputs(text, out);
}

static void write_string(FILE *out, const void *values, int index)
{
    const char *text = ((const char *const *)values)[index];
    fprintf(out, "\"%s\"", text != NULL ? text : "");
}

static void write_dtype(FILE *out, const void *values, int index)
{
    fputs(acl_dtype_name(((const aclDataType *)values)[index]), out);
}

static void write_list(FILE *out, WriteValue *write_value, const void *values, int count)
{
    fputc('[', out);
    for (int i = 0; i < count; i++) {
        fputs(i > 0 ? "," : "", out);
        write_value(out, values, i);
    }
    fputc(']', out);
}

/* A stream onto the attributes' new text: the old one, a comma, and "name=". NULL: no memory. */
static FILE *begin_text(const OperatorAttributes *attributes, const char *name, char **text, size_t *size)
{
    FILE *out = open_memstream(text, size);
    if (out != NULL) {
        fprintf(out, "%s%s%.64s=", attributes->text != NULL ? attributes->text : "",
                attributes->text != NULL ? ", " : "", name);
    }
    return out;
}

static void end_text(Call *call, OperatorAttributes *attributes, FILE *out, char **text)
{
    bool written = out != NULL && fclose(out) == 0;
    us_require(call, written, "attr", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for an attribute");
    if (written) {
        free(attributes->text);
        attributes->text = *text;
    }
}

static aclError set_value(const char *function, aclopAttr *attr, const char *name, WriteValue *write_value,
                          const void *value)
{
    Call call = us_call_begin(function);
    OperatorAttributes *attributes = require_attributes(&call, attr, name);
    if (call.status == 0) {
        char *text = NULL;
        size_t size = 0;
        FILE *out = begin_text(attributes, name, &text, &size);
        if (out != NULL) {
            write_value(out, value, 0);
        }
        end_text(&call, attributes, out, &text);
    }
    return acl_end(&call);
}

static aclError set_list(const char *function, aclopAttr *attr, const char *name, WriteValue *write_value, int count,
                         const void *values)
{
    Call call = us_call_begin(function);
    OperatorAttributes *attributes = require_attributes(&call, attr, name);
    us_require(&call, count >= 0, "numValues", "range", ACL_ERROR_INVALID_PARAM, "numValues is %d", count);
    us_require(&call, count <= 0 || values != NULL, "values", "null", ACL_ERROR_INVALID_PARAM, "values is NULL");
    if (call.status == 0) {
        char *text = NULL;
        size_t size = 0;
        FILE *out = begin_text(attributes, name, &text, &size);
        if (out != NULL) {
            write_list(out, write_value, values, count);
        }
        end_text(&call, attributes, out, &text);
    }
    return acl_end(&call);
}

/* ---- the setters ---- */

aclError aclopSetAttrBool(aclopAttr *attr, const char *attrName, uint8_t attrValue)
{
    return set_value("aclopSetAttrBool", attr, attrName, write_bool, &attrValue);
}

aclError aclopSetAttrInt(aclopAttr *attr, const char *attrName, int64_t attrValue)
{
    return set_value("aclopSetAttrInt", attr, attrName, write_int, &attrValue);
}

aclError aclopSetAttrFloat(aclopAttr *attr, const char *attrName, float attrValue)
{
    return set_value("aclopSetAttrFloat", attr, attrName, write_float, &attrValue);
}

aclError aclopSetAttrString(aclopAttr *attr, const char *attrName, const char *attrValue)
{
    return set_value("aclopSetAttrString", attr, attrName, write_string, &attrValue);
}

aclError aclopSetAttrDataType(aclopAttr *attr, const char *attrName, aclDataType attrValue)
{
    return set_value("aclopSetAttrDataType", attr, attrName, write_dtype, &attrValue);
}

aclError aclopSetAttrListDataType(aclopAttr *attr, const char *attrName, int numValues, const aclDataType values[])
{
    return set_list("aclopSetAttrListDataType", attr, attrName, write_dtype, numValues, values);
}

aclError aclopSetAttrListBool(aclopAttr *attr, const char *attrName, int numValues, const uint8_t *values)
{
    return set_list("aclopSetAttrListBool", attr, attrName, write_bool, numValues, values);
}

aclError aclopSetAttrListInt(aclopAttr *attr, const char *attrName, int numValues, const int64_t *values)
{
    return set_list("aclopSetAttrListInt", attr, attrName, write_int, numValues, values);
}

aclError aclopSetAttrListFloat(aclopAttr *attr, const char *attrName, int numValues, const float *values)
{
    return set_list("aclopSetAttrListFloat", attr, attrName, write_float, numValues, values);
}

aclError aclopSetAttrListString(aclopAttr *attr, const char *attrName, int numValues, const char **values)
{
    return set_list("aclopSetAttrListString", attr, attrName, write_string, numValues, values);
}

typedef struct Lists {
    const int *counts;
    const int64_t *const *values;
} Lists;

static void write_inner_list(FILE *out, const void *values, int index)
{
    const Lists *lists = values;
    write_list(out, write_int, lists->values[index], lists->values[index] != NULL ? lists->counts[index] : 0);
}

aclError aclopSetAttrListListInt(aclopAttr *attr, const char *attrName, int numLists, const int *numValues,
                                 const int64_t *const values[])
{
    Lists lists = {numValues, values};
    return set_list("aclopSetAttrListListInt", attr, attrName, write_inner_list, numLists,
                    numValues != NULL && values != NULL ? &lists : NULL);
}
