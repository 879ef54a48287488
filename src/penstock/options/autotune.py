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
