#include "aclnnop/aclnn_sparse4to2quant_matmul_weight_nz.h"

#include "ascend/common/given_array.h"
#include "ascend/common/objects.h"
#include "ascend/common/status.h"
#include "device/handles.h"
#include "kernels/sizes.h"
#include "report/report.h"

#include <string.h>

enum { OF = 4, BLOCK_ROWS = 16, KEPT_OF_BLOCK = 32, BYTES_OF_BLOCK = 8, RANK = 4 };

/* What the matrix becomes: pieces of blocks beside each other, of 16 rows below each other. */
typedef struct Sparse {
    int64_t n, k, parts, blocks;
    int8_t *kept;
    uint8_t *places;
    int64_t *kept_sizes, *place_sizes;
} Sparse;

static void require_shape(Call *call, const aclIntArray *shape, Sparse *of)
{
    us_require(call, shape != NULL, "shape", "null", ACLNN_ERR_PARAM_NULLPTR, "shape is NULL");
    const Array *array = call->status == 0 ? us_handle_object(shape, HANDLE_INT_ARRAY) : NULL;
    us_require(call, array != NULL, "shape", "handle", ACLNN_ERR_PARAM_INVALID,
               "shape (%p) is no live aclIntArray: destroyed, or never created by this library", (const void *)shape);
    const int64_t none[] = {0, 0};
    const int64_t *sizes = call->status == 0 && array->size == 2 ? (const int64_t *)array->elements : none;
    of->n = sizes[0];
    of->k = sizes[1];
    int64_t elements;
    const int64_t most = INT64_MAX / (BLOCK_ROWS * KEPT_OF_BLOCK);
    const bool sane = of->n > 0 && of->k > 0 && of->n <= most && of->k <= most;
    const int64_t rows = sane ? ceiling(of->n, BLOCK_ROWS) * BLOCK_ROWS : 0;
    us_require(call, sane && !__builtin_mul_overflow(rows, of->k + 2 * KEPT_OF_BLOCK, &elements), "shape", "size",
               ACLNN_ERR_PARAM_INVALID, "shape is of a matrix of %lld rows and %lld columns", (long long)of->n,
               (long long)of->k);
}

/* Where a number of a row is kept: its bytes lie in blocks of `width`. */
static int64_t place_of(const Sparse *of, int64_t row, int64_t at, int64_t width)
{
    return (at / width * of->blocks * BLOCK_ROWS + row) * width + at % width;
}

static void keep(Sparse *of, int64_t row, int64_t at, int8_t value, int place)
{
    of->kept[place_of(of, row, at, KEPT_OF_BLOCK)] = value;
    of->places[place_of(of, row, at / 4, BYTES_OF_BLOCK)] |= (uint8_t)(place << at % 4 * 2);
}

/* Two of four elements; false: there are more. */
static bool keep_of_four(Sparse *of, int64_t row, int64_t group, const int8_t *four, int64_t count)
{
    int found[OF], number = 0;
    for (int i = 0; i < count; i++) {
        found[number] = i;
        number += four[i] != 0;
    }
    if (number == 2) {
        keep(of, row, 2 * group, four[found[0]], found[0]);
        keep(of, row, 2 * group + 1, four[found[1]], found[1] - 1);
    } else if (number == 1) {
        const bool last = found[0] == OF - 1;
        keep(of, row, 2 * group + last, four[found[0]], found[0] - last);
    }
    return number <= 2;
}

static bool keep_all(Sparse *of, const int8_t *weight)
{
    bool fits = true;
    for (int64_t row = 0; row < of->n && fits; row++) {
        for (int64_t begin = 0; begin < of->k && fits; begin += OF) {
            fits = keep_of_four(of, row, begin / OF, weight + row * of->k + begin, smaller(OF, of->k - begin));
        }
    }
    return fits;
}

/* Zeros, but for the memory that there is not. */
static void *taken(size_t size)
{
    void *memory = new_array(size);
    return memory != NULL ? memset(memory, 0, size) : NULL;
}

static bool take_memory(Sparse *of)
{
    of->parts = ceiling(ceiling(of->k, 8) * 4, KEPT_OF_BLOCK);
    of->blocks = ceiling(of->n, BLOCK_ROWS);
    const int64_t sizes[RANK] = {of->parts, of->blocks, BLOCK_ROWS, KEPT_OF_BLOCK};
    const size_t lines = (size_t)(of->parts * of->blocks * BLOCK_ROWS);
    of->kept = taken(lines * KEPT_OF_BLOCK);
    of->places = taken(lines * BYTES_OF_BLOCK);
    of->kept_sizes = taken(sizeof sizes);
    of->place_sizes = taken(sizeof sizes);
    const bool whole = of->kept != NULL && of->places != NULL && of->kept_sizes != NULL && of->place_sizes != NULL;
    if (whole) {
        memcpy(of->kept_sizes, sizes, sizeof sizes);
        memcpy(of->place_sizes, sizes, sizeof sizes);
        of->place_sizes[RANK - 1] = BYTES_OF_BLOCK;
    }
    return whole;
}

static void give_back(const Sparse *of)
{
    delete_array(of->kept);
    delete_array(of->places);
    delete_array(of->kept_sizes);
    delete_array(of->place_sizes);
}

aclnnStatus aclnnTransSparse4to2Para(const int8_t *weight, aclIntArray *shape, int8_t **sparseWeight,
                                     int64_t **sparseWeightDims, uint64_t *sparseWeightDimsNum, uint8_t **index,
                                     int64_t **indexDims, uint64_t *indexDimsNum)
{
    Call call = us_call_begin("aclnnTransSparse4to2Para");
    Sparse of = {0};
    us_require(&call, weight != NULL, "weight", "null", ACLNN_ERR_PARAM_NULLPTR, "weight is NULL");
    const bool whole = sparseWeight != NULL && sparseWeightDims != NULL && sparseWeightDimsNum != NULL;
    us_require(&call, whole && index != NULL && indexDims != NULL && indexDimsNum != NULL, "sparseWeight", "null",
               ACLNN_ERR_PARAM_NULLPTR, "a place for a result is NULL");
    require_shape(&call, shape, &of);
    us_require(&call, call.status != 0 || take_memory(&of), "sparseWeight", "exhausted", ACLNN_ERR_INNER_NULLPTR,
               "no host memory for a matrix of %lld rows and %lld columns", (long long)of.n, (long long)of.k);
    us_require(&call, call.status != 0 || keep_all(&of, weight), "weight", "zeros", ACLNN_ERR_PARAM_INVALID,
               "four integers of weight have more than two that are not 0");
    if (call.status != 0) {
        give_back(&of);
        return us_call_end(&call);
    }
    *sparseWeight = of.kept;
    *sparseWeightDims = of.kept_sizes;
    *index = of.places;
    *indexDims = of.place_sizes;
    *sparseWeightDimsNum = *indexDimsNum = RANK;
    return us_call_end(&call);
}
