"""Access by number gives the same as an iteration, including failures."""

import numpy as np
import pytest
from tests.sources.passes import assert_equal, everything


def given_at(source, indices):
    """Return the elements and errors of `pieces_at`."""
    found = []
    for piece in source.pieces_at(np.array(indices, np.int64)):
        found += [piece] if isinstance(piece, Exception) else piece.elements()
    return found


def everything_by_number(dataset):
    """Return the elements of one iteration; check that access by number gives the same: `len`, any order, ranges."""
    source = dataset._plan.source
    wanted = everything(dataset)
    assert source.cardinality >= 0
    assert len(source) == source.cardinality == len(wanted)
    if not wanted:
        return wanted
    rng = np.random.default_rng(len(wanted))
    for indices in (rng.permutation(len(wanted)), rng.integers(0, len(wanted), 2 * len(wanted))):
        assert_equal(given_at(source, indices), [wanted[i] for i in indices.tolist()])
    fine = [not isinstance(item, Exception) for item in wanted]
    ranges = [(start, stop) for start in range(len(wanted)) for stop in range(start + 1, len(wanted) + 1)]
    for start, stop in ranges if len(ranges) < 100 else rng.choice(ranges, 30).tolist():
        if all(fine[start:stop]):
            assert_equal(source.rows(start, stop).elements(), wanted[start:stop])
    return wanted


def everything_uncounted(dataset):
    """Iterate over files of which one cannot be counted; access by number raises its failure."""
    source = dataset._plan.source
    wanted = everything(dataset)
    assert source.cardinality == dataset.cardinality() == -2
    first = next(item for item in wanted if isinstance(item, Exception))
    for ask in (source.count, dataset.__len__, lambda: dataset[0], lambda: source.rows(0, 1)):
        with pytest.raises(type(first)) as caught:
            ask()
        assert caught.value.message == first.message
        assert caught.value.context.file == first.context.file
    (error,) = given_at(source, [0])
    assert error.message == first.message
    return wanted
