"""Options: what holds for a whole data set, with tf.data's names; and the one reader of environment variables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from penstock.settings import Alias, Group, Setting, Subgroup

if TYPE_CHECKING:
    from penstock.rewrite.phases import OptimizationOptions


def environment(name: str) -> str | None:
    """The value of `PENSTOCK_<name>`, or None; no other place reads the environment."""
    return os.environ.get(f"PENSTOCK_{name}") or None


class AutotuneOptions(Group):
    """What the engine may use: `Options.autotune`.

    >>> import penstock as ps
    >>> ps.Options(autotune={"cpu_budget": 2}).autotune
    AutotuneOptions(cpu_budget=2)
    """

    path = "autotune"

    enabled = Setting(bool, True, "Whether AUTOTUNE chooses. If not, it means one worker.")
    cpu_budget = Setting[int | None](
        int,
        None,
        "Workers that may be inside the pipeline at once, whatever num_parallel_calls says. By default there is no "
        "such bound: AUTOTUNE begins with the cores this process was granted, and uses more where functions wait.",
        least=1,
        hint="Leave it out to use the cores this process was granted.",
    )
    ram_budget = Setting[int | None](
        int,
        None,
        "Bytes that all buffers of a pass may hold together: shuffles, caches, batches and windows, and what is made "
        "ahead of the consumer, which gets the rest; each part may always hold one result. By default all passes of "
        "the process share half of the memory that was free when the first began.",
        least=1,
        hint="Give bytes, 1 << 30 for a gibibyte, or leave it out.",
    )
    min_parallelism = Setting[int | None](
        int,
        None,
        "Workers that AUTOTUNE uses at least, also on fewer cores: for functions that wait. cpu_budget wins over it.",
        least=1,
        hint="Leave it out to use the cores this process was granted.",
    )


class ThreadingOptions(Group):
    """Which threads do the work: `Options.threading`.

    >>> import penstock as ps
    >>> ps.Options(threading=ps.ThreadingOptions(private_threadpool_size=4)).threading
    ThreadingOptions(private_threadpool_size=4)
    """

    path = "threading"

    private_threadpool_size = Setting[int | None](
        int,
        None,
        "A pool of this many workers for each pass over this data set; 0 takes as many as the cores this process was "
        "granted. By default all data sets of the process share one pool.",
        least=0,
        hint="0 takes as many workers as there are cores; leave it out to share the process's pool.",
    )
    switch_interval = Setting[float | None](
        float,
        None,
        "Seconds after which a Python thread of this process makes way for one that waits, at most, while a pass over "
        "this data set is open: `sys.setswitchinterval`. By default it is measured: while workers wait as long as the "
        "interval to come back from a read or a codec, because a thread of yours computes in Python without pause, "
        "it is 0.0005. Python's own is 0.005, which leaves them a fifth of their speed; to give that leaves it alone.",
        above=0,
        hint="Leave it out to have it measured; 0.0005 is good beside threads that compute in Python.",
    )


def _optimization() -> type[OptimizationOptions]:
    from penstock.rewrite.phases import OptimizationOptions  # with all rules, of which only a pass has need

    return OptimizationOptions


class Options(Group):
    """What holds for a whole data set; apply with `ds.with_options(options)`.

    Settings have tf.data's names. They are given by keyword or by attribute; a group takes a dict, too. What is not
    set, or set to None, is left to the options of data sets that this one is joined with, and to the defaults.

    >>> options = Options(deterministic=False, autotune={"cpu_budget": 2})
    >>> options.experimental_optimization.map_fusion = False
    >>> options.autotune.cpu_budget, options.seed
    (2, 0)

    Raises UnknownNameError for an unknown name, with the nearest one that there is, and for settings of tf.data that
    mean nothing here, with the reason; InvalidTypeError for a value of another type; FrozenError for a
    change of options that a data set uses.
    """

    deterministic = Setting(bool, True, "Whether parallel steps keep the order, where they do not say so.")
    seed = Setting(int, 0, "What every shuffle without a seed of its own draws from.")
    dataset_name = Setting[str | None](str, None, "How explain() and the data set's repr call it.")
    experimental_warm_start = Setting(
        bool,
        False,
        "Whether workers begin when an iterator is made, and not with its first element.",
    )
    element_timeout = Setting[float | None](
        float,
        None,
        "Seconds that one call of a map's or filter's function may take; a call that takes longer is given up, and its "
        "element fails with an error that says where it was read. By default a call takes as long as it takes.",
        above=0,
        hint="Give seconds, as 30 or 0.5, or leave it out to wait as long as a call takes.",
    )
    second_writer = Setting(
        str,
        "share",
        "What a pass does when it comes to the end of what another process is still writing to the same cache or "
        'snapshot: "share" reads what that process commits, as it comes; "wait" waits until it has come to its end. '
        "Both go on in its place when it is gone.",
        one_of=("share", "wait"),
    )
    autocache = Setting[str | None](
        str,
        None,
        "Where a cache may be put without being asked for, if the first whole pass shows that it pays in later ones: "
        '"memory", "disk" (in the user\'s cache directory), or "auto" for the better of both. Elements and their order '
        "stay what they are: nothing random is kept, and no step left out of which more than its result can be seen. "
        "explain() says what it has come to. By default no cache is put anywhere.",
        one_of=("memory", "disk", "auto"),
        hint="Where a cache is to lie elsewhere, as behind a URL, say so in the pipeline: ds.cache('s3://bucket/features').",
    )
    zero_copy = Setting(
        bool,
        False,
        "Whether the loop may get views of the memory that elements come from: the arrays you gave, a mapped file, a "
        "cache. They cannot be written to, and show what you write into your arrays later. By default every array "
        "that a loop receives is its own, which costs a copy where it was not made for it.",
    )
    autotune = Subgroup(lambda: AutotuneOptions)
    threading = Subgroup(lambda: ThreadingOptions)
    experimental_optimization = Subgroup(_optimization, "Which rewrites run: `ps.experimental.OptimizationOptions`.")

    experimental_deterministic = Alias[bool]("deterministic")
    experimental_threading = Alias[ThreadingOptions]("threading")


Group._root = Options
NOTHING_SET = Options()  # of every data set that nothing was set for: in use, and so frozen
NOTHING_SET._freeze()
