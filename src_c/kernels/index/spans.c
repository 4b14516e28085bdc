#include "kernels/index/spans.h"

#include "kernels/move/copy_view.h"

enum { PLACES, MASK, FROM, TARGETS };

typedef struct Span {
    int64_t target, start, length;
} Span;

static int64_t place_at(const View *places, int64_t entry, int64_t column)
{
    const int64_t at = (places->rank > 0 ? entry * places->strides[0] : 0) + (places->rank > 1 ? column * places->strides[1] : 0);
    return places->dtype == DTYPE_INT32 ? ((const int32_t *)places->data)[at] : ((const int64_t *)places->data)[at];
}

static Span span_of(const View *views, const PutSpans *put, int64_t entry)
{
    const View *mask = &views[MASK], *places = &views[PLACES];
    const bool taken = us_view_is_absent(mask) || ((const uint8_t *)mask->data)[entry * mask->strides[0]] != 0;
    const bool names_target = places->rank > 1 && !put->apart, names_length = places->rank > 1 && put->apart;
    const int64_t length = names_length ? place_at(places, entry, 1) : views[FROM].shape[put->axis];
    return (Span){names_target ? place_at(places, entry, 0) : entry, place_at(places, entry, names_target),
                  taken ? length : 0};
}

/* One entry of a batch. */
static View entry_of(const View *batch, int64_t entry)
{
    View view = *batch;
    view.data = (char *)batch->data + entry * batch->strides[0] * (int64_t)us_dtype_size(batch->dtype);
    view.rank = batch->rank - 1;
    for (int32_t axis = 0; axis < view.rank; axis++) {
        view.shape[axis] = batch->shape[axis + 1];
        view.strides[axis] = batch->strides[axis + 1];
    }
    return view;
}

static View target_of(const View *views, const PutSpans *put, Span span)
{
    return put->apart ? views[TARGETS + span.target] : entry_of(&views[TARGETS], span.target);
}

static View part_of(View view, int32_t axis, int64_t start, int64_t length)
{
    view.data = (char *)view.data + start * view.strides[axis] * (int64_t)us_dtype_size(view.dtype);
    view.shape[axis] = length;
    return view;
}

KernelStatus us_put_spans(const View *views, const void *attributes)
{
    const PutSpans *put = attributes;
    const int64_t entries = views[FROM].shape[0], given = views[FROM].shape[put->axis];
    const int32_t axis = put->axis - 1; /* of an entry */
    for (int64_t entry = 0; entry < entries; entry++) {
        const Span span = span_of(views, put, entry);
        const int64_t targets = put->apart ? entries : views[TARGETS].shape[0];
        if (span.target < 0 || span.target >= targets) {
            return us_kernel_fault("entry %lld is written to entry %lld: there are %lld", (long long)entry,
                                   (long long)span.target, (long long)targets);
        }
        const int64_t size = target_of(views, put, span).shape[axis];
        if (span.length != 0 && (span.length < 0 || span.length > given || span.start < 0 || span.start > size - span.length)) {
            return us_kernel_fault("entry %lld is written from %lld on, %lld long: it has %lld, and there is room for %lld",
                                   (long long)entry, (long long)span.start, (long long)span.length, (long long)given,
                                   (long long)size);
        }
    }
    for (int64_t entry = 0; entry < entries; entry++) {
        const Span span = span_of(views, put, entry);
        if (span.length == 0) { /* its start may be anything */
            continue;
        }
        const View to = part_of(target_of(views, put, span), axis, span.start, span.length);
        const View from = part_of(entry_of(&views[FROM], entry), axis, 0, span.length);
        if (!us_view_is_empty(&from)) {
            us_copy_view(&to, &from);
        }
    }
    return KERNEL_OK;
}
