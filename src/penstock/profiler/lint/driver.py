"""The driver: runs every check on a plan. The only list of checks."""

from __future__ import annotations

from penstock.options import Options
from penstock.plan.node import Node
from penstock.plan.once import question
from penstock.profiler.lint.advice import Check, Report
from penstock.profiler.lint.checks.cache_cut import cache_cut
from penstock.profiler.lint.checks.cache_endless import cache_endless
from penstock.profiler.lint.checks.cache_grown import cache_grown
from penstock.profiler.lint.checks.cache_random import cache_random
from penstock.profiler.lint.checks.cache_repeated import cache_repeated
from penstock.profiler.lint.checks.cache_shuffled import cache_shuffled
from penstock.profiler.lint.checks.global_shuffle import global_shuffle
from penstock.profiler.lint.checks.idle_cycle import idle_cycle
from penstock.profiler.lint.checks.idle_prefetch import idle_prefetch
from penstock.profiler.lint.checks.late_filter import late_filter
from penstock.profiler.lint.checks.late_shard import late_shard
from penstock.profiler.lint.checks.late_skip import late_skip
from penstock.profiler.lint.checks.no_prefetch import no_prefetch
from penstock.profiler.lint.checks.one_file import one_file
from penstock.profiler.lint.checks.random_unkeyed import random_unkeyed
from penstock.profiler.lint.checks.sequential_interleave import sequential_interleave
from penstock.profiler.lint.checks.sequential_map import sequential_map
from penstock.profiler.lint.checks.shuffle_batches import shuffle_batches
from penstock.profiler.lint.checks.shuffle_decoded import shuffle_decoded
from penstock.profiler.lint.checks.shuffle_epochs import shuffle_epochs
from penstock.profiler.lint.checks.shuffle_small import shuffle_small
from penstock.profiler.lint.checks.shuffle_split import shuffle_split
from penstock.profiler.lint.checks.text_as_str import text_as_str
from penstock.profiler.lint.checks.uneven_shards import uneven_shards
from penstock.profiler.lint.checks.vectorise_batch import vectorise_batch
from penstock.profiler.lint.checks.widened_floats import widened_floats
from penstock.profiler.lint.inspection import Inspection

CHECKS: tuple[Check, ...] = (
    # what arrives may not be what is meant
    text_as_str,
    cache_random,
    cache_shuffled,
    random_unkeyed,
    shuffle_split,
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
    no_prefetch,
)


@question()
def lint(plan: Node, options: Options) -> Report:
    """The advice on a plan, what matters most first. No element is made: functions see stand-ins, or made-up values."""
    found = Inspection(plan, options)
    return Report(dict.fromkeys(advice for check in CHECKS for advice in check(found)))
