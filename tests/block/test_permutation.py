import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock.permutation as module
from penstock.keys import draw, fold
from penstock.permutation import MOST, SMALL, Permutation, _Network, permutation, permuted

KEYS = st.integers(0, 2**64 - 1)
SIZES = st.one_of(
    st.integers(1, 300), st.integers(SMALL - 1, SMALL + 2), st.integers(SMALL, 2**34), st.integers(1, MOST)
)


@given(KEYS, SIZES, st.data())
def test_many_numbers_are_the_single_numbers(key, size, data):
    positions = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=5))
    found = Permutation(key, size).at(np.array(positions, np.int64))
    assert found.dtype == np.int64
    assert found.tolist() == [permuted(position, key, size) for position in positions]
    assert all(0 <= number < size for number in found.tolist())


@given(KEYS, st.integers(1, 700))
def test_the_network_is_a_permutation_for_every_size(key, size):
    assert sorted(_Network(key, size).at(np.arange(size)).tolist()) == list(range(size))


@pytest.mark.parametrize("size", [1, 2, 3, 5, SMALL, SMALL + 1, 100_000, 300_001])
def test_it_is_a_permutation(size):
    found = Permutation(fold(3, size), size)
    assert np.array_equal(np.sort(found.at(np.arange(size))), np.arange(size))
    middle = size // 2
    assert np.array_equal(found.part(middle, size), found.at(np.arange(middle, size)))


@given(KEYS, st.integers(0, 200))
def test_few_numbers_are_shuffled_as_fisher_and_yates_do(key, size):
    order = list(range(size))
    for i, last in enumerate(range(size - 1, 0, -1)):
        pick = draw(key, i, last + 1)
        order[last], order[pick] = order[pick], order[last]
    assert Permutation(key, size).part(0, size).tolist() == order


def test_no_positions_have_no_numbers():
    assert Permutation(1, 5).at(np.empty(0, np.int64)).tolist() == []
    assert Permutation(1, SMALL * 2).at(np.empty(0, np.int64)).tolist() == []
    assert Permutation(1, 0).at(np.empty(0, np.int64)).tolist() == []


def test_kept_draws_are_the_draws(monkeypatch):
    size, key = 1_000_003, 5
    positions = np.arange(0, size, 37)
    kept = Permutation(key, size).at(positions)
    monkeypatch.setattr(module, "_TABLES", 0)
    assert np.array_equal(Permutation(key, size).at(positions), kept)


def test_the_same_key_and_size_are_the_same_permutation():
    assert permutation(7, 10) is permutation(7, 10)
    orders = {tuple(Permutation(key, 30).part(0, 30).tolist()) for key in range(100)}
    assert len(orders) == 100
    assert Permutation(7, 30).part(0, 29).tolist() != Permutation(7, 29).part(0, 29).tolist()


def test_the_orders_stay_as_they_are():
    """Checkpoints store positions in these orders, so the orders must not change."""
    assert Permutation(1, 8).part(0, 8).tolist() == ORDER_OF_8
    assert Permutation(1, 10**6).part(0, 5).tolist() == ORDER_OF_A_MILLION
    assert Permutation(1, 2**40).part(0, 3).tolist() == ORDER_OF_2_40


ORDER_OF_8 = [0, 3, 7, 1, 2, 6, 5, 4]
ORDER_OF_A_MILLION = [957331, 276344, 460774, 523149, 519838]
ORDER_OF_2_40 = [519259308914, 722029541264, 246565627298]

# -- uniformity: every count is fixed by its seed, so these tests always pass or always fail


def distance(observed, wanted, degrees):
    """Return the number of standard deviations between a chi-square statistic and its mean."""
    statistic = ((observed - wanted) ** 2 / wanted).sum()
    return (statistic - degrees) / np.sqrt(2 * degrees)


def orders_of(make, size, count, seed):
    positions = np.arange(size)
    return np.array([make(fold(seed, number), size).at(positions) for number in range(count)])


MAKERS = pytest.mark.parametrize("make", [Permutation, _Network], ids=["permutation", "network"])


def test_all_orders_of_few_numbers_are_equally_likely():
    _, counts = np.unique(orders_of(Permutation, 4, 12_000, 1), axis=0, return_counts=True)
    assert len(counts) == 24
    assert abs(distance(counts, 500, 23)) < 5


@MAKERS
@pytest.mark.parametrize("size", [5, 61, 200])
def test_every_number_comes_at_every_position(make, size):
    count = 3000
    orders = orders_of(make, size, count, 2)
    table = np.array([np.bincount(orders[:, position], minlength=size) for position in range(size)])
    assert abs(distance(table, count / size, (size - 1) ** 2)) < 5


def pairs(orders, left, right):
    """Return the distance of the pairs of numbers at two positions from a uniform distribution."""
    count, size = orders.shape
    table = np.zeros((size, size))
    np.add.at(table, (orders[:, left], orders[:, right]), 1)
    off = ~np.eye(size, dtype=bool)
    return abs(distance(table[off], count / (size * (size - 1)), size * (size - 1) - 1))


@pytest.mark.parametrize(("make", "size"), [(Permutation, 7), (Permutation, 40), (_Network, 40)])
def test_pairs_are_uniform(make, size):
    """Check the two numbers at two positions, near each other and far apart."""
    orders = orders_of(make, size, 10_000, 3)
    for left, right in [(0, 1), (1, 2), (0, size - 1), (size // 2, size // 2 + 1)]:
        assert pairs(orders, left, right) < 5


def test_a_network_of_a_few_numbers_would_show():
    """Check the reason for shuffling small sizes one by one, and that the statistic above detects the fault."""
    orders = orders_of(_Network, 7, 6000, 3)
    assert max(pairs(orders, left, right) for right in range(7) for left in range(right)) > 5


@MAKERS
def test_steps_between_neighbours_are_uniform(make):
    size = 101
    steps = (np.diff(orders_of(make, size, 2000, 4), axis=1) % size).reshape(-1)
    observed = np.bincount(steps, minlength=size)[1:]
    assert abs(distance(observed, len(steps) / (size - 1), size - 2)) < 5


@pytest.mark.parametrize("size", [SMALL + 1, 1 << 17, 1_000_003])
def test_large_orders_have_no_trend(size):
    positions = np.arange(min(size, 200_000))
    numbers = Permutation(fold(9, size), size).at(positions)
    cells = np.bincount(numbers * 64 // size * 64 + positions * 64 // len(positions), minlength=64 * 64)
    assert abs(distance(cells, len(positions) / 4096, 4095)) < 5
    centred = numbers - numbers.mean()
    for lag in (1, 2, 3, 256, 512):
        assert abs((centred[lag:] * centred[:-lag]).mean() / centred.var()) < 5 / np.sqrt(len(positions))


def test_fixed_points_are_as_many_as_they_should_be():
    """One on average; over many keys a Poisson number."""
    size, count = SMALL + 5, 60
    fixed = [(Permutation(fold(11, number), size).part(0, size) == np.arange(size)).sum() for number in range(count)]
    assert abs(np.mean(fixed) - 1) < 5 / np.sqrt(count)
