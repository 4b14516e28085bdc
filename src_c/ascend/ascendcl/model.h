/* Model running instances: what the files about them share (cann-runtime-3 13). */
#ifndef ASCENDCL_MODEL_H
#define ASCENDCL_MODEL_H

#include "ascend/ascendcl/runtime.h"
#include "device/graph.h"
#include "device/value.h"

enum { MODEL_NAME_LIMIT = 512, MODEL_CALLBACK_LIMIT = 64 };

typedef struct ModelCallback {
    aclrtCallback function;
    void *user_data;
} ModelCallback;

/* A change of a step that aclmdlRIUpdate makes. */
typedef struct ModelEdit {
    const void *task; /* handle */
    bool disables;
    ValueTask value;
} ModelEdit;

/* Graph.vendor. Guarded by the platform's lock. */
typedef struct Model {
    char name[MODEL_NAME_LIMIT];
    bool built; /* aclmdlRIBuildEnd was called */
    ModelCallback callbacks[MODEL_CALLBACK_LIMIT];
    size_t callback_count;
    ModelEdit *edits; /* freed by aclmdlRIUpdate and aclmdlRIDestroy */
    size_t edit_count;
} Model;

/* Gives a graph its Model; refuses when there is no memory. */
void model_equip(Call *call, Graph *graph);
Model *model_of(const Graph *graph);

/* Refuses on products that cannot record work, and without a context. */
void model_require_product(Call *call);

/* The model behind a handle, or a refusal: modelRI/null, modelRI/dead. */
Graph *model_require(Call *call, aclmdlRI handle);

/* The stream, alive and not the default one. */
Stream *model_require_stream(Call *call, aclrtStream handle);

/* Forgets the tasks of a PERSISTENT stream; its model, if it has one, takes tasks again. Rule modelRI/running. */
void model_clean_stream(Call *call, Stream *stream);

/* Turns what a recording refused into a refusal of the call. */
void model_refuse_capture(Call *call, CaptureFault fault);

#endif
