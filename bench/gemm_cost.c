/* mcblasSgemm with its wait beside the same product by a bare call of the BLAS, on as many threads, in turn. Arguments: the
 * BLAS library, the prefix of its names, threads. Prints microseconds for each size: size, ours, bare. */
#include "measure.h"

#include <mc_runtime.h>
#include <mcblas.h>

#include <dlfcn.h>

/* REST, nanoseconds: threads of the BLAS look for work so long before they leave the processor. */
enum { COLUMN_MAJOR = 102, AS_IS = 111, TURNS = 4, REST = 200000000 };

typedef void Gemm(int order, int form_a, int form_b, int m, int n, int k, float alpha, const float *a, int lda,
                  const float *b, int ldb, float beta, float *c, int ldc);

static void *function_of(void *library, const char *prefix, const char *name)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%s%s", prefix, name);
    void *found = dlsym(library, whole);
    check(found == NULL, whole);
    return found;
}

static float *matrix(size_t bytes)
{
    void *made = NULL;
    check(mcMalloc(&made, bytes), "mcMalloc");
    check(mcMemset(made, 0, bytes), "mcMemset");
    return made;
}

int main(int count, char **arguments)
{
    static const int sizes[] = {64, 256, 1024};
    void *library = count == 4 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    check(library == NULL, "dlopen");
    Gemm *gemm;
    void (*set_threads)(int);
    *(void **)&gemm = function_of(library, arguments[2], "cblas_sgemm");
    *(void **)&set_threads = function_of(library, arguments[2], "openblas_set_num_threads");
    const int threads = atoi(arguments[3]);
    mcblasHandle_t handle;
    check(mcblasCreate(&handle), "mcblasCreate");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int n = sizes[i];
        const size_t bytes = (size_t)n * (size_t)n * sizeof(float);
        float *a = matrix(bytes), *b = matrix(bytes), *c = matrix(bytes);
        float *host_a = calloc(1, bytes), *host_b = calloc(1, bytes), *host_c = calloc(1, bytes);
        check(host_a == NULL || host_b == NULL || host_c == NULL, "calloc");
        const float one = 1, zero = 0;
        double ours = 1e30, bare = 1e30;
        for (int turn = 0; turn < TURNS; turn++) {
            set_threads(1); /* the library has threads of its own */
            for (int call = 0; call < (n < 1000 ? 200 : 8); call++) {
                const double start = now();
                check(mcblasSgemm(handle, MCBLAS_OP_N, MCBLAS_OP_N, n, n, n, &one, a, n, b, n, &zero, c, n), "mcblasSgemm");
                check(mcDeviceSynchronize(), "mcDeviceSynchronize");
                ours = least(ours, now() - start);
            }
            set_threads(threads);
            for (int call = 0; call < (n < 1000 ? 200 : 8); call++) {
                const double start = now();
                gemm(COLUMN_MAJOR, AS_IS, AS_IS, n, n, n, 1, host_a, n, host_b, n, 0, host_c, n);
                bare = least(bare, now() - start);
            }
            nanosleep(&(const struct timespec){.tv_nsec = REST}, NULL);
        }
        printf("%d %.2f %.2f\n", n, ours, bare);
    }
    return 0;
}
