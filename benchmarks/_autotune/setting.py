"""Settings of a pipeline, by hand or by AUTOTUNE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

AUTOTUNE = -1


@dataclass(frozen=True)
class Setting:
    """Values for `num_parallel_calls` (None: not parallel), `executor` and `prefetch`. The default is AUTOTUNE."""

    parallel: int | None = AUTOTUNE
    executor: str = "auto"
    prefetch: int = AUTOTUNE

    @property
    def name(self) -> str:
        if self == AUTO:
            return "AUTOTUNE"
        ahead = "" if self.prefetch == AUTOTUNE else f", prefetch({self.prefetch})"
        if self.parallel is None:
            return f"not parallel{ahead}"
        one, many = ("process", "processes") if self.executor == "process" else ("thread", "threads")
        return f"{self.parallel} {one if self.parallel == 1 else many}{ahead}"

    @property
    def calls(self) -> dict[str, Any]:
        """Return the arguments for `map`."""
        return {"num_parallel_calls": self.parallel, "executor": self.executor}

    def on(self, dataset: Any) -> Any:
        """Append the prefetch and the options of this setting to the data set."""
        import penstock as ps

        ahead = dataset.prefetch(self.prefetch)
        return ahead if self == AUTO else ahead.with_options(ps.Options(autotune={"enabled": False}))


AUTO = Setting()


def threads(*numbers: int) -> tuple[Setting, ...]:
    return tuple(Setting(number, "thread") for number in numbers)


def processes(*numbers: int) -> tuple[Setting, ...]:
    return tuple(Setting(number, "process") for number in numbers)


def sequential(*prefetches: int) -> tuple[Setting, ...]:
    """Return settings without parallel calls. With a prefetch, one worker runs the whole pipeline."""
    return tuple(Setting(None, "auto", prefetch) for prefetch in prefetches)
