"""What holds for every plan, checked after each phase of rewriting."""

from __future__ import annotations

from penstock.plan.node import Node
from penstock.plan.ops import FusedMap, Map, MapAndBatch
from penstock.plan.shuffle_and_repeat import ShuffleAndRepeat


def verify(plan: Node) -> None:
    """Raise AssertionError for a plan that no rule may make; a failure is a bug in a rule."""
    for node in plan.walk():
        assert isinstance(node, Node), f"{node!r} is no node"
        match node:
            case FusedMap():
                assert len(node.steps) > 1, "a fused step of one map hides it from other rules"
                settings = {
                    (step.num_parallel_calls, step.deterministic) for step in node.steps if isinstance(step, Map)
                }
                assert len(settings) < 2, f"fused maps run differently: {settings}"
            case MapAndBatch():
                assert node.steps[0].num_parallel_calls is not None, "a sequential map was fused into a batch"
            case ShuffleAndRepeat():
                assert node.repeat.count not in (0, 1), "epochs were fused where there are no two"
