/* Losses of several short rows at once (row_losses.h): each step runs over all of them. */
#ifndef UNDERSTUDY_LOSS_GROUPS_H
#define UNDERSTUDY_LOSS_GROUPS_H

#include "kernels/softmax/row_losses.h"

/* How many rows us_group_losses takes at once; 0: not rows such as these. */
int64_t us_group_rows(const RowLosses *work);

/* Rows first … first + rows - 1; `losses` has one for each. */
void us_group_losses(const RowLosses *work, int64_t first, int64_t rows, double *losses);

#endif
