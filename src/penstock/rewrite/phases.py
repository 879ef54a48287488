"""The phases of rewriting, in order, each with the reason for its place. The only list of rules."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.rewrite.rule import Rule
from penstock.rewrite.rules.cut_before_map import cut_before_map
from penstock.rewrite.rules.cut_source import cut_source
from penstock.rewrite.rules.drop_no_ops import drop_no_ops
from penstock.rewrite.rules.drop_prefetch import drop_prefetch
from penstock.rewrite.rules.drop_trivial_prefetch import drop_trivial_prefetch
from penstock.rewrite.rules.fuse_filters import fuse_filters
from penstock.rewrite.rules.fuse_map_and_batch import fuse_map_and_batch
from penstock.rewrite.rules.fuse_maps import fuse_maps
from penstock.rewrite.rules.fuse_maps_and_filters import fuse_maps_and_filters
from penstock.rewrite.rules.fuse_shuffle_and_repeat import fuse_shuffle_and_repeat
from penstock.rewrite.rules.inject_prefetch import inject_prefetch
from penstock.rewrite.rules.keep_trivial_maps import keep_trivial_maps
from penstock.rewrite.rules.parallelise_maps import parallelise_maps
from penstock.rewrite.rules.shuffle_before_map import shuffle_before_map


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """Rules that are applied together until none has anything to say.

    Those of a phase for the `outermost` plan see it as a whole; the plans of inner data sets pass by.
    """

    name: str
    rules: tuple[Rule, ...]
    outermost: bool = False


PHASES = (
    Phase("drop", (drop_no_ops,)),  # first: a no-op between two steps would hide them from each other
    Phase("move", (shuffle_before_map, cut_before_map, cut_source)),  # before fuse: a fused map is no single function
    Phase("parallel", (keep_trivial_maps, parallelise_maps)),  # before fuse: maps that run alike fuse
    Phase("fuse maps", (fuse_maps, fuse_filters, fuse_maps_and_filters)),  # before batch: all of them can write into it
    Phase("fuse", (fuse_map_and_batch, fuse_shuffle_and_repeat)),  # nothing else knows their nodes
    Phase("ahead", (drop_prefetch, drop_trivial_prefetch)),  # which steps are ahead of the loop is certain now
    Phase("end", (inject_prefetch,), outermost=True),  # last: it would stand between a map and its batch
)
