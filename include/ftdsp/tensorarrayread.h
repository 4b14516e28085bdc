/* Copies one tensor out of a list.
 *
 * handle_data[index], of handle_size[index] bytes, goes to output_data, and its size in bytes to output_size[0]. The
 * element type does not matter, nor does alignment.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_; MT7004 has no dp_, i8_, c128_. */
#ifndef TENSORARRAYREAD_H
#define TENSORARRAYREAD_H

#ifdef __cplusplus
extern "C" {
#endif

void fp_tensorarrayread_s(void **handle_data, int *handle_size, int index, void *output_data, int *output_size,
                          int core_mask);
void fp_tensorarrayread_p(void **handle_data, int *handle_size, int index, void *output_data, int *output_size);
void hp_tensorarrayread_s(void **handle_data, int *handle_size, int index, void *output_data, int *output_size,
                          int core_mask);
void hp_tensorarrayread_p(void **handle_data, int *handle_size, int index, void *output_data, int *output_size);
void dp_tensorarrayread_s(void **handle_data, int *handle_size, int index, void *output_data, int *output_size,
                          int core_mask);
void dp_tensorarrayread_p(void **handle_data, int *handle_size, int index, void *output_data, int *output_size);
void i8_tensorarrayread_s(void **handle_data, int *handle_size, int index, void *output_data, int *output_size,
                          int core_mask);
void i8_tensorarrayread_p(void **handle_data, int *handle_size, int index, void *output_data, int *output_size);
void i16_tensorarrayread_s(void **handle_data, int *handle_size, int index, void *output_data, int *output_size,
                           int core_mask);
void i16_tensorarrayread_p(void **handle_data, int *handle_size, int index, void *output_data, int *output_size);
void i32_tensorarrayread_s(void **handle_data, int *handle_size, int index, void *output_data, int *output_size,
                           int core_mask);
void i32_tensorarrayread_p(void **handle_data, int *handle_size, int index, void *output_data, int *output_size);
void c64_tensorarrayread_s(void **handle_data, int *handle_size, int index, void *output_data, int *output_size,
                           int core_mask);
void c64_tensorarrayread_p(void **handle_data, int *handle_size, int index, void *output_data, int *output_size);
void c128_tensorarrayread_s(void **handle_data, int *handle_size, int index, void *output_data, int *output_size,
                            int core_mask);
void c128_tensorarrayread_p(void **handle_data, int *handle_size, int index, void *output_data, int *output_size);

#ifdef __cplusplus
}
#endif

#endif
