"""What states of steps in a row say: elements to drop in front of each step and behind it, whichever run as one."""

import json
from itertools import islice
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.block.block import Block
from penstock.block.same_kind import read
from penstock.physical.chained import Chained, ChainedStage, Portioned, place_of
from penstock.physical.stage import Stage
from penstock.runtime import sealed

COUNT = 60


class Asked(Stage):
    """Numbers, as many as requested. Records the requests."""

    def __init__(self):
        super().__init__("asked")
        self.wants = []

    def next(self, want):
        self.wants.append(want)
        return Block.from_elements(list(range(want)))

    def state(self):
        return 0

    restore = None


def test_a_multiple_of_the_request_is_computed_ahead():
    stage = Asked()
    portioned = Portioned(stage)
    for most, want in ((1, 3), (10, 3), (10, 20), (10, 1)):
        portioned._stint.most = most
        assert portioned.next(want).size == want
        portioned.pass_by(portioned._cursor.available())
    assert stage.wants == [3, 9, 20, 10]


def test_what_was_computed_ahead_is_measured_by_component():
    portioned, calls = Portioned(Asked()), []
    portioned._stint = SimpleNamespace(most=4, took=lambda count, seconds, nbytes: calls.append((count, nbytes)))
    portioned.next(2)
    assert calls == [(4, 32)]


class Row(ChainedStage):
    """A stage of one map."""

    go_on = lambda self, place: 0  # noqa: E731
    place = go_to = make = chained = part = portion = None
    made_by = lambda self: self.maps  # noqa: E731

    def __init__(self):
        super().__init__("row", ())
        self.ratios, self.maps = (1,), [SimpleNamespace(decided=None)]


def test_a_state_names_the_kinds_that_are_decided():
    for own in ((), (str((0, None)),)):
        maps = [SimpleNamespace(decided=read(*own) if own else None)]
        assert Chained("below", 0, 5, (1,), 0, maps).resolved() == {
            "below": "below",
            "skip": 0,
            "steps": [[5, 0, *own]],
        }


def test_a_stage_reads_the_kinds_of_its_own_steps_only():
    kind = str(("", None)), str((0, None))
    for own, decided in (((), None), ((kind[1],), read(kind[1]))):
        row = Row()
        row.restore({"below": 0, "skip": 0, "steps": [[0, 0, kind[0]], [0, 0, *own]]})
        assert row.maps[0].decided == decided


STEPS = {  # by kind: the step, and what it makes of all elements in a list
    "map": (lambda ds, calls: ds.map(lambda x: x + 1, num_parallel_calls=calls), lambda xs: [x + 1 for x in xs]),
    "filter": (lambda ds, calls: ds.filter(lambda x: x % 3 > 0), lambda xs: [x for x in xs if x % 3 > 0]),
    "batch": (
        lambda ds, calls: ds.batch(2, num_parallel_calls=calls).map(lambda x: x.sum(), num_parallel_calls=calls),
        lambda xs: [sum(xs[at : at + 2]) for at in range(0, len(xs), 2)],
    ),
}
RATIOS = {"map": (1,), "filter": (None,), "batch": (2, 1)}
ROWS = st.lists(
    st.tuples(st.sampled_from(["map", "filter", "batch"]), st.integers(0, 4), st.sampled_from([None, 1, 2])),
    min_size=1,
    max_size=4,
)


def entries(row, first):
    """Those of a state: the number of the first element that a step is given, if known, and what it drops."""
    found, number = [], first
    for kind, dropped, _ in row:
        found += [[number, 0]] * (len(RATIOS[kind]) - 1)  # the map behind a batch is given what the batch drops of
        number = number if kind == "map" else None
        found.append([None if kind == "batch" else number if kind == "map" else first, dropped])
        first = number = None if number is None else number + dropped
    return found


EXECUTORS = st.sampled_from(["inline", "thread"])


@given(
    row=ROWS,
    place=st.integers(0, 9),
    first=st.integers(0, 5),
    others=st.lists(st.sampled_from([None, 1, 2]), min_size=4, max_size=4),
    taken=st.integers(0, 12),
    executors=st.tuples(EXECUTORS, EXECUTORS),
)
def test_each_step_drops_what_its_entry_says(row, place, first, others, taken, executors):
    """Also from a state that the same elements are gone on with later, by steps that run as others do."""
    dataset = another = ps.Dataset.range(COUNT)
    wanted = list(range(COUNT))[place + first :]
    for (kind, dropped, calls), other in zip(row, others, strict=False):
        build, make = STEPS[kind]
        dataset, another, wanted = build(dataset, calls), build(another, other), make(wanted)[dropped:]
    with dataset.iterator(epoch=0, executor=executors[0]) as elements:
        state = elements.state_dict()
        state = {key: part for key, part in state.items() if key not in ("checksum", "version")}
        stages = {"below": place, "skip": first, "steps": entries(row, place + first)}
        elements.load_state_dict(sealed.sealed({**state, "stages": stages}))
        found = [int(element) for element in islice(elements, taken)]
        later = json.loads(json.dumps(elements.state_dict()))
        assert found + [int(element) for element in elements] == wanted
    with another.iterator(epoch=0, executor=executors[1]) as elements:
        elements.load_state_dict(later)
        assert [int(element) for element in elements] == wanted[taken:]


@given(
    dropped=st.lists(st.tuples(st.sampled_from([1, 1, 2, 3]), st.integers(0, 4)), min_size=1, max_size=5),
    first=st.integers(0, 5),
    number=st.integers(5, 99),
    own=st.integers(0, 5),
    unknown=st.sets(st.integers(0, 4)),
)
def test_without_filters_all_is_dropped_in_front_of_a_stage(dropped, first, number, own, unknown):
    """And it is given the element that stands there, with its number, whichever of its steps knows that."""
    own = min(own, len(dropped))
    ratios = tuple(ratio for ratio, _ in dropped)
    steps, known = [], number
    for ratio, skip in dropped:
        steps.append([None if len(steps) in unknown else known, skip])
        known = None if known is None or ratio != 1 else known + skip
    state = {"below": "the state below", "skip": first, "steps": steps}
    place = place_of(state, ratios[len(ratios) - own :])
    if not own:
        assert (place.below, place.first, place.count, place.skip) == (state, 0, 0, 0)
        return
    below, mine = steps[:-own], steps[-own:]
    assert place.below == ({**state, "steps": below} if below else "the state below")
    passed, each = 0 if below else first, 1
    for (_, skip), ratio in zip(mine, ratios[len(ratios) - own :], strict=True):
        each *= ratio
        passed += skip * each
    assert (place.first, place.skip, place.part, place.dropping) == (passed, 0, 0, False)
    told, before = None, 0
    for (given_first, skip), ratio in zip(mine, ratios[len(ratios) - own :], strict=True):
        if given_first is not None:
            told = given_first - before
            break
        if ratio != 1:
            break
        before += skip
    assert place.count == (None if told is None else told + passed - (0 if below else first))
