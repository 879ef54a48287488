"""Check: what every module of `checks` defines."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.inspection import Inspection

Check = Callable[[Inspection], Iterator[Advice]]
