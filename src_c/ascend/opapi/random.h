/* Random numbers and dropout. Seeds and offsets may be tensors too: these take the seed's place and are added to the
 * offset. */
#ifndef ASCEND_OPAPI_RANDOM_H
#define ASCEND_OPAPI_RANDOM_H

#include "ascend/opapi/families.h"
#include "kernels/random/draws.h"

#define STREAM(seed, offset) ((RandomStream){(uint64_t)(seed), (uint64_t)(offset)})

/* mean and deviation may be NULL: then the numbers count. They broadcast to out. */
aclnnStatus op_normal(OpCall *op, RandomStream stream, const Operand *seed, const Operand *offset, const Operand *mean,
                      const Operand *deviation, double mean_number, double deviation_number, const Operand *out);
aclnnStatus op_uniform(OpCall *op, RandomStream stream, const Operand *seed, const Operand *offset, double from,
                       double to, const Operand *out);
aclnnStatus op_exponential(OpCall *op, RandomStream stream, double rate, const Operand *out);
/* each: probabilities by row-major position, or NULL. */
aclnnStatus op_bernoulli(OpCall *op, RandomStream stream, double probability, const Operand *each, const Operand *out);
aclnnStatus op_random_integers(OpCall *op, RandomStream stream, const Operand *seed, const Operand *offset, int64_t from,
                               int64_t to, const Operand *out);
/* Whether the type goes up to that number. */
bool op_reaches(aclDataType dtype, int64_t number);
aclnnStatus op_permutation(OpCall *op, RandomStream stream, const Operand *out);
aclnnStatus op_multinomial(OpCall *op, RandomStream stream, const Operand *seed, const Operand *offset, bool replaces,
                           const Operand *self, const Operand *out);
Shape op_shape_samples(OpCall *op, const Operand *self, int64_t count);

/* out = self where it is above 0, else self times a slope. In training each has a slope of its own, uniform in [lower,
 * upper), and noise, by row-major position, takes the factors; else the slope is their mean. noise has self's shape, or
 * is contiguous. */
aclnnStatus op_rrelu(OpCall *op, const Operand *self, const Operand *noise, double lower, double upper, bool training,
                     RandomStream stream, const Operand *out);

/* A mask has a bit for each element, rounded up to 128, in bytes. */
Shape op_shape_dropout_mask(OpCall *op, const Operand *operand);
Shape op_shape_dropout_mask_of(OpCall *op, IntArguments sizes);
aclnnStatus op_dropout_mask(OpCall *op, IntArguments sizes, double drop, RandomStream stream, const Operand *seed,
                            const Operand *offset, const Operand *mask);
/* out = scale * the elements that the mask keeps, 0 elsewhere; scale 0 gives 0 and scale 1 self, whatever the mask. */
aclnnStatus op_dropout_masked(OpCall *op, const Operand *self, const Operand *mask, double scale, const Operand *out);
/* The scale of what is kept: 1 / (1 - drop), and 0 where nothing is. */
double op_dropout_scale(double drop);
aclnnStatus op_dropout(OpCall *op, const Operand *self, double drop, RandomStream stream, const Operand *out,
                       const Operand *mask);

#endif
