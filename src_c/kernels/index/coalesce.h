/* Entries of a sparse tensor that stand for one place become one. */
#ifndef UNDERSTUDY_INDEX_COALESCE_H
#define UNDERSTUDY_INDEX_COALESCE_H

#include "kernels/kernels.h"

/* new_coordinates[d, group[i]] = coordinates[d, i] and new_values[group[i]] += values[i], in order, in the wide type and
 * rounded once. A group that new_values does not have is a fault. views: group [entries] (int32 or int64), coordinates
 * [dimensions, entries], values [entries, …], new_coordinates [dimensions, groups], new_values [groups, …]. */
Kernel us_coalesce;

#endif
