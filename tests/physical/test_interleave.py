"""Interleave where there are more slots than inputs."""

import pytest

import penstock as ps


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
