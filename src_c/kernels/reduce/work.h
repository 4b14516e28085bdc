/* A reduction at work: what reduce.c plans and runs, and how steps.c brings elements to the bodies. */
#ifndef UNDERSTUDY_REDUCE_WORK_H
#define UNDERSTUDY_REDUCE_WORK_H

#include "kernels/reduce/reduce.h"
#include "kernels/sizes.h"
#include "tensor/axes.h"

/* Bytes of the largest element. */
enum { WIDEST = 16 };

typedef struct ReduceWork {
    const ReduceCall *call;
    const View *input, *outputs;
    DType array;       /* of the elements that the bodies read */
    DType wide;        /* of states */
    int64_t wide_size, size; /* bytes of a state's value, of an element of the input */
    int body;          /* lane, or one that a type has of its own */
    bool in_place;     /* the bodies can read the input's own elements */
    Axes kept, reduced; /* operands of `kept`: input, outputs */
    int64_t groups, elements;
    const char *end; /* of the input's memory */
    bool is_far;     /* larger than what is left in a cache */
    bool by_columns;
    int64_t strip;     /* states of a row */
    int64_t turned_runs; /* outputs of a block whose elements lie together, where they are turned; or 1 */
    int64_t unit_runs, unit_columns, units_per_run, units_per_plane, units, chunk_elements, chunks, units_per_piece;
    const Reduction *reduction; /* the one that runs now, and its bodies */
    ReduceStart *start;
    ReduceStep *step;
    ReduceMerge *merge;
    ReduceFinish *finish;
    ReduceFold *fold;  /* of rows that lie in memory as it reads them; NULL: there is none */
    ReduceFind *find;  /* of an index; NULL: there is none */
    bool has_b;        /* its states have a second value */
    ReduceMove *move;  /* where another reduction is first */
    char *partial;     /* of units cut into chunks: states of every chunk */
} ReduceWork;

static inline int64_t whole_lanes(int64_t count)
{
    return (count + LANES - 1) / LANES * LANES;
}

/* A row's states, and what is done to them with `count` elements side by side, from number `position` on. */
typedef struct ReduceStates {
    const char *guess;
    char *a, *b;
} ReduceStates;
typedef void ReduceTake(const ReduceWork *work, int64_t position, int64_t count, const char *elements,
                        const ReduceStates *states);

/* Each element for the next state of a strip. */
ReduceTake us_reduce_step_strip;

/* Whether the bodies can read a row as it is. */
bool us_reduce_row_in_place(const ReduceWork *work);

/* Takes elements begin … end-1 of a row. */
void us_reduce_take_row(const ReduceWork *work, const char *row, int64_t begin, int64_t end, ReduceTake *take,
                        const ReduceStates *states);

/* Reduces elements begin … end-1 of columns side by side. */
void us_reduce_step_columns(const ReduceWork *work, const char *first, int64_t columns, int64_t begin, int64_t end,
                            const char *guess, char *a, char *b);

/* The same of columns whose elements lie together, alone or in turns with those of others (`runs`): squares of them are
 * turned. And whether they do. */
bool us_reduce_takes_turned(const ReduceWork *work);
void us_reduce_step_turned(const ReduceWork *work, const char *first, int64_t runs, int64_t columns, int64_t begin,
                           int64_t end, const ReduceStates *states);

#endif
