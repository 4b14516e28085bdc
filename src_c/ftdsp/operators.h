/* The operators, written once for all prefixes: the element type comes with the call. Parameters are the vendor's, in
 * its order, without core_mask. A file per prefix (fp.c, hp.c …) gives them the vendor's names and types. */
#ifndef FTDSP_OPERATORS_H
#define FTDSP_OPERATORS_H

#include "ftdsp/call.h"

void ft_binarycrossentropygrad(FtCall *call, int input_size, int reduction, const void *input_x, const void *input_y,
                               const void *weight, const void *dloss, void *dx, int weight_defined);

void ft_binarycrossentropy(FtCall *call, int input_size, int reduction, const void *input_x, const void *input_y,
                           const void *weight, void *loss, void *tmp_loss, int weight_defined);

void ft_sigmoidcrossentropywithlogits(FtCall *call, const void *input0, const void *input1, void *output, int length);

void ft_sigmoidcrossentropywithlogitsgrad(FtCall *call, const void *Input0, const void *Input1, void *output,
                                          int length);

void ft_smoothl1lossgrad(FtCall *call, const void *dy, void *dx1, const void *x1, const void *x2, int length,
                         double beta);

void ft_nllloss(FtCall *call, const void *log_probs, const int *labels, const void *weight, void *loss,
                void *total_weight, int batch_size, int class_num, int reduction_type);

void ft_power_grad(FtCall *call, const void *Input1, const void *Input2, void *output, int length, double power,
                   double scale, double shift);

void ft_log_grad(FtCall *call, const void *input0, const void *input1, void *output, int length);

void ft_relu_grad(FtCall *call, const void *src0, const void *src1, void *dst, int length);
void ft_relu6_grad(FtCall *call, const void *src0, const void *src1, void *dst, int length);
void ft_sigmoid_grad(FtCall *call, const void *src0, const void *src1, void *dst, int length);
void ft_tanh_grad(FtCall *call, const void *src0, const void *src1, void *dst, int length);
void ft_hsigmoid(FtCall *call, const void *src0, const void *src1, void *dst, int length);
void ft_hswish(FtCall *call, const void *src0, const void *src1, void *dst, int length);
void ft_gelu(FtCall *call, const void *src0, const void *src1, void *dst, int length);
void ft_softplus(FtCall *call, const void *src0, const void *src1, void *dst, int length);
void ft_l_relu_grad(FtCall *call, const void *src0, const void *src1, void *dst, int length, double alpha);
void ft_elu(FtCall *call, const void *src0, const void *src1, void *dst, int length, double alpha);
void ft_hardshrink(FtCall *call, const void *src0, const void *src1, void *dst, int length, double lambd);
void ft_softshrink(FtCall *call, const void *src0, const void *src1, void *dst, int length, double lambd);

void ft_maximumgrad(FtCall *call, const void *Input0, const void *Input1, const void *dy, const int *Input0_dims,
                    const int *Input1_dims, int num_dims, void *dx0, void *dx1);

void ft_minimumgrad(FtCall *call, const void *Input0, const void *Input1, const void *dy, const int *Input0_dims,
                    const int *Input1_dims, int num_dims, void *dx0, void *dx1);

void ft_biasadd(FtCall *call, const void *input_x, const void *input_bias, void *output, const int *dims,
                int shape_size, const char *data_format, int length);

void ft_biasaddgrad(FtCall *call, const void *dy, const int *dy_dims, int shape_size, void *dbias);

void ft_subext(FtCall *call, const void *input0, const void *input1, double alpha, void *output, int size);

void ft_subrelu(FtCall *call, const void *input0, const void *input1, void *output, int size);
void ft_subrelu6(FtCall *call, const void *input0, const void *input1, void *output, int size);

void ft_pow_fusion(FtCall *call, const void *Input, const void *exponent, void *output, int length_in, double scale,
                   double shift, bool broadcast);

void ft_fullconnection(FtCall *call, const void *A, const void *B, void *C, const void *bias, int M, int N, int K,
                       int activation_type);

void ft_matmulfusion(FtCall *call, const void *A, const void *B, void *C, const void *bias, int M, int N, int K,
                     int act);

void ft_attention(FtCall *call, const void *Q, const void *K, const void *V, void *output, int batch_size,
                  int seq_len, int head_num, int head_dim, void *QK, void *softmax_out);

void ft_raggedrange(FtCall *call, const void *starts, const void *limits, const void *deltas, int range_count,
                    void *values, int *splits);

void ft_applymomentum(FtCall *call, void *weight, void *accumulate, const void *gradient, double learning_rate,
                      double moment, bool nesterov, int start, int end);

void ft_apply_momentum(FtCall *call, void *weight, void *accumulate, const void *gradient, bool nesterov,
                       const float *float_addr, const int *int_addr);

void ft_sgd(FtCall *call, void *weight, void *accumulate, const void *gradient, double learning_rate,
            double dampening, double moment, bool nesterov, double weight_decay, int start, int end);

void ft_adam(FtCall *call, void *m, void *v, const void *gradient, void *weight, double beta1, double beta2,
             const float *beta1_power, const float *beta2_power, double eps, double learning_rate, int nesterov,
             int start, int end);

void ft_adamweightdecay(FtCall *call, void *var, void *m, void *v, const void *gradient, double lr, double beta1,
                        double beta2, double epsilon, double decay, int start, int end);

void ft_fake_quant_with_min_max_vars(FtCall *call, const void *src, double min_val, double max_val, void *output,
                                     int length, int quant_min, int quant_max, bool symmetric);

void ft_concat(FtCall *call, const void *const *inputs, const int *const *input_shapes, int num_inputs, int axis,
               int input_ndim, void *output);

void ft_stack(FtCall *call, const void *const *inputs, const int *input_shape, int num_inputs, int axis,
              int input_ndim, void *output);

void ft_slice(FtCall *call, const void *input, void *output, const int *input_shape, int ndim, const int *begin,
              const int *size);

void ft_tensorarrayread(FtCall *call, const void *const *handle_data, const int *handle_size, int index,
                        void *output_data, int *output_size);

void ft_add(FtCall *call, const void *x, const void *y, void *out, int n);

void ft_sub(FtCall *call, const void *x, const void *y, void *out, int n);

void ft_mul(FtCall *call, const void *x, const void *y, void *out, int n);

void ft_div(FtCall *call, const void *x, const void *y, void *out, int n, int optimize, int first_scalar);

void ft_exp(FtCall *call, const void *x, void *out, int n, double in_scale, double out_scale, int scale);

void ft_linspace(FtCall *call, void *out, double start, double end, int n);

void ft_range(FtCall *call, void *out, double start, double delta, int n);

void ft_glu(FtCall *call, const void *in_data, void *const *split_data, void *out_data, int ndim, int split_dim,
            const int *input_shape, int num_split, const int *split_sizes, const int *strides, int len);

void ft_getw(FtCall *call, float *w, int n, int direction);

void ft_fft(FtCall *call, const float *in, const float *w, float *out, int batch, int n, float *tmp);
void ft_ifft(FtCall *call, const float *in, const float *w, float *out, int batch, int n, float *tmp);

#endif
