"""Does AUTOTUNE give what the best settings by hand give?

Ten pipelines, endless, everything left to AUTOTUNE: run in for 3 s, then measured for 3 s more. The same with each
setting of a grid (`num_parallel_calls` 1, 2, 4, … on threads and in processes, `prefetch`), with
`Options.autotune.enabled = False`. A short pass over the grid finds the best; it, and one more if that comes within
10 % of it, then meet AUTOTUNE in rounds, every side in a process of its own. A ratio is that of rates of one round, to
the setting whose median in the other rounds is the best. Goal: at least 0.95. Where the consumer is the slow side its
rate hardly differs: read the CPU columns there. tf.data with everything AUTOTUNE runs once, for comparison.

What the tuner remembers is off, but for the last row: the time until the rate is 0.95 of what it is in the end, for a
run that was told by an earlier one, and for one that had to learn. Some 25 minutes on two cores.

    python benchmarks/autotune.py [--workload TEXT] [--rounds N] [--seconds S]
"""

from __future__ import annotations

import sys
from functools import partial

from _autotune.against_grid import against_grid, sides_of
from _autotune.alone import answer, arguments, show, timing_of
from _autotune.remembered import remembered_row, remembered_side
from _autotune.workloads import WORKLOADS

REMEMBERED = "remembered settings"

if __name__ == "__main__":
    parser = arguments("AUTOTUNE beside the best settings by hand")
    parser.add_argument("--workload", default="", metavar="TEXT", help="the workloads whose names contain it")
    chosen = parser.parse_args()
    if chosen.side:
        show({**sides_of(WORKLOADS), REMEMBERED: remembered_side}, chosen)
        sys.exit()
    timing = timing_of(chosen)
    questions = {workload.name: partial(against_grid, workload, timing, chosen.rounds) for workload in WORKLOADS}
    questions[REMEMBERED] = partial(remembered_row, REMEMBERED, timing, chosen.rounds)
    sys.exit(answer(ask for name, ask in questions.items() if chosen.workload.lower() in name.lower()))
