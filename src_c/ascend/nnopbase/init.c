#include "aclnn/aclnn_base.h"
#include "ascend/common/platform.h"
#include "ascend/common/status.h"

/* The file may only switch on debug kernels, which do not exist here: reading it would change nothing. */
aclnnStatus aclnnInit(const char *configPath)
{
    (void)configPath;
    Call call = us_call_begin("aclnnInit");
    us_require(&call, ascend_platform() != NULL, "memory", "exhausted", ACLNN_ERR_RUNTIME_ERROR,
               "no host memory for the platform");
    return us_call_end(&call);
}

aclnnStatus aclnnFinalize(void)
{
    return 0;
}
