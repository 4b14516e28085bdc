/* The neural-network library: umbrella header. Link with -lmcdnn -lmcruntime. */
#ifndef MCDNN_H_
#define MCDNN_H_

#define MCDNN_MAJOR 1
#define MCDNN_MINOR 1
#define MCDNN_PATCHLEVEL 1
#define MCDNN_VERSION (MCDNN_MAJOR * 1000 + MCDNN_MINOR * 100 + MCDNN_PATCHLEVEL)

#include "mcdnn_adv_infer.h"
#include "mcdnn_adv_train.h"
#include "mcdnn_cnn_infer.h"
#include "mcdnn_cnn_train.h"
#include "mcdnn_ops_infer.h"
#include "mcdnn_ops_train.h"

#endif
