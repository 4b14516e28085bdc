/* A filter seen as a tensor, packed in its format. */
#ifndef MCDNN_FILTER_H
#define MCDNN_FILTER_H

#include "descriptors.h"

/* parameter/alive, parameter/set */
Tensor check_filter(Call *call, const char *parameter, mcdnnFilterDescriptor_t filterDesc);

#endif
