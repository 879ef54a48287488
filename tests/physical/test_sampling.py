"""Draws by weight: what is looked up is what a search among the sums finds."""

import numpy as np
import pytest

from penstock.physical.stages.sampling import sums_up_to


@pytest.mark.parametrize("count", [1, 3, 16, 300, 5000])
@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1.0, 1e300])
def test_sums_up_to_a_value_are_those_that_a_search_finds(count, scale):
    drawn = np.random.default_rng(count)
    weights = drawn.exponential(size=count) ** 8 * (drawn.random(count) < 0.7)
    weights[-1] = 1.0
    sums = np.cumsum(weights * scale)
    values = np.concatenate([drawn.random(8000) * sums[-1], sums, np.nextafter(sums, 0), [0.0]])
    assert sums_up_to(sums, values).tolist() == np.searchsorted(sums, values, side="right").tolist()
