"""Worked: a stage that does the work of a segment, whoever does it."""

from __future__ import annotations

from penstock.physical.chained import Chained, ChainedStage, Place
from penstock.physical.stage import State
from penstock.runtime.task import Work


class Worked(ChainedStage):
    """What a segment and its inline form have in common: the states of their work.

    A place is [state of the work, ranges done, ranges that come first, number of the next element of the input]. Only
    free order has such ranges; elsewhere the state is one of steps in a row.
    """

    def __init__(self, work: Work) -> None:
        super().__init__(work.label, (work.upstream,), work.where)
        self.work = work
        self.ratios = work.ratios()

    def chained(self, place: State, skip: int) -> State:
        assert self.ratios is not None
        state, _, _, count = place
        below, first = self.work.under(state)
        return Chained(below, first, count if self.work.numbered else None, self.ratios, skip)

    def go_on(self, place: Place) -> int:
        self.work.numbered = place.count is not None
        state, count, skip = self.work.at(place)
        self.go_to([state, [], [], count])
        return skip

    def part(self, count: int) -> None:
        self.work.part(count)
        self.inputs = (self.work.upstream,)

    def portion(self) -> None:
        self.work.portion()
        self.inputs = (self.work.upstream,)
