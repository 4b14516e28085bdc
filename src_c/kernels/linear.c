#include "kernels/linear.h"

#include "tensor/convert.h"

/* One run along the last axis: `done` elements were handled before it. */
typedef void Transfer(const View *view, char *data, int64_t stride, int64_t count, void *values, int64_t done);

static void walk(const View *view, int64_t begin, int64_t count, void *values, Transfer *transfer)
{
    const int64_t size = (int64_t)us_dtype_size(view->dtype);
    if (us_view_is_contiguous(view) || view->rank == 0) {
        transfer(view, (char *)view->data + begin * size, 1, count, values, 0);
        return;
    }
    const int32_t last = view->rank - 1;
    for (int64_t done = 0; done < count;) {
        int64_t offset = 0, rest = begin + done;
        int64_t run = view->shape[last] - rest % view->shape[last];
        run = run < count - done ? run : count - done;
        for (int32_t axis = last; axis >= 0; axis--) {
            offset += rest % view->shape[axis] * view->strides[axis];
            rest /= view->shape[axis];
        }
        transfer(view, (char *)view->data + offset * size, view->strides[last], run, values, done);
        done += run;
    }
}

static void load_float(const View *view, char *data, int64_t stride, int64_t count, void *values, int64_t done)
{
    us_load_float((float *)values + done, data, view->dtype, stride, count);
}

static void load_double(const View *view, char *data, int64_t stride, int64_t count, void *values, int64_t done)
{
    us_load_double((double *)values + done, data, view->dtype, stride, count);
}

static void store_float(const View *view, char *data, int64_t stride, int64_t count, void *values, int64_t done)
{
    us_store_float(data, view->dtype, stride, (const float *)values + done, count);
}

static void store_double(const View *view, char *data, int64_t stride, int64_t count, void *values, int64_t done)
{
    us_store_double(data, view->dtype, stride, (const double *)values + done, count);
}

void us_linear_load_float(const View *view, int64_t begin, int64_t count, float *values)
{
    walk(view, begin, count, values, load_float);
}

void us_linear_load_double(const View *view, int64_t begin, int64_t count, double *values)
{
    walk(view, begin, count, values, load_double);
}

void us_linear_store_float(const View *view, int64_t begin, int64_t count, const float *values)
{
    walk(view, begin, count, (float *)values, store_float);
}

void us_linear_store_double(const View *view, int64_t begin, int64_t count, const double *values)
{
    walk(view, begin, count, (double *)values, store_double);
}
