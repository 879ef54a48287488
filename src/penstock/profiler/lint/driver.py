"""The driver: runs every check on a plan. It contains the only list of checks."""

from __future__ import annotations

from penstock.options import Options
from penstock.plan.node import Node
from penstock.plan.node_base import question
from penstock.profiler.lint.advice import Advice, Check, Report
from penstock.profiler.lint.checks import caches, functions, order, parallel, shuffles
from penstock.profiler.lint.inspection import Inspection

CHECKS: dict[str, tuple[Check, ...]] = {  # by the subject of their advice, the most important first
    "data": (
        functions.text_as_str,
        functions.lossy_operands,
        caches.cache_random,
        caches.cache_shuffled,
        functions.random_unkeyed,
        shuffles.shuffle_split,
        shuffles.sorted_split,
        shuffles.shuffle_epochs,
        shuffles.shuffle_batches,
        shuffles.shuffle_small,
        shuffles.global_shuffle,
        order.late_shard,
        order.uneven_shards,
    ),
    "memory": (
        caches.cache_endless,
        caches.cache_repeated,
        caches.cache_grown,
        shuffles.shuffle_decoded,
        functions.widened_floats,
    ),
    "speed": (
        caches.cache_cut,
        parallel.sequential_map,
        parallel.sequential_interleave,
        parallel.one_file,
        parallel.idle_cycle,
        functions.vectorise_batch,
        order.late_skip,
        order.late_filter,
        parallel.idle_prefetch,
        parallel.no_prefetch,
    ),
}


@question()
def lint(plan: Node, options: Options) -> Report:
    """Return the advice on a plan, the most important first. No element is computed: functions receive placeholders."""
    found = Inspection(plan, options)
    advice = (
        Advice.of(check.__name__.replace("_", "-"), concern, each)
        for concern, checks in CHECKS.items()
        for check in checks
        for each in check(found)
    )
    return Report(dict.fromkeys(advice))
