"""OptimizationOptions: which rewrites run."""

from __future__ import annotations

from penstock.options.group import Group, Subgroup
from penstock.options.setting import Setting


class Rewrite(Setting[bool]):
    """A rewrite's switch: on unless it is set otherwise, or only what is set explicitly runs."""

    def __init__(self, text: str) -> None:
        super().__init__(bool, True, text)

    def value(self, group: Group) -> bool:
        found = group._given.get(self.name)
        return _defaults_apply(group) if found is None else bool(found)


def _defaults_apply(group: Group | None) -> bool:
    while group is not None and not isinstance(group, OptimizationOptions):
        group = group._owner
    return group is None or group.apply_default_optimizations


class MapVectorizationOptions(Group):
    """Whether functions run on many elements at once: `experimental_optimization.map_vectorization`.

    True and False may stand in its place.

    >>> import penstock as ps
    >>> ps.Options(experimental_optimization={"map_vectorization": False})
    Options(experimental_optimization=OptimizationOptions(map_vectorization=MapVectorizationOptions(enabled=False)))
    """

    path = "experimental_optimization.map_vectorization"

    enabled = Rewrite("Functions of known operations run on a Block of elements at a time, where that gives the same.")

    def __bool__(self) -> bool:
        return self.enabled


class OptimizationOptions(Group):
    """Which rewrites run: `Options.experimental_optimization`. Each keeps elements and order equal.

    The one that does not, `approximate_image`, is off unless it is set to True.

    >>> import penstock as ps
    >>> options = ps.Options()
    >>> options.experimental_optimization.apply_default_optimizations = False
    >>> options.experimental_optimization.noop_elimination = True
    >>> options.experimental_optimization.map_fusion, options.experimental_optimization.noop_elimination
    (False, True)
    """

    path = "experimental_optimization"

    apply_default_optimizations = Setting(bool, True, "If not, only those run that are set to True.")

    noop_elimination = Rewrite("Steps that change nothing vanish: take(-1), skip(0), repeat(1), prefetch(0).")
    reorder_data_discarding_ops = Rewrite("take, skip and shard move in front of maps, which then do less.")
    push_into_source = Rewrite("take, skip and shard of elements that are in memory become a slice of them.")
    shuffle_before_map = Rewrite("A shuffle moves in front of maps, so that it holds what they have not enlarged yet.")
    shuffle_and_repeat_fusion = Rewrite("The next epoch's buffer fills while the last one's empties.")
    inject_prefetch = Rewrite("In a parallel pipeline, steps at the end that are not parallel run ahead of the loop.")
    map_parallelization = Rewrite("Maps that work on pictures run in parallel without being asked to.")
    map_fusion = Rewrite("Neighbouring maps become one step.")
    filter_fusion = Rewrite("Neighbouring filters become one step.")
    map_and_filter_fusion = Rewrite("Neighbouring maps and filters become one step.")
    map_and_batch_fusion = Rewrite("The workers of a parallel map make the batches behind it.")
    map_vectorization = Subgroup(MapVectorizationOptions, short="enabled")
    approximate_image = Setting(
        bool,
        False,
        "Whether image operations may give other values, close to the exact ones, for speed: colours are changed after "
        "a resize in place of before it, and JPEGs decoded no larger than needed.",
    )
