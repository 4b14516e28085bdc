/* The Ascend platform: which product is emulated, its devices, and the stream behind a program's handle. This folder
 * is compiled into every Ascend library, so it holds no state: what must exist once lives in libunderstudy. */
#ifndef ASCEND_PLATFORM_H
#define ASCEND_PLATFORM_H

#include "device/device.h"

enum { ASCEND_PLATFORM = 0 };

/* Products the operator pages distinguish (aclnn-ops, "Product keys"). Bits, so that a rule can name several. */
typedef enum Product {
    PRODUCT_910A = 1, /* Atlas training series, SocVersion ASCEND910 */
    PRODUCT_A2 = 2,   /* Atlas A2, ASCEND910B */
    PRODUCT_A3 = 4,   /* Atlas A3, ASCEND910_93 */
} Product;

/* The product chosen by UNDERSTUDY_SOC when the platform was first used, and what a rule needs to know of it. */
typedef struct ProductProfile {
    Product product;
    const char *soc;      /* value of UNDERSTUDY_SOC */
    const char *soc_name; /* what aclrtGetSocName answers */
    const char *series;   /* for sentences: "Atlas A2" */
    size_t memory_bytes;
    int32_t cube_cores, vector_cores;
    size_t cache_bytes; /* of the second level */
} ProductProfile;

const ProductProfile *ascend_product(void);

/* NULL: no memory. */
Platform *ascend_platform(void);

/* Slots of Platform.options, with its lock; the first ones are those of aclrtSetSysParamOpt. */
enum {
    DETERMINISTIC_OPTION = 12, /* the value of HcclSetConfig */
    PROFILED_OPTION = 13,      /* aclInit's configuration has switched profiling on */
    DUMP_OPTION = 14,          /* the address of the DumpState */
    RUNTIME_OPTION = 15,       /* the address of the Runtime */
};

/* The stream behind an aclrtStream. NULL means the default stream of the thread's current context. The result is
 * NULL when the handle is not alive, or when the thread has no context. */
Stream *ascend_stream(const void *stream);

#endif
