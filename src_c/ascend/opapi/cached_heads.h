/* Heads of new tokens, normalized, turned and written to caches (kernels/attention/cached_heads.h). */
#ifndef ASCEND_OPAPI_CACHED_HEADS_H
#define ASCEND_OPAPI_CACHED_HEADS_H

#include "ascend/opapi/caches.h"

/* aclnnKvRmsNormRopeCache and its second version: one line of latent numbers and turned ones, or, with `v`, keys apart. */
typedef struct CachedKv {
    const Operand *kv, *gamma, *cos, *sin, *index, *k_cache, *ckv_cache, *k_scale, *ckv_scale, *k_offset, *ckv_offset, *v;
    const Operand *k_out, *ckv_out;
    double epsilon;
    const char *mode;
    bool outputs, second;
} CachedKv;
bool op_is_kv_cache_mode(const char *mode);
/* The checks of the pages behind types and ranks. */
void op_require_cached_kv(OpCall *op, const CachedKv *call);
aclnnStatus op_cached_kv(OpCall *op, const CachedKv *call);

/* aclnnQkvRmsNormRopeCache: heads of queries, keys and values in a line. */
typedef struct CachedQkv {
    const Operand *qkv, *q_gamma, *k_gamma, *cos, *sin, *index, *q_out, *k_cache, *v_cache;
    const Operand *k_scale, *v_scale, *k_offset, *v_offset;
    IntArguments sizes, heads; /* [batch, token, head, depth]; of queries, keys, values */
    double epsilon;
} CachedQkv;
void op_require_cached_qkv(OpCall *op, const CachedQkv *call);
aclnnStatus op_cached_qkv(OpCall *op, const CachedQkv *call);

#endif
