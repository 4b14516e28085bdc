/* Operators by name: refused, with a sentence that names the operator and what it was given. */
#include "acl/acl_op_compiler.h"
#include "ascend/common/descriptions.h"
#include "ascend/common/dtype.h"
#include "report/report.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct Sentence {
    char text[512];
    size_t used;
} Sentence;

static US_PRINTF(2, 3) void append(Sentence *sentence, const char *format, ...)
{
    size_t room = sizeof sentence->text - sentence->used;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(sentence->text + sentence->used, room, format, arguments);
    va_end(arguments);
    sentence->used += length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
}

/* "ACL_FLOAT [2,3], ACL_INT64 []" */
static void append_descriptions(Sentence *sentence, const char *label, const aclTensorDesc *const *descriptions,
                                int count)
{
    append(sentence, "%s", label);
    for (int i = 0; descriptions != NULL && i < count; i++) {
        const aclTensorDesc *description = descriptions[i];
        append(sentence, "%s%s [", i > 0 ? ", " : "", acl_dtype_name(aclGetTensorDescType(description)));
        size_t rank = aclGetTensorDescNumDims(description);
        for (size_t axis = 0; rank != ACL_UNKNOWN_RANK && axis < rank; axis++) {
            int64_t size = -1;
            aclGetTensorDescDimV2(description, axis, &size);
            append(sentence, "%s%lld", axis > 0 ? "," : "", (long long)size);
        }
        append(sentence, "%s]", rank == ACL_UNKNOWN_RANK ? "?" : "");
    }
}

static aclError refuse(const char *function, const char *type, int input_count, const aclTensorDesc *const *inputs,
                       int output_count, const aclTensorDesc *const *outputs, const aclopAttr *attr)
{
    Call call = us_call_begin(function);
    us_require(&call, type != NULL, "opType", "null", ACL_ERROR_INVALID_PARAM, "opType is NULL");
    if (call.status == 0) {
        Sentence sentence = {.used = 0};
        append_descriptions(&sentence, "inputs ", inputs, input_count);
        append_descriptions(&sentence, "; outputs ", outputs, output_count);
        const OperatorAttributes *attributes = us_handle_object(attr, HANDLE_OPERATOR_ATTRIBUTES);
        append(&sentence, "; attributes %s", attributes != NULL && attributes->text != NULL ? attributes->text : "none");
        us_refuse(&call, "opType", "unsupported", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                  "operator %.64s by name is not emulated, only the aclnn functions are (%s)", type, sentence.text);
    }
    return us_call_end(&call);
}

aclError aclopCompile(const char *opType, int numInputs, const aclTensorDesc *const inputDesc[], int numOutputs,
                      const aclTensorDesc *const outputDesc[], const aclopAttr *attr, aclopEngineType engineType,
                      aclopCompileType compileFlag, const char *opPath)
{
    (void)engineType, (void)compileFlag, (void)opPath;
    return refuse("aclopCompile", opType, numInputs, inputDesc, numOutputs, outputDesc, attr);
}

aclError aclopCompileAndExecute(const char *opType, int numInputs, const aclTensorDesc *const inputDesc[],
                                const aclDataBuffer *const inputs[], int numOutputs,
                                const aclTensorDesc *const outputDesc[], aclDataBuffer *const outputs[],
                                const aclopAttr *attr, aclopEngineType engineType, aclopCompileType compileFlag,
                                const char *opPath, aclrtStream stream)
{
    (void)inputs, (void)outputs, (void)engineType, (void)compileFlag, (void)opPath, (void)stream;
    return refuse("aclopCompileAndExecute", opType, numInputs, inputDesc, numOutputs, outputDesc, attr);
}

aclError aclopCompileAndExecuteV2(const char *opType, int numInputs, aclTensorDesc *inputDesc[],
                                  aclDataBuffer *inputs[], int numOutputs, aclTensorDesc *outputDesc[],
                                  aclDataBuffer *outputs[], aclopAttr *attr, aclopEngineType engineType,
                                  aclopCompileType compileFlag, const char *opPath, aclrtStream stream)
{
    (void)inputs, (void)outputs, (void)engineType, (void)compileFlag, (void)opPath, (void)stream;
    return refuse("aclopCompileAndExecuteV2", opType, numInputs, (const aclTensorDesc *const *)inputDesc, numOutputs,
                  (const aclTensorDesc *const *)outputDesc, attr);
}
