"""The driver: runs every check on a plan. It contains the only list of checks."""

from __future__ import annotations

from penstock.options import Options
from penstock.plan.node import Node
from penstock.plan.node_base import question
from penstock.profiler.lint.advice import Check, Report
from penstock.profiler.lint.checks.caches import (
    cache_cut,
    cache_endless,
    cache_grown,
    cache_random,
    cache_repeated,
    cache_shuffled,
)
from penstock.profiler.lint.checks.functions import (
    lossy_operands,
    random_unkeyed,
    text_as_str,
    vectorise_batch,
    widened_floats,
)
from penstock.profiler.lint.checks.order import late_filter, late_shard, late_skip, uneven_shards
from penstock.profiler.lint.checks.parallel import (
    idle_cycle,
    idle_prefetch,
    narrow_prefetch,
    no_prefetch,
    one_file,
    sequential_interleave,
    sequential_map,
)
from penstock.profiler.lint.checks.shuffles import (
    global_shuffle,
    shuffle_batches,
    shuffle_decoded,
    shuffle_epochs,
    shuffle_small,
    shuffle_split,
    sorted_split,
)
from penstock.profiler.lint.inspection import Inspection

CHECKS: tuple[Check, ...] = (
    # the elements may not be the intended ones
    text_as_str,
    lossy_operands,
    cache_random,
    cache_shuffled,
    random_unkeyed,
    shuffle_split,
    sorted_split,
    shuffle_epochs,
    shuffle_batches,
    shuffle_small,
    global_shuffle,
    late_shard,
    uneven_shards,
    # memory
    cache_endless,
    cache_repeated,
    cache_grown,
    shuffle_decoded,
    widened_floats,
    # time
    cache_cut,
    sequential_map,
    sequential_interleave,
    one_file,
    idle_cycle,
    vectorise_batch,
    late_skip,
    late_filter,
    idle_prefetch,
    narrow_prefetch,
    no_prefetch,
)


@question()
def lint(plan: Node, options: Options) -> Report:
    """Return the advice on a plan, the most important first. No element is computed: functions receive placeholders."""
    found = Inspection(plan, options)
    return Report(dict.fromkeys(advice for check in CHECKS for advice in check(found)))
