"""The elements do not depend on the executor, the number of workers, or the time of each call."""

from __future__ import annotations

from random import Random

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
from tests.storm.resumes import SECONDS, fresh
from tests.storm.worker import Wrong

_PASSES = 5


def orders(seed: int) -> None:
    """Iterate on each executor, with any numbers of parallel calls, here and in a process with other hashes."""
    rng = Random(seed)
    pipeline = pipeline_of(seed)
    epoch = rng.choice(EPOCHS)
    wanted = wanted_of(pipeline.dataset, epoch)
    for executor in executors(rng, _PASSES):
        parallel = rng.getrandbits(32)
        where = f"{pipeline.text}\n  epoch {epoch} on {executor}, parallel calls of {parallel}"
        if rng.random() < 0.5:
            wipe()
        try:
            if rng.random() < 0.3:
                args = seed, epoch, executor, parallel
                where += ", in a fresh process"
                found = fresh().ask("tests.storm.orders:whole", *args, seconds=SECONDS, fork=True)
            else:
                found = whole(seed, epoch, executor, parallel)
        except Exception as raised:
            raise Wrong(f"{type(raised).__name__}: {raised}\n  {where}") from raised
        wrong = difference(found, wanted)
        if wrong:
            raise Wrong(f"{wrong}\n  {where}")


def whole(seed: int, epoch: int, executor: str, parallel: int) -> list[str]:
    """Return the tokens of an iteration."""
    dataset = with_parallel_calls(pipeline_of(seed).dataset, Random(parallel))
    with dataset.iterator(epoch=epoch, executor=executor) as elements:
        found = tokens(elements)
        if len(found) < MOST and next(elements, None) is not None:
            raise Wrong("an element came behind the end")
        return found
