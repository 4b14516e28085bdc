/* Options of the operator compiler. There is no compiler: the texts are kept and read back (torch-npu-runs 3, 5). */
#include "acl/acl_op_compiler.h"
#include "report/report.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_COUNT = ACL_OP_DEBUG_OPTION + 1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *values[OPTION_COUNT];

static void require_option(Call *call, aclCompileOpt opt)
{
    us_require(call, (int)opt >= 0 && (int)opt < OPTION_COUNT, "opt", "range", ACL_ERROR_INVALID_PARAM,
               "opt is %d; it must be 0 to %d", (int)opt, OPTION_COUNT - 1);
}

/* With the lock held. What was never set: no compilation, as clients of this product expect; otherwise empty. */
static const char *value_of(aclCompileOpt opt)
{
    const char *fallback = opt == ACL_OP_JIT_COMPILE ? "disable" : "";
    return values[opt] != NULL ? values[opt] : fallback;
}

aclError aclSetCompileopt(aclCompileOpt opt, const char *value)
{
    Call call = us_call_begin("aclSetCompileopt");
    require_option(&call, opt);
    us_require(&call, value != NULL, "value", "null", ACL_ERROR_INVALID_PARAM, "value is NULL");
    char *copy = call.status == 0 ? strdup(value) : NULL;
    us_require(&call, copy != NULL, "value", "memory", ACL_ERROR_BAD_ALLOC, "no host memory for an option");
    if (call.status == 0) {
        pthread_mutex_lock(&lock);
        free(values[opt]);
        values[opt] = copy;
        pthread_mutex_unlock(&lock);
    }
    return us_call_end(&call);
}

size_t aclGetCompileoptSize(aclCompileOpt opt)
{
    Call call = us_call_begin("aclGetCompileoptSize");
    require_option(&call, opt);
    size_t size = 0;
    if (call.status == 0) {
        pthread_mutex_lock(&lock);
        size = strlen(value_of(opt)) + 1;
        pthread_mutex_unlock(&lock);
    }
    us_call_end(&call);
    return size;
}

aclError aclGetCompileopt(aclCompileOpt opt, char *value, size_t length)
{
    Call call = us_call_begin("aclGetCompileopt");
    require_option(&call, opt);
    us_require(&call, value != NULL, "value", "null", ACL_ERROR_INVALID_PARAM, "value is NULL");
    if (call.status == 0) {
        pthread_mutex_lock(&lock);
        size_t size = strlen(value_of(opt)) + 1;
        us_require(&call, length >= size, "length", "range", ACL_ERROR_INVALID_PARAM,
                   "length is %zu; the value needs %zu bytes", length, size);
        if (call.status == 0) {
            memcpy(value, value_of(opt), size);
        }
        pthread_mutex_unlock(&lock);
    }
    return us_call_end(&call);
}
