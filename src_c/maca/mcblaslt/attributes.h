/* Objects that are set and read attribute by attribute: a table says where each attribute lies. */
#ifndef MCBLASLT_ATTRIBUTES_H
#define MCBLASLT_ATTRIBUTES_H

#include "device/handles.h"
#include "report/report.h"

#include <mcblas/mcblasLt.h>
#include <stddef.h>

typedef struct MatmulDesc {
    int32_t compute, scale, pointer_mode, transa, transb, transc, fill;
    uint32_t epilogue;
    void *bias;
    int64_t bias_stride;
    void *a_scale, *b_scale;
    int32_t bias_type;
} MatmulDesc;

typedef struct Layout {
    uint32_t type;
    int32_t order;
    uint64_t rows, cols;
    int64_t ld;
    int32_t batch;
    int64_t stride, plane;
} Layout;

typedef struct Preference {
    uint32_t search_mode, reduction_schemes, alignment_a, alignment_b, alignment_c, alignment_d;
    uint64_t workspace;
    float waves;
} Preference;

enum { HANDLE_LT_MATMUL = 0x4a, HANDLE_LT_LAYOUT = 0x4b, HANDLE_LT_PREFERENCE = 0x4c };

/* The object behind a handle; NULL after a refusal: parameter/alive. */
void *lt_object(Call *call, const char *parameter, const void *handle, HandleKind kind);

#endif
