"""`python -m tests.storm`: random cases of every class until the time is over. Exit code 1 if any case was wrong."""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.storm.pipelines import EXECUTOR
from tests.storm.worker import Skipped, Worker, Wrong

CASE = 180.0  # seconds until a case counts as hanging
SHOWN = 5  # failures of a class that are printed in full
FRESH = 200  # cases after which a process is replaced


@dataclass(eq=False)
class Storm:
    """One class of cases: the function that runs a case by its number, and the results."""

    name: str
    call: str
    weight: float = 1.0
    cases: int = 0
    skipped: int = 0
    seconds: float = 0.0
    failed: list[int] = field(default_factory=list)

    def report(self) -> str:
        said = f"{self.name:<10} {self.cases:>7} cases {len(self.failed):>5} wrong {self.skipped:>5} skipped"
        return f"{said} {self.seconds:>7.0f} s"


def storms() -> list[Storm]:
    """Return every class; a larger weight gets more time."""
    return [
        Storm("resumes", "tests.storm.resumes:resumes", 2),
        Storm("moves", "tests.storm.resumes:moves"),
        Storm("orders", "tests.storm.orders:orders"),
        Storm("damage", "tests.storm.damage:damage"),
        Storm("states", "tests.storm.states:states", 0.5),
        Storm("kills", "tests.storm.kills:kills"),
        Storm("leaks", "tests.storm.leaks:leaks", 0.5),
    ]


class Session:
    """Chooses the next case for each worker until the time is over. Thread-safe."""

    def __init__(self, chosen: list[Storm], seed: int, seconds: float, most: int | None, folder: Path) -> None:
        self.seed = seed
        self._storms = chosen
        self._deadline = time.monotonic() + seconds
        self._most = most
        self._folder = folder
        self._lock = threading.Lock()

    def run(self, jobs: int) -> None:
        threads = [threading.Thread(target=self._work, args=(number,)) for number in range(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self, number: int) -> None:
        workers: dict[str, Worker] = {}
        done = 0
        try:
            while (found := self._next()) is not None:
                storm, seed = found
                worker = workers.setdefault(storm.name, Worker(self._folder / f"{storm.name}-{number}"))
                self.case(storm, seed, worker)
                done += 1
                if done % FRESH == 0:
                    worker.kill()
        finally:
            for worker in workers.values():
                worker.kill()

    def _next(self) -> tuple[Storm, int] | None:
        with self._lock:
            left = [storm for storm in self._storms if self._most is None or storm.cases < self._most]
            if not left or time.monotonic() > self._deadline:
                return None
            storm = min(left, key=lambda storm: storm.seconds / storm.weight)
            storm.cases += 1
            text = f"{self.seed} {storm.name} {storm.cases}"
            return storm, int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big")

    def case(self, storm: Storm, seed: int, worker: Worker) -> None:
        """Run one case and return the message about it."""
        started = time.monotonic()
        try:
            worker.ask(storm.call, seed, seconds=CASE)
        except Skipped:
            storm.skipped += 1
        except Wrong as raised:
            with self._lock:
                storm.failed.append(seed)
                if len(storm.failed) <= SHOWN:
                    print(f"\n{storm.name} {seed}: {raised}")
                print(f"  again: python -m tests.storm {storm.name}:{seed}", flush=True)
        with self._lock:
            storm.seconds += time.monotonic() - started


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.storm", description=__doc__)
    parser.add_argument("again", nargs="*", metavar="CLASS:NUMBER", help="single cases, as a failure names them")
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("STORM_MINUTES") or 30))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("STORM_SEED") or random.randrange(1 << 32)))
    parser.add_argument("--only", default="", help="classes, with commas")
    parser.add_argument("--cases", type=int, help="of each class at most")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time")
    parser.add_argument("--executor", help="the only one of resumes, moves and orders: inline, thread, process or auto")
    parser.add_argument("--times", type=int, default=1, help="how often to run each of the single cases")
    told = parser.parse_args(arguments)
    if told.executor:
        os.environ[EXECUTOR] = told.executor
    known = {storm.name: storm for storm in storms()}
    if unknown := {name.partition(":")[0] for name in [*filter(None, told.only.split(",")), *told.again]} - {*known}:
        parser.error(f"no class is called {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = [known[name] for name in known if not told.only or name in told.only.split(",")]
    with tempfile.TemporaryDirectory(prefix="penstock-storm-", ignore_cleanup_errors=True) as folder:
        session = Session(chosen, told.seed, told.minutes * 60, told.cases, Path(folder))
        if told.again:
            chosen = _again(session, known, told.again, told.times, Path(folder))
        else:
            print(
                f"STORM_SEED={told.seed}, {told.minutes:g} minutes for {', '.join(s.name for s in chosen)}", flush=True
            )
            session.run(told.jobs)
    print()
    for storm in chosen:
        print(storm.report())
    return 1 if any(storm.failed for storm in chosen) else 0


def _again(session: Session, known: dict[str, Storm], cases: list[str], times: int, folder: Path) -> list[Storm]:
    found: list[Storm] = []
    for case in cases:
        name, _, number = case.partition(":")
        storm = known[name]
        if storm not in found:
            found.append(storm)
        worker = Worker(folder / name)
        for _ in range(times):
            storm.cases += 1
            session.case(storm, int(number), worker)
        worker.kill()
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
