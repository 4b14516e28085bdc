/* mcblasSgemm and aclnnMatmul with their waits beside the same product by a bare call of the BLAS, on as many threads, in
 * turn. Arguments: the BLAS library, the prefix of its names, threads. Prints microseconds for each size: size, mcblasSgemm,
 * aclnnMatmul, bare. */
#include "measure.h"

#include <acl/acl.h>
#include <aclnnop/aclnn_matmul.h>
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

typedef struct Product {
    int64_t n;
    mcblasHandle_t handle;
    float *a, *b, *c;
    aclrtStream stream;
    aclTensor *x, *y, *out;
    Gemm *gemm;
    float *host_a, *host_b, *host_c;
} Product;

static aclTensor *tensor(int64_t n)
{
    const int64_t shape[] = {n, n}, strides[] = {n, 1};
    const size_t bytes = (size_t)(n * n) * sizeof(float);
    void *made = NULL;
    check(aclrtMalloc(&made, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    check(aclrtMemset(made, bytes, 0, bytes), "aclrtMemset");
    return aclCreateTensor(shape, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, shape, 2, made);
}

static void by_mcblas(const Product *p)
{
    const float one = 1, zero = 0;
    const int n = (int)p->n;
    check(mcblasSgemm(p->handle, MCBLAS_OP_N, MCBLAS_OP_N, n, n, n, &one, p->a, n, p->b, n, &zero, p->c, n), "mcblasSgemm");
    check(mcDeviceSynchronize(), "mcDeviceSynchronize");
}

static void by_aclnn(const Product *p)
{
    uint64_t size;
    aclOpExecutor *executor;
    check(aclnnMatmulGetWorkspaceSize(p->x, p->y, p->out, 0, &size, &executor), "phase 1");
    check(aclnnMatmul(NULL, size, executor, p->stream), "phase 2");
    check(aclrtSynchronizeStream(p->stream), "aclrtSynchronizeStream");
}

static void bare(const Product *p)
{
    const int n = (int)p->n;
    p->gemm(COLUMN_MAJOR, AS_IS, AS_IS, n, n, n, 1, p->host_a, n, p->host_b, n, 0, p->host_c, n);
}

/* The best of some calls, or what was better before. */
static double best_of(double before, void (*call)(const Product *), const Product *product)
{
    const int calls = product->n < 1000 ? 200 : 30;
    for (int i = 0; i < calls; i++) {
        const double start = now();
        call(product);
        before = least(before, now() - start);
    }
    return before;
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
    Product product = {.gemm = gemm};
    check(mcblasCreate(&product.handle), "mcblasCreate");
    check(aclInit(NULL), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    check(aclrtCreateStream(&product.stream), "aclrtCreateStream");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int n = sizes[i];
        const size_t bytes = (size_t)n * (size_t)n * sizeof(float);
        product.n = n;
        product.a = matrix(bytes), product.b = matrix(bytes), product.c = matrix(bytes);
        product.x = tensor(n), product.y = tensor(n), product.out = tensor(n);
        product.host_a = calloc(1, bytes), product.host_b = calloc(1, bytes), product.host_c = calloc(1, bytes);
        check(product.host_a == NULL || product.host_b == NULL || product.host_c == NULL, "calloc");
        double mcblas = 1e30, aclnn = 1e30, blas = 1e30;
        for (int turn = 0; turn < TURNS; turn++) {
            set_threads(1); /* the library has threads of its own */
            mcblas = best_of(mcblas, by_mcblas, &product);
            aclnn = best_of(aclnn, by_aclnn, &product);
            set_threads(threads);
            blas = best_of(blas, bare, &product);
            nanosleep(&(const struct timespec){.tv_nsec = REST}, NULL);
        }
        printf("%d %.2f %.2f %.2f\n", n, mcblas, aclnn, blas);
    }
    return 0;
}
