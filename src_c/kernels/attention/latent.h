/* Queries, and the latent keys and values of a cache, from tokens: what latent attention does before attention. */
#ifndef UNDERSTUDY_LATENT_H
#define UNDERSTUDY_LATENT_H

#include "kernels/kernels.h"

/* Which slot of the caches (kernels/index/slots.h) a token has. */
typedef enum LatentSlots {
    LATENT_TOKENS, /* index [token]; -1: none */
    LATENT_PAGES,  /* row t % rows of page index[t / rows] for token t of a sequence, whose pages lie behind the last one's */
    LATENT_ORDER,  /* its own number; there is no index */
} LatentSlots;

/* norm(v) = v / sqrt(mean(v^2) + epsilon) * gamma; turned(v): places 2i and 2i + 1 by one angle, which the result has as halves
 * (kernels/attention/cached_heads.h).
 *     c = q_factor * norm(x dq)           of the query
 *     [a, b] = c uq_qr                    for each head
 *     query = a uk, rope = turned(b)
 *     [d, e] = x dkv_kr
 *     kv_cache gets kv_factor * norm(d), kr_cache turned(e)
 * In float32, every result rounded once. Where x holds integers, products are of integers, times x_scale of the token and the
 * scale of the column; where uq_qr does, c is smooth * c quantized row by row before, its scale times that of the column; norm is
 * c, or these integers with their scale; a query of integers is quantized so, too, head by head. A cache of integers gets
 * round(v * scale), ties to even, saturated. Caches of no elements stay. An index that is not there is a fault, before
 * anything is written.
 * x, sines, cosines, query, rope and norm may have any axes in front for the tokens; ends: behind each sequence (int32), else
 * all have the same number of tokens. kv_cache and kr_cache as us_cached_heads has them, of one head. */
enum LatentView {
    LATENT_X,             /* [tokens…, hidden] */
    LATENT_DQ,            /* [hidden, rank] */
    LATENT_UQ_QR,         /* [rank, heads * (depth + turned)] */
    LATENT_UK,            /* [heads, depth, latent] */
    LATENT_DKV_KR,        /* [hidden, latent + turned] */
    LATENT_Q_GAMMA,
    LATENT_KV_GAMMA,
    LATENT_SINES,         /* [tokens…, turned] */
    LATENT_COSINES,
    LATENT_INDEX,         /* [tokens…], or [pages] */
    LATENT_ENDS,          /* ? [sequences] */
    LATENT_X_SCALE,       /* ? [tokens, 1] */
    LATENT_DQ_SCALE,      /* ? [1, rank] */
    LATENT_UQ_QR_SCALE,   /* ? [1, heads * (depth + turned)] */
    LATENT_DKV_KR_SCALE,  /* ? [1, latent + turned] */
    LATENT_KV_SCALE,      /* ? of as many elements as latent has, or one */
    LATENT_KR_SCALE,      /* ? of as many elements as turned has */
    LATENT_SMOOTH,        /* ? [1, rank] */
    LATENT_QUERY,         /* [tokens…, heads, latent] */
    LATENT_ROPE,          /* [tokens…, heads, turned] */
    LATENT_QUERY_SCALE,   /* ? [tokens, heads, 1] */
    LATENT_NORM,          /* ? [tokens…, rank] */
    LATENT_NORM_SCALE,    /* ? [tokens, 1] */
    LATENT_KV_CACHE,
    LATENT_KR_CACHE,
    LATENT_VIEWS
};
typedef struct LatentHeads {
    LatentSlots slots;
    int64_t sequence; /* tokens of each, without ends */
    double q_epsilon, kv_epsilon, q_factor, kv_factor;
} LatentHeads;
Kernel us_latent_heads;

#endif
