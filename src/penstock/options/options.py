"""Options: what holds for a whole data set."""

from __future__ import annotations

from penstock.options.autotune import AutotuneOptions
from penstock.options.group import Group, Subgroup
from penstock.options.optimization import OptimizationOptions
from penstock.options.setting import Alias, Setting
from penstock.options.threading import ThreadingOptions


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
    autotune = Subgroup(AutotuneOptions)
    threading = Subgroup(ThreadingOptions)
    experimental_optimization = Subgroup(OptimizationOptions)

    experimental_deterministic = Alias[bool]("deterministic")
    experimental_threading = Alias[ThreadingOptions]("threading")


NOTHING_SET = Options()  # of every data set that nothing was set for: in use, and so frozen
NOTHING_SET._freeze()
