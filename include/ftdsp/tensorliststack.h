/* Joins the tensors of a list, one behind the other.
 *
 * tensor_data_type[i] is the number of bytes per element; tensor i has tensor_element_nums[i] elements. A tensor of
 * type 0 is unknown: its data is not read, and it takes unknown_type_offset bytes of the output, which are set to 0.
 *
 * Operands lie in space all cores see (DDR, SMC); core_mask bit i: core i takes part. There is no prefix and no _p. */
#ifndef TENSORLISTSTACK_H
#define TENSORLISTSTACK_H

#ifdef __cplusplus
extern "C" {
#endif

void tensorliststack_s(int tensor_num, int *tensor_element_nums, int *tensor_data_type, void **tensor_data,
                       void *output_data, int unknown_type_offset, int core_mask);

#ifdef __cplusplus
}
#endif

#endif
