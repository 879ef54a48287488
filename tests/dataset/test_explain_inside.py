"""explain() shows the steps inside interleave and flat_map, once their function has made a data set."""

import pytest

import penstock as ps


@pytest.mark.parametrize("step", ["interleave", "flat_map"])
def test_the_steps_inside_are_shown_when_they_are_known(step):
    def made(number):
        return ps.Dataset.range(5).map(lambda x: x * 2).filter(lambda x: x != number)

    ds = getattr(ps.Dataset.range(3), step)(made).batch(2)
    before = ds.explain()
    assert "the first data set" not in str(before)
    list(ds)
    said = str(ds.explain()).splitlines()
    at = said.index("    the first data set that its function made:")
    assert said[at - 1].strip().startswith(f"{step}(made")
    assert [row.split()[0] for row in said[at + 1 : at + 4]] == ["filter(<lambda>)", "└", "└"]
    assert "map(<lambda>)" in said[at + 2]
    assert "range(0, 5, 1)" in said[at + 3]
    assert "test_explain_inside.py" in said[at + 2]


def test_what_is_said_keeps_no_function():
    import gc
    import weakref

    def made(number):
        return ps.Dataset.range(2)

    list(ps.Dataset.range(3).flat_map(made))
    known = weakref.ref(made)
    del made
    gc.collect()
    assert known() is None
