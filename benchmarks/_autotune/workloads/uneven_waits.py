"""Elements with a wait of 2 ms, one in a hundred of them 50 times as long."""

from __future__ import annotations

import time
from typing import Any

from _autotune.setting import Setting
from _autotune.workloads.skew import SLOWER, is_slow

SECONDS = 0.002


def waited(number: Any) -> Any:
    time.sleep(SECONDS * SLOWER if is_slow(int(number)) else SECONDS)
    return number


def penstock(setting: Setting, *, ordered: bool) -> Any:
    import penstock as ps

    return setting.on(ps.Dataset.range(1 << 20).repeat().map(waited, **setting.calls, deterministic=ordered))
