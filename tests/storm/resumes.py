"""A saved iteration continues with exactly the remaining elements, wherever and however it is resumed."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from tests.generated import folder
from tests.storm.pipelines import (
    EPOCHS,
    MOST,
    difference,
    executors,
    pipeline_of,
    tokens,
    wanted_of,
    wipe,
    with_parallel_calls,
)
from tests.storm.worker import Worker, Wrong

import penstock as ps

SECONDS = 60.0  # for one iteration in a fresh process
_PLACES = 4  # positions of a pipeline


def resumes(seed: int) -> None:
    """Resume with the numbers of parallel calls of the saved iteration."""
    _case(seed, moved=False)


def moves(seed: int) -> None:
    """Resume with other numbers of parallel calls, as on a machine of another size."""
    _case(seed, moved=True)


def _case(seed: int, *, moved: bool) -> None:
    rng = Random(seed)
    pipeline = pipeline_of(seed)
    epoch = rng.choice(EPOCHS)
    wanted = wanted_of(pipeline.dataset, epoch)
    for _ in range(_PLACES):
        chosen = executors(rng, 4)[:3]
        parallel = [rng.getrandbits(32) if moved else None for _ in range(3)]
        place = rng.choice([0, rng.randint(0, len(wanted)), rng.randint(0, len(wanted)), len(wanted)])
        again = rng.randint(place, len(wanted))
        where = (
            f"{pipeline.text}\n  epoch {epoch}, {chosen}, parallel calls of {parallel}, saved at {place} and {again}"
        )
        state = _part(seed, parallel[0], chosen[0], epoch, None, wanted[:place], where)
        if rng.random() < 0.5:
            wipe()
            where += ", wiped"
        state = _part(seed, parallel[1], chosen[1], epoch, state, wanted[place:again], where)
        ends = len(wanted) < MOST
        if rng.random() < 0.5:
            wrong = fresh().ask(
                *("tests.storm.resumes:rest", seed, parallel[2], chosen[2], state, wanted[again:], ends),
                seconds=SECONDS,
                fork=True,
            )
            where += ", then in a fresh process"
        else:
            wrong = rest(seed, parallel[2], chosen[2], state, wanted[again:], ends)
        if wrong:
            raise Wrong(f"behind the second state {wrong}\n  {where}")


def _dataset(seed: int, parallel: int | None) -> ps.Dataset:
    dataset = pipeline_of(seed).dataset
    return dataset if parallel is None else with_parallel_calls(dataset, Random(parallel))


def _part(seed: int, parallel: int | None, executor: str, epoch: int, state: Any, wanted: list[str], where: str) -> Any:
    """Return the given number of elements, from a state on if there is one, and the state after them."""
    with _dataset(seed, parallel).iterator(epoch=epoch, executor=executor) as elements:
        try:
            if state is not None:
                elements.load_state_dict(state)
            found = [token for _, token in zip(wanted, _tokens(elements), strict=False)]
            wrong = difference(found, wanted)
            if wrong is None:
                return json.loads(json.dumps(elements.state_dict()))
        except Exception as raised:
            raise Wrong(f"{type(raised).__name__}: {raised}\n  {where}") from raised
    raise Wrong(f"{'before the first' if state is None else 'between the'} state {wrong}\n  {where}")


def _tokens(elements: Any) -> Any:
    for element in elements:
        yield from tokens([element])


def rest(seed: int, parallel: int | None, executor: str, state: Any, wanted: list[str], ends: bool) -> str | None:
    """Return the fault of the elements after a state, or None."""
    with _dataset(seed, parallel).iterator(executor=executor) as elements:
        elements.load_state_dict(state)
        found = tokens(elements) if ends else [token for _, token in zip(wanted, _tokens(elements), strict=False)]
    return difference(found, wanted)


_fresh: list[Worker] = []


def fresh() -> Worker:
    """Start a process with other hashes; iterations continue in its forks."""
    if not _fresh:
        _fresh.append(Worker(Path(folder()).parent / "fresh"))
    return _fresh[0]
