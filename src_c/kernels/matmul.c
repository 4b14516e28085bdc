#include "kernels/matmul.h"

#include "report/report.h"
#include "tensor/parallel.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

enum { BLOCK_ROWS = 256, BLOCK_COLUMNS = 256 };

/* cblas.h: CblasRowMajor 101, CblasNoTrans 111, CblasTrans 112; sizes are int. */
enum { ROW_MAJOR = 101, AS_IS = 111, TRANSPOSED = 112 };
typedef void SingleProduct(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                           const float *a, int a_stride, const float *b, int b_stride, float beta, float *c, int c_stride);
typedef void DoubleProduct(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                           const double *a, int a_stride, const double *b, int b_stride, double beta, double *c,
                           int c_stride);
typedef void SetThreads(int count);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static SingleProduct *single_product; /* NULL: none found */
static DoubleProduct *double_product; /* there when the other is */

/* The library's own threads would work against ours: one is enough. */
static bool adopt(void *library, const char *single_name, const char *double_name, const char *threads_name)
{
    void *single = dlsym(library, single_name);
    *(void **)&double_product = dlsym(library, double_name);
    if (single == NULL || double_product == NULL) {
        return false;
    }
    *(void **)&single_product = single;
    SetThreads *set_threads;
    *(void **)&set_threads = dlsym(library, threads_name);
    if (set_threads != NULL) {
        set_threads(1);
    }
    return true;
}

static bool load(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return false;
    }
    if (adopt(library, "scipy_cblas_sgemm", "scipy_cblas_dgemm", "scipy_openblas_set_num_threads") ||
        adopt(library, "cblas_sgemm", "cblas_dgemm", "openblas_set_num_threads")) {
        return true;
    }
    dlclose(library);
    return false;
}

static void load_any(void)
{
    const char *chosen = us_environment_text("UNDERSTUDY_BLAS", "");
    if (chosen[0] != '\0') {
        if (!load(chosen)) {
            us_log(LOG_LEVEL_ERROR, "UNDERSTUDY_BLAS=%s has no cblas_sgemm or cannot be loaded", chosen);
        }
        return;
    }
    static const char *const names[] = {"libscipy_openblas.so", "libopenblas.so.0", "libcblas.so.3", "libblas.so.3"};
    for (size_t i = 0; i < sizeof names / sizeof names[0] && single_product == NULL; i++) {
        load(names[i]);
    }
}

bool us_matmul_available(void)
{
    pthread_once(&once, load_any);
    return single_product != NULL;
}

static const float *block_start(const Matrix *matrix, int64_t row, int64_t column)
{
    return matrix->transposed ? matrix->data + column * matrix->stride + row
                              : matrix->data + row * matrix->stride + column;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void multiply_block(void *context, int64_t piece)
{
    const MatrixProduct *product = context;
    int64_t blocks = (product->n + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS;
    int64_t row = piece / blocks * BLOCK_ROWS;
    int64_t column = piece % blocks * BLOCK_COLUMNS;
    single_product(ROW_MAJOR, product->a.transposed ? TRANSPOSED : AS_IS, product->b.transposed ? TRANSPOSED : AS_IS,
                   (int)least(BLOCK_ROWS, product->m - row), (int)least(BLOCK_COLUMNS, product->n - column),
                   (int)product->k, 1.0f, block_start(&product->a, row, 0), (int)product->a.stride,
                   block_start(&product->b, 0, column), (int)product->b.stride, product->accumulate ? 1.0f : 0.0f,
                   product->result + row * product->result_stride + column, (int)product->result_stride);
}

void us_matmul(const MatrixProduct *product)
{
    if (!us_matmul_available()) {
        return; /* callers have asked */
    }
    int64_t rows = (product->m + BLOCK_ROWS - 1) / BLOCK_ROWS;
    int64_t columns = (product->n + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS;
    us_parallel(rows * columns, multiply_block, (void *)product);
}

void us_matmul_double(const MatrixProductDouble *product)
{
    if (!us_matmul_available()) {
        return;
    }
    double_product(ROW_MAJOR, AS_IS, AS_IS, (int)product->m, (int)product->n, (int)product->k, 1.0, product->a,
                   (int)product->a_stride, product->b, (int)product->b_stride, product->accumulate ? 1.0 : 0.0,
                   product->result, (int)product->result_stride);
}
