"""ThreadingOptions: which threads do the work."""

from __future__ import annotations

from penstock.options.group import Group
from penstock.options.setting import Setting


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
