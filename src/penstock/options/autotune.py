"""AutotuneOptions: what the engine may use where it is left to choose."""

from __future__ import annotations

from penstock.options.group import Group
from penstock.options.setting import Setting


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
        "Workers that may be inside the pipeline at once, whatever num_parallel_calls says; AUTOTUNE uses all of "
        "them. By default there is no such bound, and AUTOTUNE uses the cores this process was granted.",
        least=1,
        hint="Leave it out to use the cores this process was granted.",
    )
    ram_budget = Setting[int | None](
        int,
        None,
        "Bytes that all parts of the pipeline together may make ahead of the consumer; each may always hold one "
        "result. Buffers of a size you gave (shuffle, batch) are not counted. By default each part may hold 64 MiB.",
        least=1,
        hint="Give bytes, 1 << 30 for a gibibyte, or leave it out for 64 MiB in each part of the pipeline.",
    )
    min_parallelism = Setting[int | None](
        int,
        None,
        "Workers that AUTOTUNE uses at least, also on fewer cores: for functions that wait. cpu_budget wins over it.",
        least=1,
        hint="Leave it out to use the cores this process was granted.",
    )
