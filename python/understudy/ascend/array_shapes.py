"""Shapes of what is done to arrays as such: functions of the pages, as in `shape_functions`."""

from __future__ import annotations

import math

import numpy

from understudy.ascend.shape_functions import FUNCTIONS, shape_function

INDEX_TYPES = (numpy.dtype(numpy.int32), numpy.dtype(numpy.int64), numpy.dtype(numpy.bool_))
FLAT = 1000  # a dim that stands for none: all elements in a row


def normal(dim: int, rank: int) -> int:
    return dim % max(rank, 1)


@shape_function
def broadcast(*shapes):
    return numpy.broadcast_shapes(*(shape for shape in shapes if shape is not None))


@shape_function
def joint(shapes):
    """What a list of shapes broadcasts to."""
    return broadcast(*shapes)


@shape_function
def reduced(shape, dims, keep):
    dims = [dims] if isinstance(dims, int) else list(dims or range(len(shape)))
    axes = {normal(dim, len(shape)) for dim in dims}
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes)


@shape_function
def reduced_unless(shape, dims, keep, noop):
    """A reduction that leaves everything as it is where there are no dims and `noop` says so."""
    return tuple(shape) if noop and not dims else reduced(shape, dims, keep)


@shape_function
def listed(sizes):
    return tuple(sizes)


@shape_function
def all_elements(*shapes):
    return (_count(broadcast(*shapes)),)


# ---- moved, joined, cut ----------------------------------------------------------------------------------------------------


@shape_function
def permuted(shape, dims):
    return tuple(shape[normal(dim, len(shape))] for dim in dims)


@shape_function
def concatenated(shapes, dim):
    full = [shape for shape in shapes if shape != (0,)] or shapes
    axis = normal(dim, len(full[0]))
    size = sum(shape[axis] for shape in full)
    return (*full[0][:axis], size, *full[0][axis + 1 :])


@shape_function
def stacked(shapes, dim):
    first = shapes[0]
    axis = dim % (len(first) + 1)
    return (*first[:axis], len(shapes), *first[axis:])


@shape_function
def chunks(shapes, count):
    """[count, elements of a chunk of every tensor], the first dimension cut into chunks."""
    return (count, sum(-(-shape[0] // count) * int(numpy.prod(shape[1:])) for shape in shapes))


@shape_function
def pieces(shape, sizes, dim):
    """Of one size, the last one shorter where it does not divide, or of the sizes of an array."""
    axis = normal(dim, len(shape))
    if isinstance(sizes, int):
        sizes = [min(sizes, shape[axis] - start) for start in range(0, shape[axis], sizes)]
    return [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]


@shape_function
def sliced(shape, dim, start, end, step):
    axis = normal(dim, len(shape))
    return (*shape[:axis], len(range(*slice(start, end, step).indices(shape[axis]))), *shape[axis + 1 :])


@shape_function
def sliced_axes(shape, starts, ends, axes, steps):
    for dim, *limits in zip(axes, starts, ends, steps):
        shape = sliced(shape, dim, *limits)
    return shape


@shape_function
def halved(shape, dim):
    axis = normal(dim, len(shape))
    return (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :])


@shape_function
def padded(shape, pad):
    sizes = list(shape)
    for index in range(len(pad) // 2):
        sizes[len(shape) - 1 - index] += pad[2 * index] + pad[2 * index + 1]
    return tuple(sizes)


@shape_function
def flattened(shape, axis):
    at = normal(axis, len(shape)) if axis < len(shape) else axis
    return (_count(shape[:at]), _count(shape[at:]))


def _count(shape) -> int:
    return int(numpy.prod(shape, dtype=object))


@shape_function
def stft(shape, points, hop, one_sided, returns_complex):
    frames = (shape[-1] - points) // hop + 1 if hop > 0 else 0
    return (*shape[:-1], points // 2 + 1 if one_sided else points, frames, *(() if returns_complex else (2,)))


@shape_function
def rfft(shape, dim, points):
    axis = normal(dim, len(shape))
    return (*shape[:axis], points // 2 + 1, *shape[axis + 1 :], 2)


# ---- repeated --------------------------------------------------------------------------------------------------------------


@shape_function
def repeated(shape, repeats):
    whole = (1,) * (len(repeats) - len(shape)) + tuple(shape)
    return tuple(size * times for size, times in zip(whole, repeats))


@shape_function
def interleaved(shape, dim, repeats):
    axis = normal(dim, len(shape))
    return (*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :])


@shape_function
def repeated_each(shape, dim, size):
    axis = normal(dim, len(shape))
    return (*shape[:axis], size, *shape[axis + 1 :])


@shape_function
def one_hot(shape, classes, axis):
    at = len(shape) if axis < 0 else axis
    return (*shape[:at], classes, *shape[at:])


@shape_function
def one_each(shapes):
    return [()] * len(shapes)


# ---- picked and found ------------------------------------------------------------------------------------------------------


class ArrayShape(tuple):
    """The shape of an array; what that indexes depends on its type, and of a mask on its values."""

    def __new__(cls, array):
        made = super().__new__(cls, array.shape)
        made.array, made.dtype = array, array.dtype
        return made

    def indices(self) -> list[tuple[int, ...]]:
        """The shapes of the integers that index the same: of a mask one for each dimension, of the true elements' coordinates."""
        is_mask = self.dtype == numpy.bool_
        return [(int(numpy.count_nonzero(numpy.asarray(self.array))),)] * len(self) if is_mask else [self]


@shape_function
def selected(shape, dim, index):
    """Slices of a tensor picked along dim by an index of any rank."""
    axis = normal(dim, len(shape))
    return (*shape[:axis], *index, *shape[axis + 1 :])


@shape_function
def picked(shape, dim, index):
    """As `selected`; an index of rank 0 counts as one of shape [1]."""
    return selected(shape, int(dim), index or (1,)) if shape else ()


@shape_function
def indexed(shape, indices, out=None):
    """NumPy's shape of tensor[indices]. None leaves its dimension whole, and so does an empty index of a type that does not index,
    or of the tensor's own beside others that are not empty."""
    are_others = any(index not in (None, (0,)) for index in indices)

    def is_whole(index) -> bool:
        return index is None or 0 in index and index.dtype not in INDEX_TYPES or (
            index == (0,) and are_others and index.dtype == shape.dtype)

    indices = [part for index in indices for part in ([None] if is_whole(index) else index.indices())]
    whole = [axis for axis in range(len(shape)) if axis >= len(indices) or indices[axis] is None]
    named = [axis for axis in range(len(shape)) if axis not in whole]
    joint = numpy.broadcast_shapes(*(indices[axis] for axis in named))
    at = named[0] if named and named[-1] - named[0] + 1 == len(named) else 0
    rest = [shape[axis] for axis in whole]
    return (*rest[:at], *joint, *rest[at:])


@shape_function
def first(shape, dim, count):
    if not shape:
        return ()
    axis = normal(dim, len(shape))
    return (*shape[:axis], count, *shape[axis + 1 :])


@shape_function
def named(shape, indices):
    """What coordinates along the last axis of indices name."""
    return (*indices[:-1], *shape[indices[-1] :])


@shape_function
def coordinates(shape):
    return (_count(shape), len(shape))


@shape_function
def coordinates_turned(shape):
    return coordinates(shape)[::-1]


@shape_function
def slices(shape, dim):
    """How many there are along dim; 1000: elements."""
    return (_count(shape) if dim == FLAT or not shape else shape[normal(dim, len(shape))],)


@shape_function
def runs(shape, dim):
    return slices(shape, dim) if dim == FLAT or not shape else shape


@shape_function
def run_numbers(shape, dim):
    return shape if dim == FLAT or not shape else slices(shape, dim)


@shape_function
def samples(shape, count):
    return (*shape[:-1], count)


# ---- sequences -------------------------------------------------------------------------------------------------------------


@shape_function
def counted(start, end, step):
    return (max(0, math.ceil((end - start) / step)),)


@shape_function
def counted_to(start, end, step):
    return (math.floor((end - start) / step) + 1,)


@shape_function
def pairs(shape):
    return (shape[0] * (shape[0] - 1) // 2,)


# ---- without the last dimensions, or with one more -------------------------------------------------------------------------


@shape_function
def rows(shape):
    return shape[:-1]


@shape_function
def blocks(shape, rows, columns):
    return (*shape[:-2], -(-shape[-2] // rows), -(-shape[-1] // columns))


@shape_function
def row_ends(shape):
    return (*shape[:-1], 1)


@shape_function
def of_square(shape):
    return tuple(shape[:-1])


@shape_function
def squared(shape):
    return (*shape, shape[-1])


@shape_function
def matrix_batch(shape):
    return tuple(shape[:-2])


# ---- diagonals, products ---------------------------------------------------------------------------------------------------


@shape_function
def diagonal_matrix(shape, diagonal):
    return (int(numpy.prod(shape)) + abs(diagonal),) * 2


@shape_function
def diagonal(shape, diagonal):
    """Of a matrix its diagonal, else the matrix that has it."""
    if len(shape) != 2:
        return diagonal_matrix(shape, diagonal)
    down, across = shape[0] + min(diagonal, 0), shape[1] - max(diagonal, 0)
    return (max(min(down, across), 0),)


@shape_function
def outer(a, b):
    return (a[0], b[0])


@shape_function
def product(a, b):
    """Of matrices, vectors and batches, as torch.matmul."""
    if len(a) == 1 and len(b) == 1:
        return ()
    if len(a) == 1:
        return (*b[:-2], b[-1])
    if len(b) == 1:
        return tuple(a[:-1])
    return (*numpy.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])


@shape_function
def turned_product(a, b, turned_a, turned_b):
    """Of matrices and batches that are turned as the flags say."""
    turned = lambda shape, flag: (*shape[:-2], shape[-1], shape[-2]) if flag else tuple(shape)
    return product(turned(a, turned_a), turned(b, turned_b))


@shape_function
def summed_product(a, b):
    return (a[1], b[2])


@shape_function
def reordered_product(x1, x2, order1, order2, scale, pieces):
    batch, rows, columns = x1[order1[0]], x1[order1[1]], x2[order2[2]]
    if scale is not None:
        return (rows, 1, batch * columns)
    return (pieces, rows, batch // pieces * columns) if pieces > 1 else (rows, batch, columns)


@shape_function
def einsum(tensors, equation):
    a, b = tensors
    return (a[0], b[0]) if equation == "a,b->ab" else tuple(b[:4])


@shape_function
def distances(x1, x2):
    return (*numpy.broadcast_shapes(x1[:-2], x2[:-2]), x1[-2], x2[-2])


@shape_function
def distance_slopes(grad, x1):
    return (*grad[:-1], x1[-1])


# ---- decompositions --------------------------------------------------------------------------------------------------------


@shape_function
def qr_q(shape, mode):
    return (0,) if mode == 2 else (*shape[:-1], shape[-2] if mode == 1 else min(shape[-2:]))


@shape_function
def qr_r(shape, mode):
    return (*shape[:-2], shape[-2] if mode == 1 else min(shape[-2:]), shape[-1])


@shape_function
def thin_q(shape, thin):
    return qr_q(shape, 0 if thin else 1)


@shape_function
def thin_r(shape, thin):
    return qr_r(shape, 0 if thin else 1)


@shape_function
def solved(shape, a):
    return (*numpy.broadcast_shapes(shape[:-2], a[:-2]), *shape[-2:])


@shape_function
def solved_matrix(shape, a):
    return (*numpy.broadcast_shapes(shape[:-2], a[:-2]), *a[-2:])


@shape_function
def singular_values(shape):
    return (*shape[:-2], min(shape[-2:]))


@shape_function
def left_vectors(shape, full):
    return (*shape[:-1], shape[-2] if full else min(shape[-2:]))


@shape_function
def right_vectors(shape, full):
    return (*shape[:-2], shape[-1], shape[-1] if full else min(shape[-2:]))


# ---- packed ----------------------------------------------------------------------------------------------------------------


@shape_function
def packed(whole, packed):
    """As many integers: how many an element has is seen by its type."""
    return tuple(whole)


@shape_function
def unpacked(packed):
    return tuple(packed)


@shape_function
def product_of_integers(a, b, turned_a, turned_b):
    """Of the integers, not of what packs them."""
    return turned_product(a, b, turned_a, turned_b)


@shape_function
def rows_of_experts(counts, weight, turned):
    """As many as are counted, as long as the experts' weights say."""
    return (sum(counts), weight[-2 if turned else -1])


@shape_function
def rows_times(x, weight, turned):
    """None: there is no x."""
    return None if x is None else (x[0], weight[0 if turned else 1])


@shape_function
def packed_signs(shape, rows):
    return (rows, (shape[0] + 7) // 8 // rows)


@shape_function
def unpacked_signs(shape, rows):
    return (rows, shape[0] * 8 // rows)


@shape_function
def dropout_mask_of(shape):
    """Bytes of a bit for each element, rounded up to 128 bits."""
    return (-(-int(numpy.prod(shape, dtype=object)) // 128) * 16,)


FUNCTIONS["dropout_mask"] = dropout_mask_of


@shape_function
def coalesced(indices, values, new_values):
    """Coordinates of fewer entries: columns of indices, or rows where only these are as many as values."""
    entries = 1 if indices[1] == values[0] else 0
    return [new_values[0] if axis == entries else size for axis, size in enumerate(indices)]
