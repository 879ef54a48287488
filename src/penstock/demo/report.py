"""`DemoReport`: the printed output of the demo."""

from __future__ import annotations

import math
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from penstock.demo.loop import Epoch, TrainingRun


class DemoReport:
    """Prints each epoch at its end, and finally a comparison of both runs."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)

    def say(self, line: str) -> None:
        """Print one line of rich markup."""
        self._console.print(line)

    def begin(self, title: str, steps: str) -> Callable[[int, Epoch], None]:
        """Print the heading of a run, and return the function to call after each epoch."""
        self.say(f"\n[bold]{title}[/bold]  [dim]{steps}[/dim]")
        self.say("[dim]  epoch     time   first batch   waiting for data     loss   accuracy[/dim]")
        return self._epoch

    def _epoch(self, number: int, epoch: Epoch) -> None:
        share = f"{epoch.waiting_share:.1%}"
        loss, accuracy = _figure(epoch.loss, ".4f"), _figure(epoch.accuracy, ".1%")
        times = f"{epoch.seconds:>6.2f} s {epoch.first_batch:>11.2f} s"
        self.say(f"  {number + 1:>5} {times} {share:>18} {loss:>8} {accuracy:>10}")

    def compare(self, naive: TrainingRun, pipelined: TrainingRun) -> bool:
        """Print both runs and the result. Return True if the runs agree, as they must."""
        self.say("")
        table = Table()
        table.add_column("")
        for run in (naive, pipelined):
            table.add_column(run.title, justify="right")
        both = (naive, pipelined)
        table.add_row("training, all epochs", *(f"{run.seconds:.2f} s" for run in both))
        table.add_row("of it waiting for data", *(f"{run.waiting / run.seconds:.1%}" for run in both))
        table.add_row("waiting, first batches left out", *(f"{_behind_first(run):.1%}" for run in both))
        table.add_row("first epoch", *(f"{run.epochs[0].seconds:.2f} s" for run in both))
        table.add_row("last epoch", *(f"{run.epochs[-1].seconds:.2f} s" for run in both))
        table.add_row("waiting in the last epoch", *(f"{run.epochs[-1].waiting_share:.1%}" for run in both))
        table.add_row("accuracy, held-out pictures", *(_figure(run.epochs[-1].accuracy, ".2%") for run in both))
        self._console.print(table)
        self.say(f"[bold]{naive.seconds / pipelined.seconds:.1f} times as fast.[/bold]")
        return self._agreement(naive, pipelined)

    def _agreement(self, naive: TrainingRun, pipelined: TrainingRun) -> bool:
        trained = not math.isnan(naive.epochs[0].loss)
        same_results = [(e.loss, e.accuracy) for e in naive.epochs] == [(e.loss, e.accuracy) for e in pipelined.epochs]
        if naive.digest != pipelined.digest:
            self.say("[bold red]The batches differ between the two runs. That is a bug in penstock: please report it.")
            return False
        if trained and not same_results:
            self.say("[bold red]The batches are the same, but the results differ: this numpy does not repeat itself.")
            return False
        results = ", so loss and accuracy are the same to the last digit" if trained else ""
        self.say(f"Both got the same batches in the same order{results}.")
        return True


def _behind_first(run: TrainingRun) -> float:
    """Return the share of waiting without the first batch of each epoch."""
    return (run.waiting - run.first_batches) / (run.seconds - run.first_batches)


def _figure(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)
