/* Queries and caches of latent attention from tokens (kernels/attention/latent.h): aclnnMlaProlog and what followed it. */
#ifndef ASCEND_OPAPI_LATENT_H
#define ASCEND_OPAPI_LATENT_H

#include "ascend/opapi/blocked_weight.h"

typedef struct Latent {
    const Operand *x, *dq, *uq_qr, *uk, *dkv_kr, *q_gamma, *kv_gamma, *sin, *cos, *index, *ends, *kv_cache, *kr_cache;
    const Operand *x_scale, *dq_scale, *uq_qr_scale, *dkv_kr_scale, *ckv_scale, *ckr_scale, *smooth;
    const Operand *query, *rope, *query_scale, *norm, *norm_scale;
    double q_epsilon, kv_epsilon, q_factor, kv_factor;
    const char *mode;
    bool third; /* aclnnMlaPrologV3WeightNz has more sizes and modes */
} Latent;

/* Columns of weightUqQr; -1: too many. */
int64_t op_latent_columns(const Operand *uk, const Operand *sin);
bool op_is_latent_mode(const char *mode, bool third);
/* Modes of the third version that go together: of weights, caches, queries. */
bool op_are_latent_modes(int64_t weights, int64_t caches, int64_t queries);
/* The types are those of such modes. */
bool op_has_latent_types(const Latent *call, int64_t weights, int64_t caches);

/* The checks of the pages behind types and ranks. Only then weights are matrices. */
void op_require_latent(OpCall *op, const Latent *call);
void op_require_latent_weights(OpCall *op, const Latent *call);
aclnnStatus op_latent(OpCall *op, const Latent *call);

#endif
