#include "kernels/matmul/blas.h"

#include "report/report.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAME_LIMIT = 64 };

typedef void FloatGemm(int order, int form_a, int form_b, int m, int n, int k, float alpha, const void *a, int lda,
                       const void *b, int ldb, float beta, void *c, int ldc);
typedef void DoubleGemm(int order, int form_a, int form_b, int m, int n, int k, double alpha, const void *a, int lda,
                        const void *b, int ldb, double beta, void *c, int ldc);
typedef void ComplexGemm(int order, int form_a, int form_b, int m, int n, int k, const void *alpha, const void *a,
                         int lda, const void *b, int ldb, const void *beta, void *c, int ldc);
typedef void FloatGemv(int order, int form, int m, int n, float alpha, const void *a, int lda, const void *x, int incx,
                       float beta, void *y, int incy);
typedef void DoubleGemv(int order, int form, int m, int n, double alpha, const void *a, int lda, const void *x,
                        int incx, double beta, void *y, int incy);
typedef void ComplexGemv(int order, int form, int m, int n, const void *alpha, const void *a, int lda, const void *x,
                         int incx, const void *beta, void *y, int incy);

static struct {
    void *library; /* NULL: none found */
    void *lapack;  /* a library of its own, or the same */
    const char *prefix;
    bool is_openblas;
    FloatGemm *sgemm;
    DoubleGemm *dgemm;
    ComplexGemm *cgemm, *zgemm;
    FloatGemv *sgemv;
    DoubleGemv *dgemv;
    ComplexGemv *cgemv, *zgemv;
} blas;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *function_of(void *library, const char *name, const char *suffix)
{
    char symbol[NAME_LIMIT];
    snprintf(symbol, sizeof symbol, "%s%s%s", blas.prefix, name, suffix);
    return library != NULL ? dlsym(library, symbol) : NULL;
}

static bool find_products(void *library)
{
    *(void **)&blas.sgemm = function_of(library, "cblas_sgemm", "");
    *(void **)&blas.dgemm = function_of(library, "cblas_dgemm", "");
    *(void **)&blas.cgemm = function_of(library, "cblas_cgemm", "");
    *(void **)&blas.zgemm = function_of(library, "cblas_zgemm", "");
    *(void **)&blas.sgemv = function_of(library, "cblas_sgemv", "");
    *(void **)&blas.dgemv = function_of(library, "cblas_dgemv", "");
    *(void **)&blas.cgemv = function_of(library, "cblas_cgemv", "");
    *(void **)&blas.zgemv = function_of(library, "cblas_zgemv", "");
    return blas.sgemm && blas.dgemm && blas.cgemm && blas.zgemm && blas.sgemv && blas.dgemv && blas.cgemv && blas.zgemv;
}

static bool adopt(void *library, const char *prefix)
{
    blas.prefix = prefix;
    if (!find_products(library)) {
        return false;
    }
    void (*set_threads)(int count);
    *(void **)&set_threads = function_of(library, "openblas_set_num_threads", "");
    blas.is_openblas = set_threads != NULL;
    if (blas.is_openblas) {
        set_threads(1);
    }
    blas.library = library;
    blas.lapack = library;
    return true;
}

static bool load(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return false;
    }
    if (adopt(library, "scipy_") || adopt(library, "")) {
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
    for (size_t i = 0; i < sizeof names / sizeof names[0] && blas.library == NULL; i++) {
        load(names[i]);
    }
    if (blas.library != NULL && function_of(blas.lapack, "sgetrf", "_") == NULL) {
        blas.lapack = dlopen("liblapack.so.3", RTLD_NOW | RTLD_LOCAL);
    }
}

bool us_blas_available(void)
{
    pthread_once(&once, load_any);
    return blas.library != NULL;
}

void *us_lapack_function(const char *name)
{
    return us_blas_available() ? function_of(blas.lapack, name, "_") : NULL;
}

void *us_lapack_routine(DType dtype, const char *routine)
{
    const char letter = dtype == DTYPE_FLOAT32 ? 's' : dtype == DTYPE_FLOAT64 ? 'd' : dtype == DTYPE_COMPLEX64 ? 'c' : 'z';
    char name[NAME_LIMIT];
    snprintf(name, sizeof name, "%c%s", letter, routine);
    return us_lapack_function(name);
}

/* OpenBLAS packs operands into a buffer that a thread takes for each call, and asks for what lies some way behind. Where no call
 * has written there yet, that is no memory so far, and on virtual machines such requests make a product of 256 x 256 x 256
 * three times as slow. The first call of a thread writes there: as many rows as make OpenBLAS keep all of B. */
static void fill_buffer(void)
{
    enum { ROWS = 656, COLUMNS = 48, DEPTH = 384, AS_IS = 111, BY_COLUMNS = 102 };
    static _Thread_local bool is_full;
    if (is_full || !blas.is_openblas) {
        return;
    }
    is_full = true;
    float *const zeros = calloc((size_t)ROWS * (DEPTH + COLUMNS), sizeof *zeros);
    if (zeros != NULL) {
        blas.sgemm(BY_COLUMNS, AS_IS, AS_IS, ROWS, COLUMNS, DEPTH, 1, zeros, ROWS, zeros, DEPTH, 0, zeros + ROWS * DEPTH, ROWS);
    }
    free(zeros);
}

void us_blas_gemm(const BlasProduct *p)
{
    fill_buffer();
    const float alpha[2] = {(float)p->alpha[0], (float)p->alpha[1]}, beta[2] = {(float)p->beta[0], (float)p->beta[1]};
    switch (p->dtype) {
    case DTYPE_FLOAT32:
        blas.sgemm(p->order, p->form_a, p->form_b, p->m, p->n, p->k, alpha[0], p->a, p->lda, p->b, p->ldb, beta[0],
                   p->c, p->ldc);
        break;
    case DTYPE_FLOAT64:
        blas.dgemm(p->order, p->form_a, p->form_b, p->m, p->n, p->k, p->alpha[0], p->a, p->lda, p->b, p->ldb,
                   p->beta[0], p->c, p->ldc);
        break;
    case DTYPE_COMPLEX64:
        blas.cgemm(p->order, p->form_a, p->form_b, p->m, p->n, p->k, alpha, p->a, p->lda, p->b, p->ldb, beta, p->c,
                   p->ldc);
        break;
    default:
        blas.zgemm(p->order, p->form_a, p->form_b, p->m, p->n, p->k, p->alpha, p->a, p->lda, p->b, p->ldb, p->beta,
                   p->c, p->ldc);
    }
}

void us_blas_gemv(const BlasProduct *p)
{
    const float alpha[2] = {(float)p->alpha[0], (float)p->alpha[1]}, beta[2] = {(float)p->beta[0], (float)p->beta[1]};
    switch (p->dtype) {
    case DTYPE_FLOAT32:
        blas.sgemv(p->order, p->form_a, p->m, p->n, alpha[0], p->a, p->lda, p->b, p->ldb, beta[0], p->c, p->ldc);
        break;
    case DTYPE_FLOAT64:
        blas.dgemv(p->order, p->form_a, p->m, p->n, p->alpha[0], p->a, p->lda, p->b, p->ldb, p->beta[0], p->c, p->ldc);
        break;
    case DTYPE_COMPLEX64:
        blas.cgemv(p->order, p->form_a, p->m, p->n, alpha, p->a, p->lda, p->b, p->ldb, beta, p->c, p->ldc);
        break;
    default:
        blas.zgemv(p->order, p->form_a, p->m, p->n, p->alpha, p->a, p->lda, p->b, p->ldb, p->beta, p->c, p->ldc);
    }
}
