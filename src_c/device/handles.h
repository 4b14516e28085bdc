/* Live handles. What a program holds as aclTensor *, aclrtStream, mcdnnHandle_t … is not a pointer but a tagged number:
 * slot, generation and kind. A dead, foreign or made-up value is recognised without touching memory.
 *
 * Layout, low bits first: 4 zero bits, 24 bits slot, 20 bits generation, 16 bits tag (a non-canonical address, so that
 * a program that dereferences it stops at once). A freed slot waits behind all others before it is used again. */
#ifndef UNDERSTUDY_HANDLES_H
#define UNDERSTUDY_HANDLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds: 0x01-0x0f device (device.h), 0x10-0x2f ascend, 0x30-0x4f maca. Each owner declares its own constants. */
typedef uint32_t HandleKind;

/* A new handle for `object` (not NULL). NULL when memory is exhausted or 16 million handles are alive. */
void *us_handle_create(HandleKind kind, void *object);

/* A new handle for a copy of `initial`, which us_handle_release frees. NULL as above. */
void *us_handle_new(HandleKind kind, const void *initial, size_t size);

/* The object behind a live handle of that kind; NULL for anything else. Lock-free. */
void *us_handle_object(const void *handle, HandleKind kind);

/* Ends a handle: later look-ups give NULL. Returns the object, which the caller releases; NULL for anything else. */
void *us_handle_end(const void *handle, HandleKind kind);

/* Ends a handle whose object is memory of malloc: that is freed when no call can have it any more (grace.h). False: the
 * handle was not alive. */
bool us_handle_release(const void *handle, HandleKind kind);

/* Calls `visit` with every handle of that kind that is alive; the caller is in a call (grace.h), so that objects stay. */
void us_handle_each(HandleKind kind, void (*visit)(const void *handle, void *argument), void *argument);

/* Number of live handles of that kind (tests, leak reports). */
uint64_t us_handle_count(HandleKind kind);

#endif
