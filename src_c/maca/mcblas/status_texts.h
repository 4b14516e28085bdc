/* What statuses are called, and what they mean; never NULL. */
#ifndef MCBLAS_STATUS_TEXTS_H
#define MCBLAS_STATUS_TEXTS_H

#include <mcblas/mcblas.h>

const char *blas_status_name(mcblasStatus_t status);
const char *blas_status_text(mcblasStatus_t status);

#endif
