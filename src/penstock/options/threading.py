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
        "Seconds after which a Python thread of this process makes way for one that waits, while a pass over this data "
        "set is open: `sys.setswitchinterval`. By default nothing is changed, and it is 0.005. Where your own threads "
        "compute in Python without pause, workers wait so long after each read and each codec; 0.0005 gives them their "
        "share for some per cent of your threads' time.",
        above=0,
        hint="0.0005 is a good value beside threads that compute in Python all the time.",
    )
