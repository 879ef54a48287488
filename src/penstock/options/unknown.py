"""What is said about a name that is no setting: why tf.data's does nothing here, or which one was meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.errors import UnknownNameError

if TYPE_CHECKING:
    from penstock.options.group import Group

WITHOUT_EFFECT = {
    "autotune.autotune_algorithm": "AUTOTUNE has one way to choose",
    "autotune.initial_parallelism": "AUTOTUNE begins with a worker for each core, or with what a former run found best",
    "experimental_distribute": "no data set is divided unasked: shard(num_shards, index) does it",
    "experimental_external_state_policy": "a checkpoint never holds what your functions keep for themselves",
    "experimental_service": "the framework that copies a batch to the device decides how memory is pinned",
    "experimental_slack": "buffers refill as they empty; autotune.cpu_budget leaves cores to the training step",
    "experimental_symbolic_checkpoint": "checkpoints hold positions and keys in any case, never elements",
    "framework_type": "nothing is reported to anybody",
    "threading.max_intra_op_parallelism": "an operation runs in the one worker that called it",
    "experimental_optimization.filter_parallelization": "a filter behind a parallel map runs on its workers anyway, "
    "by map_and_filter_fusion",
    "experimental_optimization.parallel_batch": "elements are copied into a batch many at a time, and behind a "
    "parallel map by its workers, by map_and_batch_fusion",
    "experimental_optimization.seq_interleave_prefetch": "interleave with num_parallel_calls reads its inputs ahead "
    "and keeps their order",
    "experimental_optimization.map_vectorization.use_choose_fastest": "a function runs by Block where that is known "
    "to be equal",
}  # tf.data's settings that are not here, each with the reason


def unknown(group: Group, name: str) -> UnknownNameError:
    """The error for a name that is no setting of `group`."""
    spelled = f"{group.path}.{name}".lstrip(".")
    reason = WITHOUT_EFFECT.get(spelled)
    if reason is not None:
        message = f"tf.data's {spelled} does nothing here, because {reason}."
        return UnknownNameError(message, hint="Leave it out.")
    message = f"{type(group).__name__} has no setting {name!r}."
    return UnknownNameError(message, hint=_hint(group, name))


def _hint(group: Group, name: str) -> str:
    """The setting that was meant: of this group, or of any other, or else all that there are."""
    here = [*group._settings, *group._below]
    import difflib

    close = difflib.get_close_matches(name, here, 1, cutoff=0.75)
    if close:
        return f"Did you mean {close[0]!r}?"
    paths = {path.rpartition(".")[2]: path for path in _paths(_root(group))}
    close = difflib.get_close_matches(name, paths, 1)
    if close:
        return f"Did you mean {paths[close[0]]!r}?"
    close = difflib.get_close_matches(name, here, 1)
    return f"Did you mean {close[0]!r}?" if close else f"Known are: {', '.join(sorted(here))}."


def _root(group: Group) -> type[Group]:
    """The class that holds all groups, which knows this one's."""
    from penstock.options.options import Options

    return Options


def _paths(kind: type[Group], lead: str = "") -> Iterator[str]:
    """All settings and groups as they are reached from Options, those nearest to it last."""
    for name, below in kind._below.items():
        yield from _paths(below.kind, f"{lead}{name}.")
    for name in (*kind._below, *kind._settings):
        yield lead + name
