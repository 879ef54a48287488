"""Iterations over a source: elements, and failures in their places, for any request size and any resume."""

import json

from penstock.testing import assert_same_elements


def drained(reader, want):
    """Return elements and errors in their order, and the position after each Block or error."""
    found, positions = [], [(0, reader.position())]
    while True:
        try:
            block = reader.read(want)
        except Exception as error:
            found.append(error)
            assert len(found) < 10_000, "it does not end"
        else:
            if block is None:
                assert reader.read(want) is None
                reader.close()
                return found, positions
            assert 1 <= block.size <= want
            found += block.elements()
        positions.append((len(found), reader.position()))


def assert_equal(found, wanted):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        if isinstance(b, Exception):
            assert type(a) is type(b)
            assert str(a) == str(b)
        else:
            assert_same_elements([a], [b])


def everything(dataset):
    return everything_of(dataset._plan.source)


def everything_of(source):
    """Return the elements of one iteration; check that they are the same for any request size and any resume.

    The resumes are at every element, or at two dozen of more than a hundred.
    """
    wanted, _ = drained(source.open(), 1000)
    many = len(wanted) > 100
    for want in (7,) if many else (1, 3, 7):
        found, positions = drained(source.open(), want)
        assert_equal(found, wanted)
        for count, position in positions[:: 1 + len(positions) // 24 if many else 1]:
            resumed = source.open(json.loads(json.dumps(position)))
            again = resumed.position()
            assert_equal(drained(resumed, 5)[0], wanted[count:])
            if again != position:
                assert_equal(drained(source.open(again), 5)[0], wanted[count:])
    return wanted


def kinds(found):
    """Return elements unchanged, errors as their class and offset."""
    return [(type(item).__name__, item.context.offset) if isinstance(item, Exception) else item for item in found]
