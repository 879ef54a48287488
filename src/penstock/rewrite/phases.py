"""The phases of rewriting, in order, each with the reason for its place. The only list of rules."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.rewrite.rule import Rule
from penstock.rewrite.rules.drop_no_ops import drop_no_ops
from penstock.rewrite.rules.fuse_map_and_batch import fuse_map_and_batch
from penstock.rewrite.rules.fuse_maps import fuse_maps
from penstock.rewrite.rules.shuffle_before_map import shuffle_before_map


@dataclass(frozen=True, slots=True)
class Phase:
    """Rules that are applied together until none has anything to say."""

    name: str
    rules: tuple[Rule, ...]


PHASES = (
    Phase("drop", (drop_no_ops,)),  # first: a no-op between two steps would hide them from each other
    Phase("move", (shuffle_before_map,)),  # before fuse: a fused map no longer is a single function
    Phase("fuse maps", (fuse_maps,)),  # before batch: all maps below a batch can write into it
    Phase("fuse batch", (fuse_map_and_batch,)),  # last: nothing else knows its node
)
