"""The phases of rewriting, in order, each with the reason for its place.

This is the only list of rules and their switches.
"""

from __future__ import annotations

from penstock.rewrite.rule import Phase, Switch, Switches
from penstock.rewrite.rules.cut_before_map import cut_before_map
from penstock.rewrite.rules.cut_source import cut_source
from penstock.rewrite.rules.drop_no_ops import drop_no_ops
from penstock.rewrite.rules.drop_prefetch import drop_prefetch, drop_trivial_prefetch
from penstock.rewrite.rules.fuse_filters import fuse_filters
from penstock.rewrite.rules.fuse_map_and_batch import fuse_map_and_batch
from penstock.rewrite.rules.fuse_maps import fuse_maps
from penstock.rewrite.rules.fuse_maps_and_filters import fuse_maps_and_filters
from penstock.rewrite.rules.fuse_shuffle_and_repeat import fuse_shuffle_and_repeat
from penstock.rewrite.rules.inject_prefetch import inject_prefetch
from penstock.rewrite.rules.keep_trivial_maps import keep_trivial_maps
from penstock.rewrite.rules.parallelise_maps import parallelise_maps
from penstock.rewrite.rules.shuffle_before_map import shuffle_before_map
from penstock.rewrite.rules.window_in_place import window_in_place
from penstock.settings import Group, Setting, Subgroup


class Drop(Switches):
    """This phase is first because a no-op between two steps hides them from each other."""

    noop_elimination = Switch(drop_no_ops)


class Move(Switches):
    """This phase runs before steps are fused because a fused map has no single function to move."""

    shuffle_before_map = Switch(shuffle_before_map)
    reorder_data_discarding_ops = Switch(cut_before_map)
    push_into_source = Switch(cut_source)
    window_in_place = Switch(window_in_place)


class Parallel(Switches):
    """This phase runs before maps are fused because only maps with equal settings can be fused."""

    map_parallelization = Switch(keep_trivial_maps, parallelise_maps)


class FuseMaps(Switches):
    """This phase runs before a map is fused with a batch, so that all maps can write into the batch."""

    map_fusion = Switch(fuse_maps)
    filter_fusion = Switch(fuse_filters)
    map_and_filter_fusion = Switch(fuse_maps_and_filters)


class Fuse(Switches):
    """This phase runs after all rules for maps, batches and shuffles. No other rule knows the fused nodes."""

    map_and_batch_fusion = Switch(fuse_map_and_batch)
    shuffle_and_repeat_fusion = Switch(fuse_shuffle_and_repeat)


class Ahead(Switches):
    """This phase runs here because it is now known which steps run ahead of the training loop."""

    noop_elimination = Switch(drop_prefetch, drop_trivial_prefetch)


class End(Switches, outermost=True):
    """This phase is last because a prefetch would separate a map from its batch."""

    inject_prefetch = Switch(inject_prefetch)


class MapVectorizationOptions(Group):
    """Switch of vectorisation, which calls functions on many elements at once. It can be set to True or False directly.

    Example:
        >>> import penstock as ps
        >>> ps.Options(experimental_optimization={"map_vectorization": False})
        Options(experimental_optimization=OptimizationOptions(map_vectorization=MapVectorizationOptions(enabled=False)))
    """

    path = "experimental_optimization.map_vectorization"

    enabled = Switch(
        text="Functions of known operations run on a Block of elements at a time, where that gives the same."
    )

    def __bool__(self) -> bool:
        return self.enabled


class OptimizationOptions(Drop, Move, Parallel, FuseMaps, Fuse, Ahead, End):
    """Switches of the rewrites of a plan: `Options.experimental_optimization`.

    No rewrite changes the elements or their order.

    Example:
        >>> import penstock as ps
        >>> options = ps.Options()
        >>> options.experimental_optimization.apply_default_optimizations = False
        >>> options.experimental_optimization.noop_elimination = True
        >>> options.experimental_optimization.map_fusion, options.experimental_optimization.noop_elimination
        (False, True)
    """

    path = "experimental_optimization"

    apply_default_optimizations = Setting(bool, True, "If not, only those run that are set to True.")
    map_vectorization = Subgroup(lambda: MapVectorizationOptions, short="enabled")


PHASES: tuple[Phase, ...] = tuple(kind._phase for kind in OptimizationOptions.__bases__ if issubclass(kind, Switches))
RULES = {rule.name: rule for phase in PHASES for rule in phase.rules}
