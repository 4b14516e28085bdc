/* The checks that all convolution calls share, and what an algorithm number means (mcdnn-cnn 7 to 9). */
#include "convolution.h"
#include "filter.h"

ConvCall conv_of(const char *function, ConvDirection direction, const char *x_name, mcdnnTensorDescriptor_t x,
                 const char *w_name, mcdnnFilterDescriptor_t w, const char *y_name, mcdnnTensorDescriptor_t y,
                 mcdnnConvolutionDescriptor_t convDesc)
{
    return (ConvCall){.function = function, .direction = direction,
                      .x_name = x_name, .w_name = w_name, .y_name = y_name, .x_descriptor = x,
                      .w_descriptor = w, .y_descriptor = y, .conv_descriptor = convDesc};
}

void conv_open(ConvCall *conv, mcdnnHandle_t handle)
{
    Call *call = &conv->call;
    *call = us_call_begin(conv->function);
    conv->dnn = check_handle(call, handle);
    conv->x = check_tensor(call, conv->x_name, conv->x_descriptor);
    conv->w = check_filter(call, conv->w_name, conv->w_descriptor);
    conv->conv = check_convolution(call, conv->conv_descriptor);
    conv->y = check_tensor(call, conv->y_name, conv->y_descriptor);
}

/* ---- types (mcdnn-cnn 7.1) ---- */

static bool is_integer(mcdnnDataType_t type)
{
    return type == MCDNN_DATA_INT8 || type == MCDNN_DATA_UINT8 || type_lanes(type) > 1;
}

/* The type of the filter that goes with x. */
static mcdnnDataType_t filter_type(mcdnnDataType_t type)
{
    return type == MCDNN_DATA_UINT8 ? MCDNN_DATA_INT8 : type == MCDNN_DATA_UINT8x4 ? MCDNN_DATA_INT8x4 : type;
}

static bool is_output_type(mcdnnDataType_t type, mcdnnDataType_t output)
{
    return output == filter_type(type) ||
           (is_integer(type) && type != MCDNN_DATA_INT8x32 && output == MCDNN_DATA_FLOAT);
}

static bool is_compute_type(mcdnnDataType_t type, mcdnnDataType_t compute)
{
    return is_integer(type)              ? compute == MCDNN_DATA_INT32
           : type == MCDNN_DATA_DOUBLE ? compute == MCDNN_DATA_DOUBLE
                                       : compute == MCDNN_DATA_FLOAT || (compute == type && type != MCDNN_DATA_DOUBLE);
}

/* Integers that do not go together forward are not supported, see check_integers; anything else does not match. */
static void check_types(ConvCall *conv)
{
    Call *call = &conv->call;
    if (call->status != 0)
        return;
    const mcdnnDataType_t x = conv->x->type;
    us_require(call, conv->w.type == filter_type(x), conv->w_name, "type", MCDNN_STATUS_BAD_PARAM,
               "%s is %s, %s is %s: they do not go together", conv->w_name, type_name(conv->w.type), conv->x_name,
               type_name(x));
    const bool other_integers = conv->direction == CONV_FORWARD && is_integer(x) && is_integer(conv->y->type);
    us_require(call, other_integers || is_output_type(x, conv->y->type), conv->y_name, "type", MCDNN_STATUS_BAD_PARAM,
               "%s is %s, %s is %s: they do not go together", conv->y_name, type_name(conv->y->type), conv->x_name,
               type_name(x));
}

/* Vectors of channels must be stored as such. */
static void check_vectors(ConvCall *conv, const char *parameter, const Tensor *tensor)
{
    us_require(&conv->call, tensor->lanes == type_lanes(tensor->type), parameter, "vectors", MCDNN_STATUS_BAD_PARAM,
               "%s is %s, which must have the format NCHW_VECT_C", parameter, type_name(tensor->type));
}

/* ---- sizes (mcdnn-cnn 8.2) ---- */

static void check_ranks(ConvCall *conv)
{
    Call *call = &conv->call;
    us_require(call, conv->x->rank >= 3, conv->x_name, "rank", MCDNN_STATUS_BAD_PARAM,
               "%s has %d dimensions, 3 are needed", conv->x_name, conv->x->rank);
    us_require(call, conv->w.rank == conv->x->rank, conv->w_name, "rank", MCDNN_STATUS_BAD_PARAM,
               "%s has %d dimensions, %s %d", conv->w_name, conv->w.rank, conv->x_name, conv->x->rank);
    us_require(call, conv->y->rank == conv->x->rank, conv->y_name, "rank", MCDNN_STATUS_BAD_PARAM,
               "%s has %d dimensions, %s %d", conv->y_name, conv->y->rank, conv->x_name, conv->x->rank);
    us_require(call, conv->x->rank == conv->conv->axes + 2, "convDesc", "rank", MCDNN_STATUS_BAD_PARAM,
               "convDesc has %d spatial dimensions, %s %d", conv->conv->axes, conv->x_name, conv->x->rank - 2);
}

static void check_channels(ConvCall *conv)
{
    Call *call = &conv->call;
    us_require(call, conv->x->sizes[1] == conv->w.sizes[1] * conv->conv->groups, conv->w_name, "channels",
               MCDNN_STATUS_BAD_PARAM, "%s has %lld channels, the filter %lld in %d groups", conv->x_name,
               (long long)conv->x->sizes[1], (long long)conv->w.sizes[1], conv->conv->groups);
    us_require(call, conv->w.sizes[0] % conv->conv->groups == 0, conv->w_name, "groups",
               conv->direction == CONV_DATA ? MCDNN_STATUS_NOT_SUPPORTED : MCDNN_STATUS_BAD_PARAM,
               "the filter's %lld output maps are no multiple of %d groups", (long long)conv->w.sizes[0],
               conv->conv->groups);
    us_require(call, conv->y->sizes[0] == conv->x->sizes[0] && conv->y->sizes[1] == conv->w.sizes[0], conv->y_name,
               "maps", MCDNN_STATUS_BAD_PARAM, "%s has %lld images of %lld maps, %lld of %lld are needed", conv->y_name,
               (long long)conv->y->sizes[0], (long long)conv->y->sizes[1], (long long)conv->x->sizes[0],
               (long long)conv->w.sizes[0]);
}

static void check_space(ConvCall *conv)
{
    Call *call = &conv->call;
    const bool forward = conv->direction == CONV_FORWARD;
    for (int axis = 0; call->status == 0 && axis < conv->conv->axes; axis++) {
        const int64_t wanted =
            convolution_output(conv->conv, axis, conv->x->sizes[2 + axis], conv->w.sizes[2 + axis]);
        us_require(call, !forward || wanted > 0, conv->w_name, "window", MCDNN_STATUS_BAD_PARAM,
                   "the dilated filter is larger than the padded input in spatial dimension %d", axis);
        us_require(call, conv->y->sizes[2 + axis] == wanted, conv->y_name, "output-sizes",
                   forward ? MCDNN_STATUS_NOT_SUPPORTED : MCDNN_STATUS_BAD_PARAM,
                   "%s has the size %lld in spatial dimension %d, the convolution gives %lld", conv->y_name,
                   (long long)conv->y->sizes[2 + axis], axis, (long long)wanted);
    }
}

/* ---- what is supported ---- */

static void check_strides(ConvCall *conv, const char *parameter, const Tensor *tensor)
{
    ShapeText text;
    for (int32_t axis = 0; conv->call.status == 0 && axis < tensor->rank; axis++)
        us_require(&conv->call, tensor->strides[axis] >= 0, parameter, "negative-stride", MCDNN_STATUS_NOT_SUPPORTED,
                   "%s has strides %s, one of them negative", parameter, strides_text(tensor, text));
}

/* 8-bit integers run forward: plain ones channels last in fours, vectors in NCHW_VECT_C (mcdnn-cnn 7.3). */
static void check_integers(ConvCall *conv)
{
    Call *call = &conv->call;
    us_require(call, conv->direction == CONV_FORWARD, conv->x_name, "unsupported-type", MCDNN_STATUS_NOT_SUPPORTED,
               "%s is %s, which runs forward only", conv->x_name, type_name(conv->x->type));
    us_require(call, is_output_type(conv->x->type, conv->y->type), conv->y_name, "output-type",
               MCDNN_STATUS_NOT_SUPPORTED, "%s is %s, %s is %s: integers of these types do not run", conv->y_name,
               type_name(conv->y->type), conv->x_name, type_name(conv->x->type));
    us_require(call, conv->x->lanes > 1 || conv->x->sizes[1] == 1 || conv->x->strides[1] == 1, conv->x_name, "layout",
               MCDNN_STATUS_NOT_SUPPORTED, "%s is %s and not channels last", conv->x_name, type_name(conv->x->type));
    us_require(call, conv->x->lanes > 1 || (conv->x->sizes[1] % 4 == 0 && conv->w.sizes[0] % 4 == 0), conv->x_name,
               "fours", MCDNN_STATUS_NOT_SUPPORTED, "%lld input and %lld output channels are not multiples of 4",
               (long long)conv->x->sizes[1], (long long)conv->w.sizes[0]);
    us_require(call, conv->x->lanes == 1 || (conv->conv->groups == 1 && conv->conv->axes == 2), "convDesc",
               "vectors", MCDNN_STATUS_NOT_SUPPORTED,
               "vectors of channels run in two spatial dimensions and one group");
    for (int axis = 0; call->status == 0 && axis < conv->conv->axes; axis++)
        us_require(call, conv->conv->dilation[axis] == 1, "convDesc", "dilation", MCDNN_STATUS_NOT_SUPPORTED,
                   "the dilation is %d, with integers only 1 is supported", conv->conv->dilation[axis]);
}

void conv_check(ConvCall *conv)
{
    Call *call = &conv->call;
    check_ranks(conv);
    check_channels(conv);
    check_types(conv);
    check_vectors(conv, conv->x_name, conv->x);
    check_vectors(conv, conv->w_name, &conv->w);
    check_vectors(conv, conv->y_name, conv->y);
    check_space(conv);
    us_require(call, conv->x->rank <= CONV_AXES + 2, conv->x_name, "dimensions", MCDNN_STATUS_NOT_SUPPORTED,
               "%s has %d dimensions, supported are 3 to 5", conv->x_name, conv->x->rank);
    check_strides(conv, conv->x_name, conv->x);
    check_strides(conv, conv->y_name, conv->y);
    if (call->status == 0 && is_integer(conv->x->type))
        check_integers(conv);
    else
        check_float_type(call, conv->x_name, conv->x);
    us_require(call, is_compute_type(conv->x->type, conv->conv->compute), "convDesc", "compute-type",
               MCDNN_STATUS_NOT_SUPPORTED, "convDesc computes in %s, which %s data do not",
               type_name(conv->conv->compute), type_name(conv->x->type));
    if (conv->direction == CONV_FORWARD)
        check_apart(call, conv->y_name, conv->y);
    if (conv->direction == CONV_DATA)
        check_apart(call, conv->x_name, conv->x);
}

/* ---- algorithms (mcdnn-cnn 9) ---- */

typedef enum Limits {
    LIMITS_NONE,
    LIMITS_GEMM,        /* dilation 1 */
    LIMITS_FFT,         /* two dimensions; stride 1, dilation 1, padding below the filter's size, input up to 256 */
    LIMITS_FFT_TILING,  /* stride 1, dilation 1, padding below the filter's size, filter up to 32 */
    LIMITS_WINOGRAD,    /* two dimensions; stride 1, dilation 1, filter 3 x 3; no doubles */
    LIMITS_WINOGRAD_5,  /* two dimensions; stride 1, dilation 1, filter 3 x 3 or 5 x 5 */
} Limits;

typedef struct AlgorithmNumber {
    ConvMethod method;
    bool own, integers; /* a method of its own; it takes integers */
    Limits limits;
} AlgorithmNumber;

static const AlgorithmNumber forward_algorithms[] = {
    [MCDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM] = {CONV_PRODUCT, true, true, LIMITS_NONE},
    [MCDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM] = {CONV_PLAIN, true, true, LIMITS_NONE},
    [MCDNN_CONVOLUTION_FWD_ALGO_GEMM] = {CONV_PLAIN, false, false, LIMITS_GEMM},
    [MCDNN_CONVOLUTION_FWD_ALGO_DIRECT] = {CONV_DIRECT, true, false, LIMITS_NONE},
    [MCDNN_CONVOLUTION_FWD_ALGO_FFT] = {CONV_PLAIN, false, false, LIMITS_FFT},
    [MCDNN_CONVOLUTION_FWD_ALGO_FFT_TILING] = {CONV_PLAIN, false, false, LIMITS_FFT_TILING},
    [MCDNN_CONVOLUTION_FWD_ALGO_WINOGRAD] = {CONV_WINOGRAD, true, false, LIMITS_WINOGRAD},
    [MCDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED] = {CONV_PLAIN, false, false, LIMITS_WINOGRAD_5},
};

static const AlgorithmNumber data_algorithms[] = {
    [MCDNN_CONVOLUTION_BWD_DATA_ALGO_0] = {CONV_PRODUCT, true, false, LIMITS_NONE},
    [MCDNN_CONVOLUTION_BWD_DATA_ALGO_1] = {CONV_PLAIN, true, false, LIMITS_NONE},
    [MCDNN_CONVOLUTION_BWD_DATA_ALGO_FFT] = {CONV_PLAIN, false, false, LIMITS_FFT},
    [MCDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING] = {CONV_PLAIN, false, false, LIMITS_FFT_TILING},
    [MCDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD] = {CONV_WINOGRAD, true, false, LIMITS_WINOGRAD},
    [MCDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED] = {CONV_PLAIN, false, false, LIMITS_WINOGRAD_5},
};

static const AlgorithmNumber filter_algorithms[] = {
    [MCDNN_CONVOLUTION_BWD_FILTER_ALGO_0] = {CONV_PRODUCT, true, false, LIMITS_NONE},
    [MCDNN_CONVOLUTION_BWD_FILTER_ALGO_1] = {CONV_PLAIN, true, false, LIMITS_NONE},
    [MCDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT] = {CONV_PLAIN, false, false, LIMITS_FFT},
    [MCDNN_CONVOLUTION_BWD_FILTER_ALGO_3] = {CONV_PLAIN, false, false, LIMITS_NONE},
    [MCDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD] = {CONV_WINOGRAD, true, false, LIMITS_WINOGRAD},
    [MCDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED] = {CONV_PLAIN, false, false, LIMITS_WINOGRAD_5},
    [MCDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING] = {CONV_PLAIN, false, false, LIMITS_FFT_TILING},
};

int conv_algorithms(ConvDirection direction)
{
    return direction == CONV_FORWARD ? MCDNN_CONVOLUTION_FWD_ALGO_COUNT
           : direction == CONV_DATA  ? MCDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT
                                     : MCDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
}

static bool within(Limits limits, const ConvCall *conv)
{
    const bool winograd = limits == LIMITS_WINOGRAD || limits == LIMITS_WINOGRAD_5;
    bool fits = !(winograd || limits == LIMITS_FFT) || conv->conv->axes == 2;
    for (int axis = 0; limits != LIMITS_NONE && axis < conv->conv->axes; axis++) {
        const int64_t taps = conv->w.sizes[2 + axis], padding = conv->conv->padding[axis];
        fits = fits && conv->conv->dilation[axis] == 1;
        fits = fits && (limits == LIMITS_GEMM || conv->conv->stride[axis] == 1);
        fits = fits && (!winograd || taps == 3 || (limits == LIMITS_WINOGRAD_5 && taps == 5));
        fits = fits && (limits != LIMITS_FFT || (padding < taps && conv->x->sizes[2 + axis] + 2 * padding <= 256));
        fits = fits && (limits != LIMITS_FFT_TILING || (padding < taps && taps <= 32));
    }
    fits = fits && (limits != LIMITS_WINOGRAD || conv->x->type != MCDNN_DATA_DOUBLE);
    return fits && (limits != LIMITS_WINOGRAD_5 || conv->w.sizes[2] == conv->w.sizes[3]);
}

bool conv_method(const ConvCall *conv, int algorithm, ConvMethod *method, bool *own)
{
    static const AlgorithmNumber *const tables[] = {forward_algorithms, data_algorithms, filter_algorithms};
    const AlgorithmNumber *found = &tables[conv->direction][algorithm];
    *method = found->method;
    *own = found->own;
    return within(found->limits, conv) && (found->integers || !is_integer(conv->x->type));
}

ConvMethod conv_check_algorithm(ConvCall *conv, int algorithm)
{
    ConvMethod method = CONV_ANY;
    bool own;
    us_require(&conv->call, conv->call.status != 0 || conv_method(conv, algorithm, &method, &own), "algo", "supported",
               MCDNN_STATUS_NOT_SUPPORTED, "algorithm %d does not take this problem", algorithm);
    return method;
}
