/* Boxes without those that overlap too much with a better one. */
#ifndef UNDERSTUDY_SORT_SUPPRESS_H
#define UNDERSTUDY_SORT_SUPPRESS_H

#include "kernels/kernels.h"

/* A box is two opposite corners (x, y, x, y). It is dropped when the area that it shares with one that was chosen before,
 * over the area of both, is above `overlap`; areas are of float64. Scores count where they are above a threshold, and
 * fall from one chosen box to the next; of equal ones the first one comes first. */

/* views: boxes [n, 5 or more], their first five columns [n, 5], their numbers [n] of int32, whether they are chosen [n]
 * of uint8. Boxes are looked at in their order. */
typedef struct SuppressedMask {
    double overlap;
} SuppressedMask;
Kernel us_suppressed_mask;

/* views: boxes [n, 4], scores [n], how many at most, `overlap`, the threshold of scores (of one element each), numbers of
 * the chosen ones [m] of int32, whose rest is 0, how many they are. */
Kernel us_suppressed;

/* Of each image class by class, at most `most` of one, and of these the m of the highest scores, smaller classes first.
 * views: boxes [images, n, 1 or classes, 4], scores [images, n, classes], boxes [images, m, 4], scores, classes
 * [images, m], counts [images] of int32. What is left is 0. */
typedef struct SuppressedClasses {
    double score, overlap;
    int64_t most;
} SuppressedClasses;
Kernel us_suppressed_classes;

#endif
