"""Options: what holds for a whole data set, with tf.data's names; and the one reader of environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from penstock.settings import Alias, Group, Setting, Subgroup

if TYPE_CHECKING:
    from penstock.rewrite.phases import OptimizationOptions


def environment(name: str) -> str | None:
    """Return the value of `PENSTOCK_<name>`, or None. No other function reads the environment."""
    return os.environ.get(f"PENSTOCK_{name}") or None


_OWN_CORES = "Leave it out to use the cores this process was granted."


class AutotuneOptions(Group):
    """Resources that a data set may use: `Options.autotune`.

    Args:
        enabled: If True, `ps.AUTOTUNE` chooses the number of workers. If False, it means one worker. Default: True.
        cpu_budget: Largest number of workers that run a pipeline at the same time, whatever `num_parallel_calls` is. By
            default there is no limit: `ps.AUTOTUNE` starts with the cores of this process, and uses more workers for
            functions that wait.
        ram_budget: Largest number of bytes that all buffers of one iteration use together: shuffles, caches, batches,
            windows, and elements that are computed before the consumer needs them. Each buffer may hold at least one
            result. By default, all iterations of the process share half of the memory that was free when the first one
            began.
        min_parallelism: Smallest number of workers that `ps.AUTOTUNE` uses, even on fewer cores. Use it for functions
            that wait. `cpu_budget` takes precedence.
        **others: No other names are accepted.

    Raises:
        UnknownNameError: If a name is not a setting of this group.
        InvalidTypeError: If a value has another type.
        InvalidArgumentError: If a number is too small.

    Example:
        >>> import penstock as ps
        >>> ps.Options(autotune={"cpu_budget": 2}).autotune
        AutotuneOptions(cpu_budget=2)
    """

    path = "autotune"

    enabled = Setting(bool, True)
    cpu_budget = Setting[int | None](int, None, least=1, hint=_OWN_CORES)
    ram_budget = Setting[int | None](int, None, least=1, hint="Give bytes, 1 << 30 for a gibibyte, or leave it out.")
    min_parallelism = Setting[int | None](int, None, least=1, hint=_OWN_CORES)

    def __init__(
        self,
        *,
        enabled: bool | None = None,
        cpu_budget: int | None = None,
        ram_budget: int | None = None,
        min_parallelism: int | None = None,
        **others: Any,
    ) -> None:
        self._begin(locals())


class ThreadingOptions(Group):
    """Threads that run a data set: `Options.threading`.

    Args:
        private_threadpool_size: Number of threads of a pool that each iteration has for itself. 0 means the number of
            cores of this process. By default, all data sets of the process share one pool.
        switch_interval: Seconds before a Python thread of this process gives up the GIL, while this data set is
            iterated: `sys.setswitchinterval`. Python's default is 0.005, which slows workers down to a fifth if a
            thread of yours computes in Python without pause. By default, penstock measures how long workers wait for
            the GIL, and sets 0.0005 if they wait for the whole interval. Set 0.005 to keep Python's default.
        **others: No other names are accepted.

    Raises:
        UnknownNameError: If a name is not a setting of this group.
        InvalidTypeError: If a value has another type.
        InvalidArgumentError: If a number is too small.

    Example:
        >>> import penstock as ps
        >>> ps.Options(threading=ps.ThreadingOptions(private_threadpool_size=4)).threading
        ThreadingOptions(private_threadpool_size=4)
    """

    path = "threading"

    private_threadpool_size = Setting[int | None](
        int,
        None,
        least=0,
        hint="0 takes as many workers as there are cores; leave it out to share the process's pool.",
    )
    switch_interval = Setting[float | None](
        float,
        None,
        above=0,
        hint="Leave it out to have it measured; 0.0005 is good beside threads that compute in Python.",
    )

    def __init__(
        self, *, private_threadpool_size: int | None = None, switch_interval: float | None = None, **others: Any
    ) -> None:
        self._begin(locals())


def _optimization() -> type[OptimizationOptions]:
    from penstock.rewrite.phases import OptimizationOptions  # with all rules, of which only a pass has need

    return OptimizationOptions


class Options(Group):
    """Settings of a data set, with tf.data's names. Apply them with `Dataset.with_options`.

    Set a value as a keyword argument or as an attribute. A setting that is None or was never set keeps its default, or
    the value that another `with_options` call sets. An `Options` object is frozen once a data set uses it.

    Args:
        deterministic: If True, parallel steps keep the order of the elements, unless a step has an argument of its own.
            Default: True.
        seed: Seed of all random numbers of the data set, unless a step has a seed of its own. Default: 0.
        dataset_name: Name of the data set in `explain()` and in its repr.
        experimental_warm_start: If True, workers start when an iterator is created, not when the first element is
            requested. Default: False.
        element_timeout: Seconds that one call of a function of `map` or `filter` may take. penstock abandons a call
            that takes longer. Its element fails with an error that names where it was read. By default, there is no
            limit.
        second_writer: Behaviour of an iteration that reaches the end of a cache or snapshot that another process is
            still writing. `"share"`: read each part that the other process commits. `"wait"`: wait until the other
            process has finished. In both cases, this iteration continues writing if the other process is gone. Default:
            `"share"`.
        autocache: Place of a cache that penstock may add, if the first full epoch shows that later epochs get faster:
            `"memory"`, `"disk"` (in the cache directory of the user), or `"auto"` for the better of both. The elements
            and their order stay the same: penstock caches no random elements, and no step that has side effects.
            `explain()` reports the decision. By default, penstock adds no cache.
        zero_copy: If True, the arrays of an element may be views of the memory they come from: your own arrays, a
            mapped file, or a cache. Views are read-only, and show what you later write into your arrays. By default,
            the consumer owns every array, which costs a copy if the array was not computed for the consumer.
        autotune: Resources that the data set may use: an `AutotuneOptions` object, or a dict of its settings.
        threading: Threads that run the data set: a `ThreadingOptions` object, or a dict of its settings.
        experimental_optimization: Rewrites of the plan: a `ps.experimental.OptimizationOptions` object, or a dict.
        experimental_deterministic: Another name of `deterministic`.
        experimental_threading: Another name of `threading`.
        **others: No other names are accepted. The error suggests the nearest name, or explains why a setting of tf.data
            has no effect here.

    Raises:
        UnknownNameError: If a name is not a setting.
        InvalidTypeError: If a value has another type.
        InvalidArgumentError: If a number is too small, or a string is not an allowed value.
        FrozenError: If an attribute is set after a data set has used the options.

    Example:
        >>> import penstock as ps
        >>> options = ps.Options(deterministic=False, autotune={"cpu_budget": 2})
        >>> options.experimental_optimization.map_fusion = False
        >>> options.autotune.cpu_budget, options.seed
        (2, 0)
    """

    deterministic = Setting(bool, True)
    seed = Setting(int, 0)
    dataset_name = Setting[str | None](str, None)
    experimental_warm_start = Setting(bool, False)
    element_timeout = Setting[float | None](
        float, None, above=0, hint="Give seconds, as 30 or 0.5, or leave it out to wait as long as a call takes."
    )
    second_writer = Setting(str, "share", one_of=("share", "wait"))
    autocache = Setting[str | None](
        str,
        None,
        one_of=("memory", "disk", "auto"),
        hint="For a cache in another place, such as a URL, name it in the pipeline: ds.cache('s3://bucket/features').",
    )
    zero_copy = Setting(bool, False)
    autotune = Subgroup(lambda: AutotuneOptions)
    threading = Subgroup(lambda: ThreadingOptions)
    experimental_optimization = Subgroup(_optimization, "Rewrites of the plan: `ps.experimental.OptimizationOptions`.")

    experimental_deterministic = Alias[bool]("deterministic")
    experimental_threading = Alias[ThreadingOptions]("threading")

    def __init__(
        self,
        *,
        deterministic: bool | None = None,
        seed: int | None = None,
        dataset_name: str | None = None,
        experimental_warm_start: bool | None = None,
        element_timeout: float | None = None,
        second_writer: Literal["share", "wait"] | None = None,
        autocache: Literal["memory", "disk", "auto"] | None = None,
        zero_copy: bool | None = None,
        autotune: AutotuneOptions | Mapping[str, Any] | None = None,
        threading: ThreadingOptions | Mapping[str, Any] | None = None,
        experimental_optimization: OptimizationOptions | Mapping[str, Any] | None = None,
        experimental_deterministic: bool | None = None,
        experimental_threading: ThreadingOptions | Mapping[str, Any] | None = None,
        **others: Any,
    ) -> None:
        self._begin(locals())


Group._root = Options
NOTHING_SET = Options()  # of every data set that nothing was set for: in use, and so frozen
NOTHING_SET._freeze()
