#include "device/snapshot.h"

#include "device/device_internal.h"
#include "report/descriptor.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The bytes of a block, or of physical memory, which is a file. */
typedef struct Part {
    struct Part *next;
    const void *address; /* of a block */
    uint64_t serial;
    int file; /* -1: a block */
    off_t offset;
    size_t size;
    char *bytes; /* pages that were empty are empty here, and cost nothing */
} Part;

struct Snapshot {
    Part *parts;
    bool complete;
};

enum { PIECE = 4096 };
static const char nothing[PIECE];

static bool is_empty(const char *bytes, size_t size)
{
    return memcmp(bytes, nothing, size) == 0;
}

/* Makes `to` equal, without touching pages that stay as they are. `fresh`: `to` is zero. */
static void copy_pieces(char *to, const char *from, size_t size, bool fresh)
{
    for (size_t at = 0; at < size; at += PIECE) {
        size_t piece = size - at < PIECE ? size - at : PIECE;
        bool same = fresh ? is_empty(from + at, piece) : memcmp(to + at, from + at, piece) == 0;
        if (!same) {
            memcpy(to + at, from + at, piece);
        }
    }
}

static void end_part(Part *part)
{
    if (part->file >= 0) {
        close(part->file);
    }
    free(part->bytes);
    free(part);
}

/* Takes what is at `bytes`; the part becomes the snapshot's, and is ended when that is impossible. */
static void add(Snapshot *snapshot, const Part *wanted, const char *bytes)
{
    Part *part = bytes != NULL ? malloc(sizeof *part) : NULL;
    char *copy = part != NULL ? calloc(1, wanted->size) : NULL;
    if (copy == NULL) {
        free(part);
        snapshot->complete = false;
        if (wanted->file >= 0) {
            close(wanted->file);
        }
        return;
    }
    copy_pieces(copy, bytes, wanted->size, true);
    *part = *wanted;
    part->bytes = copy;
    part->next = snapshot->parts;
    snapshot->parts = part;
}

static void add_block(Allocation *block, void *context)
{
    if (block->kind == MEMORY_DEVICE) {
        Part part = {.address = (const void *)block->address, .serial = block->serial, .file = -1, .size = block->reach};
        add(context, &part, (const char *)block->address + block->alias);
    }
}

/* The file's bytes; NULL: no addresses. */
static char *map_file(int file, off_t offset, size_t size)
{
    void *mapped = file >= 0 ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, offset) : MAP_FAILED;
    return mapped != MAP_FAILED ? mapped : NULL;
}

static void add_physical(int file, int64_t offset, size_t size, void *context)
{
    Part part = {.file = us_descriptor_copy(file), .offset = offset, .size = size};
    char *mapped = map_file(part.file, offset, size);
    add(context, &part, mapped);
    if (mapped != NULL) {
        munmap(mapped, size);
    }
}

Snapshot *us_snapshot_take(Platform *platform)
{
    Snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (snapshot == NULL) {
        return NULL;
    }
    snapshot->complete = true;
    us_memory_each(platform, add_block, snapshot);
    us_physical_each(platform, add_physical, snapshot);
    if (!snapshot->complete) {
        us_snapshot_end(snapshot);
        return NULL;
    }
    return snapshot;
}

/* With the memory lock held. A block that has ended needs nothing. */
static bool put_back(Platform *platform, const Part *part)
{
    if (part->file >= 0) {
        char *mapped = map_file(part->file, part->offset, part->size);
        if (mapped != NULL) {
            copy_pieces(mapped, part->bytes, part->size, false);
            munmap(mapped, part->size);
        }
        return mapped != NULL;
    }
    Allocation *block = us_memory_block(platform, part->address);
    if (block != NULL && !block->freed && block->serial == part->serial) {
        copy_pieces((char *)block->address + block->alias, part->bytes, part->size, false);
    }
    return true;
}

bool us_snapshot_put_back(Platform *platform, const Snapshot *snapshot)
{
    PlatformState *state = platform_state(platform);
    bool complete = true;
    pthread_mutex_lock(&state->memory_lock);
    for (const Part *part = snapshot->parts; part != NULL; part = part->next) {
        complete &= put_back(platform, part);
    }
    pthread_mutex_unlock(&state->memory_lock);
    return complete;
}

void us_snapshot_end(Snapshot *snapshot)
{
    for (Part *part = snapshot != NULL ? snapshot->parts : NULL, *next = NULL; part != NULL; part = next) {
        next = part->next;
        end_part(part);
    }
    free(snapshot);
}
