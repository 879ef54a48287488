"""A request for an element while the iteration computes one."""

import pytest

import penstock as ps


def test_who_asks_for_the_next_element_while_it_is_made_is_told():
    elements = iter(ps.Dataset.range(3).map(lambda x: next(elements)))
    for _ in range(3):
        with pytest.raises(ps.errors.FailedPreconditionError, match="at its next element already"):
            next(elements)
    assert list(elements) == []


def test_a_function_that_asks_for_elements_takes_no_failure_of_others():
    elements = None
    asked = []

    def f(x):
        asked.append(int(x))
        return next(elements)

    elements = iter(ps.Dataset.range(3).map(f))
    for number in range(3):
        with pytest.raises(ps.errors.FailedPreconditionError, match=f"element {number}"):
            next(elements)
        assert asked == [*range(number + 1)]
