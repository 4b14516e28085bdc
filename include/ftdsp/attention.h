/* Scaled dot-product attention.
 *
 * output = softmax(Q * K^T / sqrt(head_dim)) * V for each of batch_size * head_num heads; Q, K, V and output are
 * [batch_size, head_num, seq_len, head_dim]. QK and softmax_out take the scores and their softmax,
 * batch_size * head_num * seq_len^2 elements each. No two buffers may overlap.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2. */
#ifndef ATTENTION_OP_H
#define ATTENTION_OP_H

#ifdef __cplusplus
extern "C" {
#endif

void fp_attention_s(float *Q, float *K, float *V, float *output, int batch_size, int seq_len, int head_num,
                    int head_dim, float *QK, float *softmax_out, int core_mask);
void fp_attention_p(float *Q, float *K, float *V, float *output, int batch_size, int seq_len, int head_num,
                    int head_dim, float *QK, float *softmax_out);

#ifdef __cplusplus
}
#endif

#endif
