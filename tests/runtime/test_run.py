"""A pass that is asked for an element while it makes one."""

import pytest

import penstock as ps


def test_who_asks_for_the_next_element_while_it_is_made_is_told():
    elements = iter(ps.Dataset.range(3).map(lambda x: next(elements)))
    for _ in range(3):
        with pytest.raises(ps.errors.FailedPreconditionError, match="at its next element already"):
            next(elements)
    assert list(elements) == []
