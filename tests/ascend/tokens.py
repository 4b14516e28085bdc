"""Sequences of tokens in the layouts of the indexers and of sparse attention."""

import numpy

from tests.ascend.calling import tensor

ALL = 2**63 - 1
# How rows and keys lie, rows and keys of each sequence, room for them in a batch.
SEQUENCES = [
    ("BSND", "BSND", [3, 0, 2], [5, 4, 0], 3, 5),
    ("BSND", "BSND", None, None, 4, 7),  # without lengths: all are full
    ("TND", "TND", [3, 0, 4, 1], [5, 2, 9, 0], None, None),
    ("BSND", "PA_BSND", [1, 2], [40, 17], 2, None),
    ("TND", "PA_BSND", [2, 3], [33, 1], None, None),
    ("TND", "TND", [2], [300], None, None),  # more than a tile of keys
    ("TND", "PA_BSND", [1], [2100], None, None),  # more than a piece
]
PAGE = 16
IDS = [f"{case[0]}-{case[1]}-{at}" for at, case in enumerate(SEQUENCES)]


class Layout:
    """Rows and keys of some sequences, and where they lie in their tensors."""

    def __init__(self, rows_layout, keys_layout, rows, keys, row_room, key_room):
        self.packed, self.paged, self.full = rows_layout == "TND", keys_layout == "PA_BSND", rows is None
        self.names = rows_layout, keys_layout
        self.rows, self.keys = rows or [row_room] * 2, keys or [key_room] * 2
        count = len(self.rows)
        # Behind the packed rows of the last sequence there are two that belong to none.
        self.row_shape = (sum(self.rows) + 2,) if self.packed else (count, row_room)
        if self.paged:
            per_sequence = -(-max(self.keys) // PAGE)
            self.pages = numpy.random.default_rng(1).permutation(count * per_sequence).reshape(count, per_sequence)
            self.key_shape = (self.pages.size, PAGE)
        else:
            self.key_shape = (sum(self.keys) + 1,) if self.packed else (count, key_room)

    def rows_of(self, s):
        begin = sum(self.rows[:s])
        return slice(begin, begin + self.rows[s]) if self.packed else (s, slice(0, self.rows[s]))

    def keys_of(self, s):
        count = self.keys[s]
        if self.paged:
            places = numpy.arange(count)
            return self.pages[s, places // PAGE], places % PAGE
        begin = sum(self.keys[:s])
        return slice(begin, begin + count) if self.packed else (s, slice(0, count))

    def lengths(self, layout):
        """Tensors of rows, keys and pages."""
        ends = [numpy.cumsum(self.rows) if self.packed else self.rows,
                numpy.cumsum(self.keys) if self.packed and not self.paged else self.keys]  # fmt: skip
        pages = tensor(self.pages, "I32", layout) if self.paged else None
        return [*(None if self.full else tensor(values, "I32", layout) for values in ends), pages]

    def listed(self):
        """The same as lists of lengths, or ends."""
        both = (self.rows, self.keys)
        return [None if self.full else numpy.cumsum(counts).tolist() if self.packed else counts for counts in both]

    def sequences(self, causal):
        """Of every row: its sequence, its number there, and how many keys it sees."""
        for s, (rows, keys) in enumerate(zip(self.rows, self.keys)):
            for row in range(rows):
                yield s, row, max(0, min(keys, row + 1 + keys - rows)) if causal else keys


def scores_of(query, key, weights):
    """Of one row, for all keys."""
    return (weights[:, None] * numpy.maximum(query @ key[:, 0].T, 0)).sum(0)
