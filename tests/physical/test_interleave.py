"""Interleave where there are more slots than inputs."""

import gc
from collections import Counter

import pytest

import penstock as ps
from penstock.physical import inner_inputs
from penstock.physical.inner_plans import Opening
from penstock.plan.inputs import Concatenate
from penstock.runtime import block_sizer


def interleaved(cycle_length, parallel=None):
    lengths = ps.Dataset.from_tensor_slices([3, 1, 4, 0, 2])
    return lengths.interleave(
        lambda n: ps.Dataset.range(n), cycle_length=cycle_length, block_length=2, num_parallel_calls=parallel
    )


@pytest.mark.parametrize("parallel", [None, 2])
def test_slots_that_get_no_input_take_no_time(parallel):
    wanted = [int(x) for x in interleaved(5)]
    many = interleaved(10**9, parallel)
    assert [int(x) for x in many] == wanted
    for taken in range(len(wanted)):
        with iter(many) as first, iter(many) as second:
            before = [int(next(first)) for _ in range(taken)]
            second.load_state_dict(first.state_dict())
            assert before + [int(x) for x in second] == wanted


@pytest.mark.parametrize("lengths", [lambda i: 3, lambda i: i % 7])
def test_what_an_element_costs_does_not_grow_with_the_number_of_inputs(monkeypatch, lengths):
    """Where inputs have stages; of small ones none is asked."""
    counts = Counter()
    monkeypatch.setattr(Opening, "small", lambda opening, made: None)
    for name in ("state", "fill", "fill_early"):
        method = getattr(inner_inputs.Input, name)

        def counting(*arguments, method=method, name=name):
            counts[name] += 1
            return method(*arguments)

        monkeypatch.setattr(inner_inputs.Input, name, counting)

    def asked(inputs):
        counts.clear()
        ds = ps.Dataset.range(inputs).interleave(lambda i: ps.Dataset.range(lengths(int(i))), cycle_length=inputs)
        with ds.iterator(executor="inline") as elements:
            given = sum(1 for _ in elements)
        assert given == sum(map(lengths, range(inputs)))
        return sum(counts.values()) / given

    assert asked(800) < 1.5 * asked(100)


@pytest.mark.parametrize("block_length", [1, 3])
def test_a_pass_goes_on_from_the_midst_of_rounds_that_were_put_together(block_length):
    ds = ps.Dataset.range(12).interleave(lambda i: ps.Dataset.range(i, i + 40), 12, block_length).batch(7)
    wanted = [batch.tolist() for batch in ds]
    for taken in range(0, len(wanted), 3):
        with ds.iterator(executor="inline") as first, ds.iterator(executor="inline") as second:
            for _ in range(taken):
                next(first)
            second.load_state_dict(first.state_dict())
            assert [batch.tolist() for batch in second] == wanted[taken:]


def test_states_are_told_once_for_rounds_that_take_many_blocks(monkeypatch):
    told = Counter()
    state = inner_inputs.Input.state
    monkeypatch.setattr(inner_inputs.Input, "state", lambda slot: told.update(["state"]) or state(slot))
    monkeypatch.setattr(block_sizer, "_MOST", 1)  # batches
    ds = ps.Dataset.range(200).interleave(lambda i: ps.Dataset.range(100), cycle_length=200).batch(16)
    with ds.iterator(executor="inline") as batches:
        given = sum(len(batch) for batch in batches)
    assert told["state"] < given / 4


def test_data_sets_that_a_function_makes_are_forgotten_when_their_elements_have_come():
    def made(i):
        return ps.Dataset.range(2).concatenate(ps.Dataset.range(1))

    with ps.Dataset.range(10).interleave(made, cycle_length=3).repeat().iterator() as elements:
        for _ in range(600):
            next(elements)
        gc.collect()
        assert sum(type(found) is Concatenate for found in gc.get_objects()) < 20


def test_inputs_are_asked_for_more_than_a_turn_at_a_time(monkeypatch):
    """Sixteen inputs of 256 elements: 128 at a time after the first ones, in batches and alone."""
    wants = []
    filled = inner_inputs.Input._filled

    def counting(slot, cursor, want):
        wants.append(want)
        return filled(slot, cursor, want)

    monkeypatch.setattr(inner_inputs.Input, "_filled", counting)
    monkeypatch.setattr(Opening, "small", lambda opening, made: None)
    monkeypatch.setattr("penstock.physical.stages.request_sizes.AT_ONCE", 10.0)  # no input takes long
    monkeypatch.setattr(block_sizer, "_MOST", 1)  # one batch at a time, on a fast machine too
    ds = ps.Dataset.range(16).interleave(lambda i: ps.Dataset.range(256), cycle_length=16, block_length=4)
    with ds.batch(32).iterator(executor="inline") as elements:
        assert sum(len(batch) for batch in elements) == 16 * 256
    assert max(wants) == 128
    assert len(wants) < 16 * 6
