#include "kernels/pieces.h"
#include "kernels/random/draws.h"
#include "tensor/lane.h"

#include <string.h>

/* A tile of elements has a word for each and a bit for each. */
enum { ELEMENTS = 1024, BYTES = ELEMENTS / 8, GROUPS = ELEMENTS / PHILOX_GROUP, PIECE = 16 /* tiles */ };

typedef struct Work {
    DropoutMask mask;
    View out;
    int64_t bytes;
} Work;

/* Bit k of byte i is decided by word k * BYTES + i: it is 1 where the word is at least `least`. */
static void make_bits(const uint32_t *words, uint32_t least, uint8_t *bytes)
{
    for (int i = 0; i < BYTES; i++) {
        bytes[i] = 0;
    }
    for (int k = 0; k < 8; k++) {
        for (int i = 0; i < BYTES; i++) {
            bytes[i] = (uint8_t)(bytes[i] | (uint8_t)((words[k * BYTES + i] >= least) << k));
        }
    }
}

/* Bits behind the last element are 0. */
static void end_after(uint8_t *bytes, int64_t elements)
{
    if (elements < ELEMENTS) {
        const int64_t whole = elements / 8;
        bytes[whole] &= (uint8_t)((1u << (elements % 8)) - 1);
        memset(bytes + whole + 1, 0, (size_t)(BYTES - whole - 1));
    }
}

static void make_tile(const Work *work, int64_t tile)
{
    uint32_t words[ELEMENTS];
    uint8_t bytes[BYTES];
    const double least = work->mask.drop * 0x1p32; /* none is kept where it is 2^32 */
    const int64_t left = work->mask.elements - tile * ELEMENTS, begin = tile * BYTES;
    us_philox_words(work->mask.stream, (uint64_t)tile * GROUPS, GROUPS, words);
    make_bits(words, least < 0x1p32 ? (uint32_t)least : UINT32_MAX, bytes);
    end_after(bytes, least < 0x1p32 ? left : 0);
    us_copy_elements((char *)work->out.data + begin * work->out.strides[0], work->out.strides[0], bytes, 1, 1,
                     work->bytes - begin < BYTES ? work->bytes - begin : BYTES);
}

static void make_piece(void *context, int64_t piece)
{
    const Work *work = context;
    for (int64_t tile = piece * PIECE; tile * BYTES < work->bytes && tile < (piece + 1) * PIECE; tile++) {
        make_tile(work, tile);
    }
}

KernelStatus us_dropout_mask(const View *views, const void *attributes)
{
    Work work = {.mask = *(const DropoutMask *)attributes, .out = views[0], .bytes = us_view_elements(&views[0])};
    run_pieces((work.bytes + PIECE * BYTES - 1) / (PIECE * BYTES), work.bytes * 8, make_piece, &work);
    return KERNEL_OK;
}
