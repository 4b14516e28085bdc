#include "aclnnop/aclnn_trans_quant_param.h"

#include "ascend/common/status.h"
#include "kernels/quantize/parameters.h"
#include "report/report.h"

#include <stdlib.h>

/* The whole number of elements of an array that counts from 0: 1 stands for any number. */
static bool fits(uint64_t size, uint64_t count)
{
    return size == 1 || size == count;
}

aclnnStatus aclnnTransQuantParam(const float *scaleArray, uint64_t scaleSize, const float *offsetArray,
                                 uint64_t offsetSize, uint64_t **quantParam, uint64_t *quantParamSize)
{
    Call call = us_call_begin("aclnnTransQuantParam");
    us_require(&call, quantParam != NULL, "quantParam", "null", ACLNN_ERR_PARAM_NULLPTR, "quantParam is NULL");
    us_require(&call, scaleArray != NULL, "scaleArray", "null", ACLNN_ERR_PARAM_NULLPTR, "scaleArray is NULL");
    us_require(&call, quantParamSize != NULL, "quantParamSize", "null", ACLNN_ERR_PARAM_NULLPTR,
               "quantParamSize is NULL");
    us_require(&call, scaleSize >= 1, "scaleSize", "range", ACLNN_ERR_PARAM_INVALID, "scaleSize is 0");
    us_require(&call, (offsetArray != NULL) == (offsetSize >= 1), "offsetSize", "range", ACLNN_ERR_PARAM_INVALID,
               "offsetSize is %llu, offsetArray is %s", (unsigned long long)offsetSize,
               offsetArray != NULL ? "given" : "NULL");
    const uint64_t count = scaleSize > offsetSize ? scaleSize : offsetSize;
    us_require(&call, fits(scaleSize, count) && (offsetArray == NULL || fits(offsetSize, count)), "offsetSize", "match",
               ACLNN_ERR_PARAM_INVALID, "scaleSize is %llu, offsetSize is %llu: they are equal, or one of them is 1",
               (unsigned long long)scaleSize, (unsigned long long)offsetSize);
    uint64_t *numbers = call.status == 0 ? calloc(count, sizeof *numbers) : NULL;
    us_require(&call, numbers != NULL, "quantParam", "exhausted", ACLNN_ERR_INNER_NULLPTR,
               "no host memory for %llu numbers", (unsigned long long)count);
    if (call.status == 0) {
        for (uint64_t i = 0; i < count; i++) {
            numbers[i] = us_quantize_parameter(scaleArray[scaleSize == 1 ? 0 : i],
                                               offsetArray == NULL ? 0 : offsetArray[offsetSize == 1 ? 0 : i]);
        }
        *quantParam = numbers;
        *quantParamSize = count;
    }
    return us_call_end(&call);
}
