"""Compare AUTOTUNE with the best settings chosen by hand.

Ten endless pipelines run with AUTOTUNE for all settings: 3 s of warm-up, then 3 s of measurement. Each pipeline also
runs with each setting of a grid (`num_parallel_calls` 1, 2, 4, … on threads and in processes, `prefetch`) and
`Options.autotune.enabled = False`. A short run over the grid finds the best setting, and a second one if its rate is
within 10 % of the best. These settings and AUTOTUNE then run in rounds, each side in its own process. A ratio compares
AUTOTUNE's rate with the rate of the setting whose median in the other rounds is the best. Goal: at least 0.95. If the
consumer is slower than the pipeline, the rates hardly differ; compare the CPU columns there. tf.data with AUTOTUNE for
all settings runs once, for comparison.

AUTOTUNE does not read remembered settings, except in the last row. That row has the time until the rate reaches 0.95 of
its final value, for a run with remembered settings and for a run without them. The program takes about 25 minutes on
two cores.

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
    parser = arguments("AUTOTUNE and the best settings by hand")
    parser.add_argument("--workload", default="", metavar="TEXT", help="run only workloads whose names contain TEXT")
    chosen = parser.parse_args()
    if chosen.side:
        show({**sides_of(WORKLOADS), REMEMBERED: remembered_side}, chosen)
        sys.exit()
    timing = timing_of(chosen)
    questions = {workload.name: partial(against_grid, workload, timing, chosen.rounds) for workload in WORKLOADS}
    questions[REMEMBERED] = partial(remembered_row, REMEMBERED, timing, chosen.rounds)
    sys.exit(answer(ask for name, ask in questions.items() if chosen.workload.lower() in name.lower()))
