"""A training loop that is killed repeatedly sees exactly the epochs of an undisturbed one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import time
from pathlib import Path
from random import Random
from typing import Any

from tests.generated import folder
from tests.generated.storing import entries
from tests.storm.pipelines import MOST, executors, pipeline_of, tokens, wanted_of
from tests.storm.resumes import SECONDS, fresh
from tests.storm.worker import GROUP, Skipped, Worker, Wrong, members

import penstock as ps

_EPOCHS = 2
_KILLS = 4
_PATIENCE = 10.0  # seconds until objects of a killed process have to be gone
_SHARED = Path("/dev/shm")


def kills(seed: int) -> None:
    """Run loops over two epochs with checkpoints, over caches and snapshots, in forks that are killed at any moment."""
    rng = Random(seed)
    dataset = _dataset(seed)
    wanted = [[_digest(token) for token in wanted_of(dataset, epoch)] for epoch in range(_EPOCHS)]
    if any(len(epoch) == MOST for epoch in wanted):
        raise Skipped("an epoch of more elements than are looked at")
    place = Path(folder()) / f"loop-{seed}-{time.monotonic_ns()}"
    place.mkdir()
    every, most = rng.choice((1, 3, 10)), rng.choice((0.05, 0.3, 1.0))
    before = _shared()
    said = f"{dataset!r}"
    for _ in range(_KILLS):
        (executor,) = executors(rng, 1)
        _killed(fresh(), rng.uniform(0.0, most), seed, executor, every, str(place))
    (executor,) = executors(rng, 1)
    where = f"{pipeline_of(seed).text}\n  {said:.200}\n  a checkpoint every {every}, the last on {executor}"
    try:
        fresh().ask("tests.storm.kills:loop", seed, executor, every, str(place), seconds=SECONDS, fork=True)
        _check(place / "log", wanted)
    except Wrong as raised:
        raise Wrong(f"{raised}\n  {where}") from raised
    if left := _shared() - before:
        raise Wrong(f"shared memory is left: {sorted(left)}\n  {where}")


def _dataset(seed: int) -> ps.Dataset:
    """Build a random pipeline, usually with a cache or a snapshot in it."""
    found = pipeline_of(seed, 5).dataset
    match Random(seed).randrange(4):
        case 0:
            return found
        case 1:
            return found.cache(entries()).shuffle(5)
        case 2:
            return found.snapshot(entries())
        case _:
            return found.snapshot(entries()).prefetch(3).cache(entries())


def loop(seed: int, executor: str, every: int, place: str) -> None:
    """Run a training program: resume from its checkpoint, if there is one, and write others."""
    saved = Path(place) / "checkpoint"
    at: dict[str, Any] = json.loads(saved.read_text()) if saved.exists() else {"epoch": 0, "given": 0, "state": None}
    log = os.open(Path(place) / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    dataset = _dataset(seed)
    while at["epoch"] < _EPOCHS:
        with dataset.iterator(epoch=at["epoch"], executor=executor) as elements:
            if at["state"] is not None:
                elements.load_state_dict(at["state"])
            for element in elements:
                (token,) = tokens([element])
                os.write(log, f"{at['epoch']} {at['given']} {_digest(token)}\n".encode())
                at["given"] += 1
                if at["given"] % every == 0:
                    at["state"] = elements.state_dict()
                    _replace(saved, at)
            os.write(log, f"{at['epoch']} {at['given']} end\n".encode())
        at = {"epoch": at["epoch"] + 1, "given": 0, "state": None}
        _replace(saved, at)


def _replace(path: Path, content: Any) -> None:
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(content))
    unfinished.replace(path)


def _digest(token: str) -> str:
    return hashlib.blake2b(token.encode(), digest_size=8).hexdigest()


def _killed(worker: Worker, after: float, *args: Any) -> None:
    """Run the loop in a fork, which is killed after some time unless it has ended. Check that nothing of it stays."""
    pid = worker.begin("tests.storm.kills:loop", *args, fork=True)
    time.sleep(after)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    try:
        worker.answer(SECONDS)
    except Wrong as raised:
        if str(raised) != f"the fork ended with -{signal.SIGKILL:d}":
            raise
    deadline = time.monotonic() + _PATIENCE
    while left := members(pid, GROUP):
        if time.monotonic() > deadline:
            raise Wrong(f"processes {left} are left of one that was killed")
        time.sleep(0.02)


def _shared() -> set[str]:
    return {path.name for path in _SHARED.glob("*penstock*")}


def _check(log: Path, wanted: list[list[str]]) -> None:
    seen: set[tuple[int, int]] = set()
    for line in log.read_text().splitlines():
        epoch, number, digest = line.split()
        place = int(epoch), int(number)
        whole = [*wanted[place[0]], "end"]
        if whole[place[1] : place[1] + 1] != [digest]:
            raise Wrong(f"element {number} of epoch {epoch}, which has {len(whole) - 1}, is another than without kills")
        seen.add(place)
    missing = {(epoch, number) for epoch, one in enumerate(wanted) for number in range(len(one) + 1)} - seen
    if missing:
        raise Wrong(f"{len(missing)} elements never came, such as {min(missing)}")
