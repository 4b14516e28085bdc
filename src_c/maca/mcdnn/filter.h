/* Filter descriptors, and a filter seen as a tensor, packed in its format. */
#ifndef MCDNN_FILTER_H
#define MCDNN_FILTER_H

#include "descriptors.h"

typedef struct FilterDescriptor {
    mcdnnDataType_t type;
    mcdnnTensorFormat_t format;
    int32_t rank; /* 0 until set */
    int sizes[MCDNN_DIM_MAX];
    size_t bytes;
} FilterDescriptor;

/* parameter/alive, parameter/set */
Tensor check_filter(Call *call, const char *parameter, mcdnnFilterDescriptor_t filterDesc);

#endif
