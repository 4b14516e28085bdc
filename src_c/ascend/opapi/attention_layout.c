/* Attention: which dimension of a layout is which. */
#include "ascend/opapi/attention_parts.h"

enum { FOR_TRAINING = 1, FOR_PACKED = 2, FOR_INFERENCE = 4, FOR_NEWEST = 8, FOR_PROMPTS = 16, FOR_RESULTS = 0 };

static const Layout layouts[] = {{"BSH", 3, 0, -1, 1, 2, FOR_TRAINING | FOR_INFERENCE},
                                 {"SBH", 3, 1, -1, 0, 2, FOR_TRAINING},
                                 {"BSND", 4, 0, 2, 1, 3, FOR_TRAINING | FOR_INFERENCE},
                                 {"BNSD", 4, 0, 1, 2, 3, FOR_TRAINING | FOR_INFERENCE},
                                 {"TND", 3, -1, 1, 0, 2, FOR_PACKED | FOR_NEWEST | FOR_PROMPTS},
                                 {"BNSD_BSND", 4, 0, 1, 2, 3, FOR_INFERENCE},
                                 {"TND_NTD", 3, -1, 1, 0, 2, FOR_NEWEST},
                                 {"NTD_TND", 3, -1, 0, 1, 2, FOR_NEWEST},
                                 {"BNSD_NBSD", 4, 0, 1, 2, 3, FOR_NEWEST},
                                 {"BSND_NBSD", 4, 0, 2, 1, 3, FOR_NEWEST},
                                 {"BSH_NBSD", 3, 0, -1, 1, 2, FOR_NEWEST},
                                 {"NTD", 3, -1, 0, 1, 2, FOR_RESULTS},
                                 {"NBSD", 4, 1, 0, 2, 3, FOR_RESULTS}};

const Layout *layout_of(const AttentionCall *call)
{
    const unsigned more = (call->newest ? FOR_NEWEST : 0) | (call->prompts ? FOR_PROMPTS : 0);
    const unsigned use = call->infers ? FOR_INFERENCE | more : call->packed ? FOR_PACKED : FOR_TRAINING;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (strcmp(call->layout, layouts[i].name) == 0 && (layouts[i].uses & use) != 0) {
            return &layouts[i];
        }
    }
    return NULL;
}

const Layout *result_layout(const AttentionCall *call)
{
    const Layout *layout = layout_of(call);
    const char *after = strchr(layout->name, '_');
    for (size_t i = 0; after != NULL && i < sizeof layouts / sizeof *layouts; i++) {
        if (strcmp(after + 1, layouts[i].name) == 0) {
            return &layouts[i];
        }
    }
    return layout;
}

const Layout *key_layout(const AttentionCall *call)
{
    return !op_given(call->pages) ? layout_of(call) : call->key->view.rank == 4 ? &layouts[3] : &layouts[0];
}

View by_heads(const Layout *layout, const View *view, int64_t heads)
{
    View result = {.data = view->data, .dtype = view->dtype, .rank = 4};
    const int32_t axes[] = {layout->batch, layout->head, layout->row, layout->depth};
    for (int32_t i = 0; i < 4; i++) {
        result.shape[i] = axes[i] < 0 ? 1 : view->shape[axes[i]];
        result.strides[i] = axes[i] < 0 ? 0 : view->strides[axes[i]];
    }
    if (layout->head < 0) {
        const int64_t depth = heads > 0 ? view->shape[layout->depth] / heads : 0;
        result.shape[1] = heads;
        result.strides[1] = depth * view->strides[layout->depth];
        result.shape[3] = depth;
    }
    return result;
}

View counted_view(const Operand *operand)
{
    Integers integers = op_integers_of(operand);
    if (integers.axis != NOT_PACKED) {
        integers.view.shape[integers.axis] *= 2;
    }
    return integers.view;
}

Operand4 split_heads(const AttentionCall *call)
{
    Operand4 of = {.query = by_heads(layout_of(call), &call->query->view, call->heads)};
    const Layout *layout = key_layout(call);
    const int64_t depth = of.query.shape[3];
    const View key = counted_view(call->key), value = counted_view(call->value);
    const int64_t width = key.shape[layout->depth];
    const int64_t key_heads = layout->head >= 0 ? key.shape[layout->head] : depth > 0 ? width / depth : 0;
    of.key = by_heads(layout, &key, key_heads);
    of.value = by_heads(layout, &value, key_heads);
    return of;
}
