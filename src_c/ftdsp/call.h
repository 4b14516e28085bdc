/* One call of a vendor function: its checks and its cores.
 *
 * The functions return void: a refused call writes its message, sets the last error and touches nothing. The status
 * numbers are ours, seen through understudy_last_status() only.
 *
 * On the chip every core of core_mask makes the same _s call and does its share (ft-dsp-manual 1). Here a process that is
 * alone does the work of all of them. Processes that are the cores of one chip (device/team.h) meet before the work, so
 * that what others wrote is there, and behind it, so that the result is; between the two the lowest core of the mask does
 * the whole work. A core outside the mask goes on at once. */
#ifndef FTDSP_CALL_H
#define FTDSP_CALL_H

#include "kernels/kernels.h"
#include "report/report.h"
#include "tensor/view.h"

#include <string.h>

typedef enum FtStatus {
    FT_NOT_HERE = -1,     /* no refusal: nothing for this core to do */
    FT_BAD_PREFIX = 1,    /* the chip has no functions of this element type */
    FT_BAD_CORE_MASK = 2, /* no core takes part */
    FT_BAD_SIZE = 3,      /* a length, dimension or range */
    FT_BAD_ATTRIBUTE = 4, /* a code or number outside what the operator defines */
    FT_BAD_POINTER = 5,   /* NULL or not aligned */
    FT_BAD_SPACE = 6,     /* memory this kind of call cannot use */
    FT_BAD_OVERLAP = 7,   /* operands share bytes where they must not */
    FT_NO_MEMORY = 8,     /* host memory for scratch space ran out */
} FtStatus;

typedef struct FtCall {
    Call checks;
    DType dtype;   /* of the prefix */
    bool shared;   /* by several cores, _s; else _p */
    int cores;     /* that take part */
    int64_t entry; /* of a table, from 1 on: the operand that is looked at; 0: it is a parameter itself */
    uint32_t meet; /* the processes that meet when the call ends; 0: none */
} FtCall;

/* Begins a call of an _s or a _p function; `function` is a literal. Each ends with ft_end. */
FtCall ft_shared(const char *function, DType dtype, int core_mask);
FtCall ft_private(const char *function, DType dtype);

/* The same of a function whose name has no suffix: with a mask of one core it is that core's own work. */
FtCall ft_by_mask(const char *function, DType dtype, int core_mask);
void ft_end(FtCall *call);

/* A call that ends where its block does. */
#define FT_CALL __attribute__((cleanup(ft_end))) FtCall

/* True while there is work for this core: until a check refused, unless another core does it. */
static inline bool ft_ok(const FtCall *call)
{
    return call->checks.status == 0;
}

#define ft_require(call, ...) us_require(&(call)->checks, __VA_ARGS__)

/* Checks that [data, data + count elements of dtype) can be an operand of this call: not NULL, aligned to its elements,
 * inside one window, in a space the call may use. No elements: nothing is checked. */
void ft_operand(FtCall *call, const char *name, const void *data, int64_t count, DType dtype);

/* The same for entry `index` of a table of operands: the rule names the table, the sentence the entry. */
void ft_entry(FtCall *call, const char *table, int64_t index, const void *data, int64_t count, DType dtype);

/* The same for an operand that may be NULL. */
void ft_optional(FtCall *call, const char *name, const void *data, int64_t count, DType dtype);

/* A number of elements is not negative; is at least 1. */
void ft_length(FtCall *call, const char *name, int64_t length);
void ft_positive(FtCall *call, const char *name, int64_t number);

/* The product of sizes (none negative) that are the elements of an operand: not more than any memory holds. */
#define FT_ELEMENT_LIMIT (INT64_C(1) << 44)
int64_t ft_count(FtCall *call, const char *name, int factors, const int64_t *sizes);

static inline int64_t ft_bytes(int64_t count, DType dtype)
{
    return count * (int64_t)us_dtype_size(dtype);
}

/* Sets elements to 0; of none the array may be NULL. */
static inline void ft_clear(void *data, int64_t count, DType dtype)
{
    if (count > 0) {
        memset(data, 0, (size_t)ft_bytes(count, dtype));
    }
}

/* An output may be exactly the same array as an input, but not overlap it in part. */
void ft_same_or_apart(FtCall *call, const char *name, const void *output, const char *other, const void *input,
                      int64_t count, DType dtype);

void ft_same_or_apart_bytes(FtCall *call, const char *name, const void *output, int64_t output_bytes, const char *other,
                            const void *input, int64_t input_bytes);

/* An output shares no byte with another operand. */
void ft_apart(FtCall *call, const char *name, const void *output, int64_t output_bytes, const char *other,
              const void *input, int64_t input_bytes);

/* What a kernel gave back: refuses when it found no memory for its work. */
void ft_finish(FtCall *call, KernelStatus status);

/* Elements of a part of element-wise work. */
enum { FT_GRAIN = 1024 };

/* Runs body(context, begin, end) on the call's cores, each a contiguous slice of 0 … count-1. Slices begin at multiples
 * of `grain`. A core without work stays idle. */
typedef void FtSlice(void *context, int64_t begin, int64_t end);
void ft_split(const FtCall *call, int64_t count, int64_t grain, FtSlice *body, void *context);

#endif
