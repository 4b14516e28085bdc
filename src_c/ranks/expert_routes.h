/* Which token goes to which expert of which rank, in what order: of both ways, there and back. */
#ifndef UNDERSTUDY_RANKS_EXPERT_ROUTES_H
#define UNDERSTUDY_RANKS_EXPERT_ROUTES_H

#include "ranks/experts.h"

#include <string.h>

/* Each expert of each rank is a slot: those of shared ones first. What goes to a slot is in the order of the tokens. */
typedef struct ExpertRoute {
    int64_t tokens, k, choices; /* of a token: k, and those of shared experts */
    int64_t slots, count;
    int64_t *begin;  /* of each slot, and the end */
    int64_t *places; /* of each token's choices; -1: none */
} ExpertRoute;

/* A fault where a token names an expert that there is not. Ends in every case. */
KernelStatus us_expert_route(ExpertRoute *route, const ExpertLayout *layout, const View *ids, const View *active);
void us_expert_route_end(const ExpertRoute *route);

bool us_is_active(const View *active, int64_t token, int64_t k);
int64_t us_first_slot(const ExpertLayout *layout, int32_t rank);
int64_t us_tokens_to(const ExpertLayout *layout, const ExpertRoute *route, int32_t rank);

/* ---- elements of vectors and matrices ---- */

static inline void *us_element_at(const View *view, int64_t row, int64_t column)
{
    const int64_t place = view->rank == 1 ? row * view->strides[0] : row * view->strides[0] + column * view->strides[1];
    return (char *)view->data + place * (int64_t)us_dtype_size(view->dtype);
}

static inline int32_t us_integer_at(const View *view, int64_t row, int64_t column)
{
    int32_t value;
    memcpy(&value, us_element_at(view, row, column), sizeof value);
    return value;
}

static inline float us_number_at(const View *view, int64_t row, int64_t column)
{
    float value;
    memcpy(&value, us_element_at(view, row, column), sizeof value);
    return value;
}

#endif
