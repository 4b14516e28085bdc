/* aclTensorDesc: type, format and dimensions of a tensor without its elements, for operators by name (op_compiler). */
#include "ascend/ascendcl/runtime.h"
#include "ascend/common/descriptions.h"
#include "report/grace.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static aclTensorDesc *description_of(const aclTensorDesc *handle)
{
    return us_handle_object(handle, HANDLE_TENSOR_DESCRIPTION);
}

static aclTensorDesc *require_description(Call *call, const char *parameter, const aclTensorDesc *handle)
{
    us_require(call, handle != NULL, parameter, "null", ACL_ERROR_INVALID_PARAM, "%s is NULL", parameter);
    aclTensorDesc *description = description_of(handle);
    us_require(call, description != NULL, parameter, "dead", ACL_ERROR_INVALID_PARAM,
               "%s %p was destroyed, or never came from this library", parameter, (const void *)handle);
    return description;
}

static void require_dimensions(Call *call, int count, const int64_t *sizes)
{
    us_require(call, count >= 0 && count <= DESCRIPTION_RANK_LIMIT, "numDims", "range", ACL_ERROR_INVALID_PARAM,
               "numDims is %d; it must be 0 to %d", count, DESCRIPTION_RANK_LIMIT);
    us_require(call, count == 0 || sizes != NULL, "dims", "null", ACL_ERROR_INVALID_PARAM,
               "dims is NULL with %d dimensions", count);
    for (int i = 0; call->status == 0 && i < count; i++) {
        bool known = sizes[i] >= UNKNOWN_SIZE || (count == 1 && sizes[i] == UNKNOWN_RANK);
        us_require(call, known, "dims", "range", ACL_ERROR_INVALID_PARAM,
                   "dims[%d] is %lld; a size is 0 or more, -1 when it is not known, and -2 alone for any dimensions", i,
                   (long long)sizes[i]);
    }
}

static void set_dimensions(Dimensions *dimensions, int count, const int64_t *sizes)
{
    dimensions->count = count;
    for (int i = 0; i < count; i++) {
        dimensions->sizes[i] = sizes[i];
        dimensions->ranges[i][0] = sizes[i] >= 0 ? sizes[i] : 0;
        dimensions->ranges[i][1] = sizes[i];
    }
}

/* ---- life ---- */

/* A client that finds no function for an operator describes the operator's tensors next, to run it by name. Its
 * look-up left the thread's dlerror; that is the only trace of the name, which no message of the client's gives. */
static void tell_missing_operator(void)
{
    static const char MARK[] = "undefined symbol: acl";
    const char *message = dlerror();
    const char *found = message != NULL ? strstr(message, MARK) : NULL;
    if (found == NULL) {
        return;
    }
    const char *name = found + sizeof MARK - sizeof "acl";
    Call call = us_call_begin("aclCreateTensorDesc");
    us_refuse(&call, "operator", "missing", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "the program looked for %.*s, which is not emulated", (int)strcspn(name, ": \n"), name);
    us_call_end(&call);
}

aclTensorDesc *aclCreateTensorDesc(aclDataType dataType, int numDims, const int64_t *dims, aclFormat format)
{
    tell_missing_operator();
    Call call = us_call_begin("aclCreateTensorDesc");
    require_dimensions(&call, numDims, dims);
    void *handle = NULL;
    if (call.status == 0) {
        aclTensorDesc initial = {.type = dataType, .format = format, .storage_format = format};
        set_dimensions(&initial.dimensions, numDims, dims);
        handle = us_handle_new(HANDLE_TENSOR_DESCRIPTION, &initial, sizeof initial);
    }
    us_require(&call, handle != NULL, "description", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for a description");
    acl_end(&call);
    return handle;
}

static void bury_description(void *object)
{
    aclTensorDesc *description = object;
    free(description->name);
    free(description->constant);
    free(description);
}

void aclDestroyTensorDesc(const aclTensorDesc *desc)
{
    aclTensorDesc *description = us_handle_end(desc, HANDLE_TENSOR_DESCRIPTION);
    if (description != NULL) {
        us_grace_bury(bury_description, description); /* other threads may read it now */
    }
}

/* ---- getters: a value that says nothing for a description that is not alive ---- */

/* What a description says while it is read; another thread may destroy it meanwhile. */
static const aclTensorDesc *begin_reading(const aclTensorDesc *desc)
{
    us_grace_enter();
    return description_of(desc);
}

aclDataType aclGetTensorDescType(const aclTensorDesc *desc)
{
    const aclTensorDesc *description = begin_reading(desc);
    aclDataType type = description != NULL ? description->type : ACL_DT_UNDEFINED;
    us_grace_leave();
    return type;
}

aclFormat aclGetTensorDescFormat(const aclTensorDesc *desc)
{
    const aclTensorDesc *description = begin_reading(desc);
    aclFormat format = description != NULL ? description->format : ACL_FORMAT_UNDEFINED;
    us_grace_leave();
    return format;
}

static bool rank_is_unknown(const Dimensions *dimensions)
{
    return dimensions->count == 1 && dimensions->sizes[0] == UNKNOWN_RANK;
}

size_t aclGetTensorDescNumDims(const aclTensorDesc *desc)
{
    const aclTensorDesc *description = begin_reading(desc);
    size_t count = 0;
    if (description != NULL) {
        count = rank_is_unknown(&description->dimensions) ? ACL_UNKNOWN_RANK : (size_t)description->dimensions.count;
    }
    us_grace_leave();
    return count;
}

size_t aclGetTensorDescElementCount(const aclTensorDesc *desc)
{
    const aclTensorDesc *description = begin_reading(desc);
    bool counts = description != NULL;
    size_t count = 1;
    for (int i = 0; counts && i < description->dimensions.count; i++) {
        int64_t size = description->dimensions.sizes[i];
        counts = size >= 0 && !__builtin_mul_overflow(count, (size_t)size, &count);
    }
    us_grace_leave();
    return counts ? count : 0;
}

size_t aclGetTensorDescSize(const aclTensorDesc *desc)
{
    size_t bytes = 0;
    bool large = __builtin_mul_overflow(aclGetTensorDescElementCount(desc),
                                        aclDataTypeSize(aclGetTensorDescType(desc)), &bytes);
    return large ? 0 : bytes;
}

int64_t aclGetTensorDescDim(const aclTensorDesc *desc, size_t index)
{
    const aclTensorDesc *description = begin_reading(desc);
    bool exists = description != NULL && index < (size_t)description->dimensions.count;
    int64_t size = exists && description->dimensions.sizes[index] >= 0 ? description->dimensions.sizes[index] : UNKNOWN_SIZE;
    us_grace_leave();
    return size;
}

/* The dimensions of a description that has one with this number. */
static const Dimensions *require_dimension(Call *call, const aclTensorDesc *desc, size_t index)
{
    const aclTensorDesc *description = require_description(call, "desc", desc);
    us_require(call, index < (size_t)description->dimensions.count, "index", "range", ACL_ERROR_INVALID_PARAM,
               "index is %zu; there are %d dimensions", index, description->dimensions.count);
    return description != NULL ? &description->dimensions : NULL;
}

aclError aclGetTensorDescDimV2(const aclTensorDesc *desc, size_t index, int64_t *dimSize)
{
    Call call = us_call_begin("aclGetTensorDescDimV2");
    us_require(&call, dimSize != NULL, "dimSize", "null", ACL_ERROR_INVALID_PARAM, "dimSize is NULL");
    const Dimensions *dimensions = require_dimension(&call, desc, index);
    if (call.status == 0) {
        *dimSize = dimensions->sizes[index];
    }
    return acl_end(&call);
}

aclError aclGetTensorDescDimRange(const aclTensorDesc *desc, size_t index, size_t dimRangeNum, int64_t *dimRange)
{
    Call call = us_call_begin("aclGetTensorDescDimRange");
    us_require(&call, dimRange != NULL, "dimRange", "null", ACL_ERROR_INVALID_PARAM, "dimRange is NULL");
    us_require(&call, dimRangeNum >= ACL_TENSOR_SHAPE_RANGE_NUM, "dimRangeNum", "range", ACL_ERROR_INVALID_PARAM,
               "dimRangeNum is %zu; a range needs room for %d values", dimRangeNum, ACL_TENSOR_SHAPE_RANGE_NUM);
    const Dimensions *dimensions = require_dimension(&call, desc, index);
    if (call.status == 0) {
        memcpy(dimRange, dimensions->ranges[index], sizeof dimensions->ranges[index]);
    }
    return acl_end(&call);
}

const char *aclGetTensorDescName(aclTensorDesc *desc)
{
    const aclTensorDesc *description = begin_reading(desc);
    const char *name = description != NULL && description->name != NULL ? description->name : "";
    us_grace_leave();
    return name;
}

void *aclGetTensorDescAddress(const aclTensorDesc *desc)
{
    const aclTensorDesc *description = begin_reading(desc);
    void *constant = description != NULL ? description->constant : NULL;
    us_grace_leave();
    return constant;
}

/* ---- setters ---- */

void aclSetTensorDescName(aclTensorDesc *desc, const char *name)
{
    us_grace_enter();
    aclTensorDesc *description = description_of(desc);
    if (description != NULL) {
        free(description->name);
        description->name = name != NULL ? strdup(name) : NULL;
    }
    us_grace_leave();
}

aclError aclSetTensorShapeRange(aclTensorDesc *desc, size_t dimsCount, int64_t dimsRange[][ACL_TENSOR_SHAPE_RANGE_NUM])
{
    Call call = us_call_begin("aclSetTensorShapeRange");
    aclTensorDesc *description = require_description(&call, "desc", desc);
    us_require(&call, dimsCount == (size_t)description->dimensions.count, "dimsCount", "count", ACL_ERROR_INVALID_PARAM,
               "dimsCount is %zu; there are %d dimensions", dimsCount, description->dimensions.count);
    us_require(&call, dimsCount == 0 || dimsRange != NULL, "dimsRange", "null", ACL_ERROR_INVALID_PARAM,
               "dimsRange is NULL");
    if (call.status == 0 && dimsCount > 0) {
        memcpy(description->dimensions.ranges, dimsRange, dimsCount * sizeof *dimsRange);
    }
    return acl_end(&call);
}

static aclError set_dimensions_of(const char *function, aclTensorDesc *desc, int numDims, const int64_t *dims,
                                  bool keep)
{
    Call call = us_call_begin(function);
    aclTensorDesc *description = require_description(&call, "desc", desc);
    require_dimensions(&call, numDims, dims);
    if (call.status == 0 && keep) {
        set_dimensions(&description->dimensions, numDims, dims);
    }
    return acl_end(&call);
}

aclError aclSetTensorOriginShape(aclTensorDesc *desc, int numDims, const int64_t *dims)
{
    return set_dimensions_of("aclSetTensorOriginShape", desc, numDims, dims, true);
}

static aclError set_format_of(const char *function, aclTensorDesc *desc, aclFormat format, bool of_storage)
{
    Call call = us_call_begin(function);
    aclTensorDesc *description = require_description(&call, "desc", desc);
    if (call.status == 0) {
        *(of_storage ? &description->storage_format : &description->format) = format;
    }
    return acl_end(&call);
}

aclError aclSetTensorOriginFormat(aclTensorDesc *desc, aclFormat format)
{
    return set_format_of("aclSetTensorOriginFormat", desc, format, false);
}

aclError aclSetTensorFormat(aclTensorDesc *desc, aclFormat format)
{
    return set_format_of("aclSetTensorFormat", desc, format, true);
}

aclError aclSetTensorStorageFormat(aclTensorDesc *desc, aclFormat format)
{
    return set_format_of("aclSetTensorStorageFormat", desc, format, true);
}

aclError aclSetTensorConst(aclTensorDesc *desc, void *dataBuffer, size_t length)
{
    Call call = us_call_begin("aclSetTensorConst");
    aclTensorDesc *description = require_description(&call, "desc", desc);
    us_require(&call, dataBuffer != NULL, "dataBuffer", "null", ACL_ERROR_INVALID_PARAM, "dataBuffer is NULL");
    us_require(&call, length > 0, "length", "range", ACL_ERROR_INVALID_PARAM, "length is 0; a constant has bytes");
    void *copy = call.status == 0 ? malloc(length) : NULL;
    us_require(&call, copy != NULL, "constant", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for %zu bytes", length);
    if (call.status == 0) {
        memcpy(copy, dataBuffer, length);
        free(description->constant);
        description->constant = copy;
        description->constant_size = length;
    }
    return acl_end(&call);
}

/* ---- what only a compiler of operators reads: checked, and then of no use to anyone ---- */

aclError aclSetTensorShape(aclTensorDesc *desc, int numDims, const int64_t *dims)
{
    return set_dimensions_of("aclSetTensorShape", desc, numDims, dims, false);
}

aclError aclSetTensorStorageShape(aclTensorDesc *desc, int numDims, const int64_t *dims)
{
    return set_dimensions_of("aclSetTensorStorageShape", desc, numDims, dims, false);
}

aclError aclSetTensorPlaceMent(aclTensorDesc *desc, aclMemType memType)
{
    Call call = us_call_begin("aclSetTensorPlaceMent");
    aclTensorDesc *description = require_description(&call, "desc", desc);
    us_require(&call, (int)memType >= ACL_MEMTYPE_DEVICE && (int)memType <= ACL_MEMTYPE_HOST_COMPILE_INDEPENDENT,
               "memType", "range", ACL_ERROR_INVALID_PARAM, "memType is %d; it must be 0 to 2", (int)memType);
    if (call.status == 0) {
        description->memory_type = memType;
    }
    return acl_end(&call);
}

aclError aclSetTensorValueRange(aclTensorDesc *desc, size_t valueCount,
                                int64_t valueRange[][ACL_TENSOR_VALUE_RANGE_NUM])
{
    Call call = us_call_begin("aclSetTensorValueRange");
    require_description(&call, "desc", desc);
    us_require(&call, valueCount == 0 || valueRange != NULL, "valueRange", "null", ACL_ERROR_INVALID_PARAM,
               "valueRange is NULL");
    return acl_end(&call);
}

aclError aclSetTensorDynamicInput(aclTensorDesc *desc, const char *dynamicInputName)
{
    Call call = us_call_begin("aclSetTensorDynamicInput");
    require_description(&call, "desc", desc);
    us_require(&call, dynamicInputName != NULL, "dynamicInputName", "null", ACL_ERROR_INVALID_PARAM,
               "dynamicInputName is NULL");
    return acl_end(&call);
}
