#include "copy.h"

#include "kernels/linear_algebra/matrices.h"

void blas_copy_matrix(BlasCall *call, DType dtype, int m, int n, const void *A, int lda, void *C, int ldc,
                      const BlasScalar *factor)
{
    if (!blas_ok(call) || A == C) {
        return;
    }
    BlasCall copy = *call;
    const View absent = us_view_absent(), from = blas_matrix(A, dtype, m, n, lda), to = blas_matrix(C, dtype, m, n,
                                                                                                    ldc);
    us_launch_begin(&copy.launch, call->call.function);
    us_launch_view(&copy.launch, "B", &from);
    us_launch_view(&copy.launch, "", &absent);
    us_launch_access(&copy.launch, "C", &to, VIEW_WRITE);
    us_launch_view(&copy.launch, "", &absent);
    us_launch_view(&copy.launch, "", &absent);
    us_launch_view(&copy.launch, "alpha", &factor->view);
    us_launch_factor(&copy.launch, 0, copy.launch.view_count - 1);
    const MatrixSum sum = {.alpha = {1}};
    blas_submit(&copy, us_matrix_sum, &sum, sizeof sum, false);
    call->call = copy.call;
}
