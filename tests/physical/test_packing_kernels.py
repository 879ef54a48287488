"""Packing's loops: the compiled form is equal to the plain one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.physical.kernels import reference, run


@st.composite
def cases(draw):
    lengths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=3))
    sequence = st.tuples(*[st.integers(0, length) for length in lengths])
    blocks = draw(st.lists(st.lists(sequence, max_size=20), min_size=1, max_size=4))
    return lengths, blocks, draw(st.sampled_from([1 << 62, 1, 2, 5])), draw(st.integers(1, 5)), draw(st.booleans())


@given(cases())
def test_the_compiled_assignment_is_equal_block_after_block(case):
    lengths, blocks, *rules = case
    limits = np.array(lengths, np.int64)
    table, opened = np.empty((0, len(lengths) + 2), np.int64), 0
    for block in blocks:
        sizes = np.array(block, np.int64).reshape(-1, len(lengths))
        plain = reference.assign(sizes, table, opened, limits, *rules)
        fast = run.assign(sizes, table, opened, limits, *rules)
        for one, other in zip(plain, fast, strict=True):
            assert one.dtype == other.dtype
            assert one.shape == other.shape
            assert one.tolist() == other.tolist()
        opened += len(plain[3]) + len(plain[5]) - len(table)
        table = plain[6]


@pytest.mark.parametrize("compiled", [True, False])
@given(case=cases())
def test_a_trial_tells_how_many_rows_leave(compiled, case):
    lengths, blocks, *rules = case
    limits = np.array(lengths, np.int64)
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:
            patch.setattr(run._PACKING, "loaded", lambda: None)
        trial = run.PackingTrial(np.empty((0, len(lengths) + 2), np.int64), 0, limits, *rules)
        sizes = [need for block in blocks for need in block]
        found = [trial.leaving(list(need)) for need in sizes]
    every = np.array(sizes, np.int64).reshape(-1, len(lengths))
    left_at = reference.assign(every, np.empty((0, len(lengths) + 2), np.int64), 0, limits, *rules)[4]
    assert found == [int((left_at <= i).sum()) for i in range(len(sizes))]


@given(cases())
def test_no_row_overflows_and_every_sequence_has_a_place_of_its_own(case):
    lengths, blocks, most_sequences, most_open, best = case
    sizes = np.array([need for block in blocks for need in block], np.int64).reshape(-1, len(lengths))
    table, limits = np.empty((0, len(lengths) + 2), np.int64), np.array(lengths, np.int64)
    found = reference.assign(sizes, table, 0, limits, most_sequences, most_open, best)
    rows, starts, segments, left, _, kept, after = found
    assert sorted([*left.tolist(), *kept.tolist()]) == sorted(set(rows.tolist()))
    assert len(kept) <= most_open
    for row in set(rows.tolist()):
        inside = rows == row
        assert (starts[inside] == np.cumsum(sizes[inside], axis=0) - sizes[inside]).all()
        assert (sizes[inside].sum(axis=0) <= limits).all()
        assert segments[inside].tolist() == list(range(1, inside.sum() + 1))
        assert inside.sum() <= most_sequences
    for row, line in zip(kept.tolist(), after.tolist(), strict=True):
        assert line[:-1] == [*sizes[rows == row].sum(axis=0).tolist(), (rows == row).sum()]


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "int32", "float64", "complex128"])
def test_the_compiled_scatter_is_equal(dtype):
    sizes = np.array([3, 0, 2, 4])
    offsets, rows, starts = np.array([0, 3, 4, 6]), np.array([1, 0, 1, 0]), np.array([0, 0, 3, 1])
    segments = np.array([1, 1, 2, 2], np.int32)
    flat = np.arange(10).astype(dtype)
    results = []
    for kernels in (reference, run):
        out = [np.zeros((2, 5), dtype), np.zeros((2, 5), np.int32), np.zeros((2, 5), np.int32)]
        kernels.scatter(flat, offsets, sizes, rows, starts, segments, *out)
        results.append([array.tolist() for array in out])
    values = flat.tolist()
    nothing = np.zeros(1, dtype)[0].item()
    assert results[0] == results[1]
    assert results[0][0] == [[nothing, *values[6:10]], [*values[0:3], *values[4:6]]]
    assert results[0][1:] == [[[0, 2, 2, 2, 2], [1, 1, 1, 2, 2]], [[0, 0, 1, 2, 3], [0, 1, 2, 0, 1]]]
    assert flat.flags.writeable


def test_sizes_of_any_layout_are_assigned_alike():
    sizes, none, limits = np.array([[1, 2], [3, 1], [2, 2]]), np.empty((0, 4), np.int64), np.array([4, 4])
    rules = 1 << 60, 3, True
    wanted = run.assign(sizes, none, 0, limits, *rules)
    for other in (np.asfortranarray(sizes), sizes.astype(np.int32), np.repeat(sizes, 2, axis=0)[::2]):
        found = run.assign(other, none, 0, limits, *rules)
        assert [each.tolist() for each in found] == [each.tolist() for each in wanted]
