import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.keys import draw, draws, fold, mix

KEYS = st.integers(0, 2**64 - 1)
COUNTS = st.integers(0, 2**40)


@given(KEYS, COUNTS, st.lists(st.integers(1, 2**32 - 1), min_size=1, max_size=50))
def test_draws_are_the_single_draws(key, start, bounds):
    found = draws(key, start, len(bounds), np.array(bounds))
    assert found.dtype == np.int64
    assert found.tolist() == [draw(key, start + i, bound) for i, bound in enumerate(bounds)]
    assert all(0 <= number < bound for number, bound in zip(found.tolist(), bounds, strict=True))


@given(KEYS, COUNTS, st.integers(1, 1000), st.integers(0, 30))
def test_draws_do_not_depend_on_where_they_begin(key, start, bound, gap):
    whole = draws(key, start, gap + 10, bound)
    assert whole[gap:].tolist() == draws(key, start + gap, 10, bound).tolist()


@pytest.mark.parametrize("bound", [2, 7, 100])
@pytest.mark.parametrize("key", [0, 1, fold(0, 1), 2**64 - 1])
def test_draws_are_uniform_and_do_not_follow_each_other(key, bound):
    count = 200_000
    found = draws(key, 0, count, bound)
    observed = np.bincount(found, minlength=bound)
    wanted = count / bound
    chi_square = ((observed - wanted) ** 2 / wanted).sum()
    degrees = bound - 1
    assert abs(chi_square - degrees) < 6 * np.sqrt(2 * degrees) + 6
    centred = found - found.mean()
    correlation = (centred[1:] * centred[:-1]).mean() / centred.var()
    assert abs(correlation) < 6 / np.sqrt(count)


def test_neighbouring_keys_are_unlike():
    streams = [draws(fold(7, i), 0, 64, 1 << 20).tolist() for i in range(200)]
    assert len({tuple(stream) for stream in streams}) == 200
    firsts = np.array([stream[0] for stream in streams]) / (1 << 20)
    assert abs(firsts.mean() - 0.5) < 0.15


def test_mix_is_a_bijection_on_a_sample():
    assert len({mix(i) for i in range(100_000)}) == 100_000


@given(KEYS, st.lists(st.integers(-(2**63), 2**63), min_size=1, max_size=4))
def test_fold_takes_any_integers_one_after_the_other(key, data):
    assert 0 <= fold(key, *data) < 2**64
    folded = key
    for item in data:
        folded = fold(folded, item)
    assert fold(key, *data) == folded


def test_fold_depends_on_everything():
    assert len({fold(1, 2, 3), fold(1, 3, 2), fold(2, 1, 3), fold(1, 2), fold(1), fold(1, 2, 4)}) == 6
