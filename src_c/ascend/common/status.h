/* aclnn status codes (aclnn-base 3); the vendor keeps them out of its public headers. */
#ifndef ASCEND_STATUS_H
#define ASCEND_STATUS_H

enum {
    ACLNN_ERR_PARAM_NULLPTR = 161001,
    ACLNN_ERR_PARAM_INVALID = 161002,
    ACLNN_ERR_RUNTIME_ERROR = 361001,
    ACLNN_ERR_INNER = 561000,
    ACLNN_ERR_INNER_CREATE_EXECUTOR = 561101,
    ACLNN_ERR_INNER_NULLPTR = 561103,
};

#endif
