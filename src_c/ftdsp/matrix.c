/* Matrix products and attention (ft-dsp 4, 5.1). */
#include "ftdsp/operators.h"
#include "ftdsp/shape.h"
#include "kernels/arrays/complex.h"

static void run_product(void *context, int64_t begin, int64_t end)
{
    us_array_matrix_product(context, begin, end);
}

static void check_output(FtCall *call, const ArrayMatrixProduct *work)
{
    const int64_t m = work->m, size = (int64_t)us_dtype_size(call->dtype), c_bytes = m * work->n * size;
    ft_operand(call, "A", work->a, m * work->k, call->dtype);
    ft_operand(call, "B", work->b, work->k * work->n, call->dtype);
    ft_operand(call, "C", work->c, m * work->n, call->dtype);
    ft_operand(call, "bias", work->bias, work->bias ? m * work->n : 0, call->dtype);
    ft_apart(call, "C", work->c, c_bytes, "A", work->a, m * work->k * size);
    ft_apart(call, "C", work->c, c_bytes, "B", work->b, work->k * work->n * size);
    if (work->bias) {
        ft_same_or_apart(call, "C", work->c, "bias", work->bias, m * work->n, call->dtype);
    }
}

static void product(FtCall *call, ArrayMatrixProduct *work, int M, int N, int K)
{
    ft_length(call, "M", M);
    ft_length(call, "N", N);
    ft_length(call, "K", K);
    const int64_t m = M, n = N, k = K;
    ft_require(call, m * k <= FT_ELEMENT_LIMIT && k * n <= FT_ELEMENT_LIMIT && m * n <= FT_ELEMENT_LIMIT, "M",
               "overflow",
               FT_BAD_SIZE, "M, N, K are %d, %d, %d: more elements than any memory holds", M, N, K);
    if (!ft_ok(call) || M == 0 || N == 0) {
        return;
    }
    work->m = M;
    work->n = N;
    work->k = K;
    check_output(call, work);
    if (ft_ok(call)) {
        ft_split(call, us_array_matrix_product_pieces(work), 1, run_product, work);
        ft_require(call, !work->no_memory, "C", "no-memory", FT_NO_MEMORY, "no host memory for a block of the product");
    }
}

static bool is_activation(int code)
{
    return code >= ARRAY_ACTIVATION_NONE && code <= ARRAY_ACTIVATION_RELU6;
}

void ft_fullconnection(FtCall *call, const void *A, const void *B, void *C, const void *bias, int M, int N, int K,
                       int activation_type)
{
    ft_require(call, is_activation(activation_type), "activation_type", "range", FT_BAD_ATTRIBUTE,
               "activation_type is %d; 0 is none, 1 ReLU, 2 ReLU6", activation_type);
    ArrayMatrixProduct work = {.a = A, .b = B, .bias = bias, .c = C, .dtype = call->dtype};
    work.activation = (ArrayActivation)activation_type;
    product(call, &work, M, N, K);
}

void ft_matmulfusion(FtCall *call, const void *A, const void *B, void *C, const void *bias, int M, int N, int K,
                     int act)
{
    ft_require(call, is_activation(act), "act", "range", FT_BAD_ATTRIBUTE, "act is %d; 0 is none, 1 ReLU, 2 ReLU6",
               act);
    ft_require(call, act == ARRAY_ACTIVATION_NONE || !us_array_is_complex(call->dtype), "act", "complex", FT_BAD_ATTRIBUTE,
               "act is %d; complex numbers have no order, so no ReLU", act);
    ArrayMatrixProduct work = {.a = A, .b = B, .bias = bias, .c = C, .dtype = call->dtype};
    work.activation = (ArrayActivation)act;
    product(call, &work, M, N, K);
}

static void run_attention(void *context, int64_t begin, int64_t end)
{
    us_array_attention(context, begin, end);
}

enum { FIRST_OUTPUT = 3, OPERANDS = 6 };

void ft_attention(FtCall *call, const void *Q, const void *K, const void *V, void *output, int batch_size, int seq_len,
                  int head_num, int head_dim, void *QK, void *softmax_out)
{
    ft_length(call, "batch_size", batch_size);
    ft_length(call, "seq_len", seq_len);
    ft_length(call, "head_num", head_num);
    ft_length(call, "head_dim", head_dim);
    const int64_t row_sizes[] = {batch_size, head_num, seq_len, head_dim};
    const int64_t score_sizes[] = {batch_size, head_num, seq_len, seq_len};
    const int64_t elements = us_shape_elements(4, row_sizes), scores = us_shape_elements(4, score_sizes);
    ft_require(call, elements >= 0 && elements <= FT_ELEMENT_LIMIT && scores >= 0 && scores <= FT_ELEMENT_LIMIT,
               "seq_len", "overflow", FT_BAD_SIZE,
               "%d batches of %d heads of %d rows of %d: more than any memory holds", batch_size,
               head_num, seq_len, head_dim);
    if (!ft_ok(call) || elements == 0) {
        return;
    }
    const struct {
        const char *name;
        const void *data;
        int64_t count;
    } operands[OPERANDS] = {
        {"Q", Q, elements},           {"K", K, elements}, {"V", V, elements},
        {"output", output, elements}, {"QK", QK, scores}, {"softmax_out", softmax_out, scores},
    };
    const int64_t size = (int64_t)us_dtype_size(call->dtype);
    for (int k = 0; k < OPERANDS; k++) {
        ft_operand(call, operands[k].name, operands[k].data, operands[k].count, call->dtype);
    }
    for (int out = FIRST_OUTPUT; out < OPERANDS; out++) {
        for (int other = 0; other < out; other++) {
            ft_apart(call, operands[out].name, operands[out].data, operands[out].count * size, operands[other].name,
                     operands[other].data, operands[other].count * size);
        }
    }
    if (ft_ok(call)) {
        ArrayAttention work = {
            .q = Q, .k = K, .v = V, .out = output, .scores = QK, .weights = softmax_out,
            .heads = (int64_t)batch_size * head_num, .length = seq_len, .depth = head_dim,
        };
        ft_split(call, us_array_attention_pieces(&work), 1, run_attention, &work);
        ft_require(call, !work.no_memory, "output", "no-memory", FT_NO_MEMORY, "no host memory for a block of a product");
    }
}
