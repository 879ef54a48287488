"""Batches of differing shape, rebatch, zeros: a failure takes the place of one element, and the stage goes on."""

import json

import numpy as np
import pytest
from tests.dataset.batching_inputs import plain

import penstock as ps
from penstock.block.block import Block
from penstock.block.structure import flatten
from penstock.errors import marked
from penstock.physical.stage import Stage, as_of_now
from penstock.physical.stages.batch import stack_block
from penstock.physical.stages.cardinality import PadToCardinalityStage
from penstock.physical.stages.grouped import GroupedStage, RebatchStage
from penstock.physical.stages.padded import Padder, ragged_block
from penstock.plan.node import StepName
from penstock.plan.padding import paddings

INT = ps.TensorSpec((), np.int64)
STEP = StepName("step")


class Script(Stage):
    """Elements and failures as listed, in Blocks of up to `most`."""

    def __init__(self, positions, most):
        super().__init__("script")
        self.positions = positions
        self.most = most
        self.at = 0

    def next(self, want):
        if self.at == len(self.positions):
            return None
        if isinstance(self.positions[self.at], Exception):
            self.at += 1
            raise marked(type(self.positions[self.at - 1])(*self.positions[self.at - 1].args))
        found = []
        while self.at < len(self.positions) and len(found) < min(self.most, want):
            if isinstance(self.positions[self.at], Exception):
                break
            found.append(self.positions[self.at])
            self.at += 1
        return Block.from_elements(found)

    def state(self):
        return self.at

    def restore(self, state):
        self.at = state


def outcomes(stage, want, most=None):
    """What comes at each position, an error by its name, and the state behind each Block or failure."""
    found, states = [], [(0, stage.state())]
    while most is None or len(found) < most:
        try:
            block = stage.next(want)
        except Exception as error:
            found.append(type(error).__name__)
        else:
            if block is None:
                break
            found.extend(plain(element) for element in block.elements())
        states.append((len(found), stage.state()))
    return found, states


def failing(count, *positions, make=lambda i: np.int64(i)):
    return [LookupError("lost") if i in positions else make(i) for i in range(count)]


def test_all_groups_of_what_comes_are_handed_on_together():
    grouped = GroupedStage(Script(failing(14, 13), 14), 3, stack_block, StepName("batch"), drop_remainder=False)
    assert grouped.next(4).size == 4
    with pytest.raises(LookupError, match="lost"):
        grouped.next(4)
    assert grouped.next(4) is None


def ragged_rows(i):
    return np.full(i % 3, i)


def padder():
    return Padder(lambda structure, specs: paddings(structure, specs, None, None))


def limited():
    return Padder(lambda structure, specs: paddings(structure, specs, [1], None))


def grouped(script, stack, drop=False):
    return GroupedStage(script, 3, stack, STEP, drop_remainder=drop)


STAGES = {
    "padded scalars": (lambda most: grouped(Script(failing(10, 0, 5), most), padder()),
                       ["LookupError", "LookupError", [6, 7, 8], [9]]),
    "padded rows": (
        lambda most: grouped(Script(failing(8, 4, make=ragged_rows), most), padder(), True),
        [[[0, 0], [1, 0], [2, 2]], "LookupError"],
    ),
    "too long": (
        lambda most: grouped(Script([np.full(n, n) for n in (1, 0, 1, 1, 2, 1, 0, 0, 0)], most), limited()),
        [[[1], [0], [1]], "DataLossError", [[0], [0], [0]]],
    ),
    "too long in one shape": (
        lambda most: grouped(Script([np.full(2, n) for n in range(4)], most), limited()),
        ["DataLossError", "DataLossError"],
    ),
    "ragged": (
        lambda most: grouped(
            Script(failing(9, 3, make=ragged_rows), most),
            lambda block, size: ragged_block(block, size, {}, np.int64),
        ),
        [[[], [1], [2, 2]], "LookupError", [[], [7], [8, 8]]],
    ),
    "rebatch": (
        lambda most: RebatchStage(
            Script(failing(5, 2, make=lambda i: np.arange(2) + 2 * i), most), (3,), STEP, drop_remainder=False
        ),
        [[0, 1, 2], "LookupError", [7, 8, 9]],
    ),
    "rebatch in turns": (
        lambda most: RebatchStage(
            Script(failing(5, 2, make=lambda i: np.arange(2) + 2 * i), most), (2, 1), STEP, drop_remainder=False
        ),
        [[0, 1], [2], "LookupError", [6], [7, 8], [9]],
    ),
    "zeros": (
        lambda most: PadToCardinalityStage(
            Script(failing(3, 1, make=lambda i: {"x": np.int64(i)}), most),
            5, "v", *_element({"x": INT}), STEP,
        ),
        [{"x": 0, "v": True}, "LookupError", {"x": 2, "v": True}, {"x": 0, "v": False}, {"x": 0, "v": False}],
    ),
    "more than zeros": (
        lambda most: PadToCardinalityStage(
            Script(failing(4, make=lambda i: {"x": np.int64(i)}), most), 2, "v", *_element({"x": INT}), STEP
        ),
        [{"x": 0, "v": True}, {"x": 1, "v": True}, "InvalidArgumentError"],
    ),
}  # fmt: skip


def _element(spec):
    leaves, structure = flatten(spec)
    return structure, leaves


@pytest.mark.parametrize("want", [1, 2, 50])
@pytest.mark.parametrize("most", [1, 2, 4, 50])
@pytest.mark.parametrize("name", STAGES)
def test_a_failure_takes_the_place_of_one_element(name, most, want):
    build, wanted = STAGES[name]
    found, states = outcomes(build(most), want)
    assert found == wanted
    for given_before, state in states:
        for other in (1, 50):
            stage = build(other)
            stage.restore(json.loads(json.dumps(as_of_now(state))))
            again = json.loads(json.dumps(as_of_now(stage.state())))
            assert outcomes(stage, want)[0] == wanted[given_before:]
            stage = build(most)
            stage.restore(again)
            assert outcomes(stage, 50 // want)[0] == wanted[given_before:]


def test_a_padded_batch_of_scalars_is_what_batch_makes():
    for most in (1, 4, 50):
        one = outcomes(grouped(Script(failing(11, make=lambda i: np.int64(i)), most), padder()), 4)[0]
        other = outcomes(
            GroupedStage(
                Script(failing(11, make=lambda i: np.int64(i)), most),
                3,
                stack_block,
                StepName("batch"),
                drop_remainder=False,
            ),
            4,
        )[0]
        assert one == other
