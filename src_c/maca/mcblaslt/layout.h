/* What products and transforms share: their handle, matrices as layouts describe them, factors, the stream. Checks are
 * sticky: after the first refusal the later ones do nothing. */
#ifndef MCBLASLT_LAYOUT_H
#define MCBLASLT_LAYOUT_H

#include "attributes.h"
#include "launch/launch.h"

/* lightHandle/alive: a handle of mcblas.h serves as well */
void lt_check_handle(Call *call, mcblasLtHandle_t handle);

/* parameter/{alive,size,order,leading} */
const Layout *lt_layout(Call *call, const char *parameter, mcblasLtMatrixLayout_t handle);

/* parameter/range */
void lt_check_operation(Call *call, const char *parameter, int32_t operation);

/* parameter/pointer-mode */
void lt_check_pointer_mode(Call *call, const char *parameter, int32_t mode);

/* parameter/null, if it is needed */
void lt_check_pointer(Call *call, const char *parameter, const void *pointer, bool needed);

/* parameter/device: in host mode the library itself reads the factor */
void lt_check_factor(Call *call, const char *parameter, const void *pointer, int32_t pointer_mode);

/* Sizes of op(matrix); a view [batch, rows, columns] of it. */
int64_t lt_rows(const Layout *layout, int32_t operation);
int64_t lt_columns(const Layout *layout, int32_t operation);
View lt_view(const Layout *layout, const void *data, int32_t operation);
bool lt_same_place(const Layout *layout, const Layout *other); /* every element lies where that of the other does */

/* A factor of the type in *value, or a view of device memory. */
View lt_factor(int32_t pointer_mode, int32_t type, const void *pointer, double *value);

/* Queues the launch: stream/{alive,launch} */
void lt_submit(Call *call, const Launch *launch, mcStream_t handle);

#endif
