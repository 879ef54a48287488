"""Figures of pipelines that never ran, for tests of conclusions."""

from dataclasses import replace

from penstock.profiler.analysis.figures import LOOP, Analysis, LaneFigures, Step
from penstock.profiler.analysis.model import rate


def step(name, lane=LOOP, *, args="", inputs=(), **costs):
    kind = name.rpartition("/")[2].partition("#")[0]
    return Step(name, f"{kind}({args})" if args else kind, kind, lane, inputs=inputs, **costs)


def analysis(*steps, lanes=(), reached=1.0, cpus=2.0, lock=True, **more):
    """Build an analysis whose measured rate is `reached` times the model's rate."""
    more.setdefault("consumer_waited", 0.0 if more.get("consumer_seconds") else 1.0)
    found = Analysis(
        steps, (LaneFigures(LOOP), *lanes), cpus, lock, seconds=4.0, elements=0, elements_per_second=0.0, **more
    )
    given = reached * rate(found)
    steps = tuple(replace(each, elements=4 * each.ratio * given, per_second=each.ratio * given) for each in steps)
    return replace(found, steps=steps, elements=round(4 * given), elements_per_second=given, memory=8 << 30)


def serial(lane=LOOP, **more):
    """Run everything in one thread: a read that waits, a Python function, an operation that releases the lock."""
    work = {"parallel": lane != LOOP, "ratio": 32.0}
    read = {"ratio": 32.0, "cpu": 1e-5, "waiting": 1e-4, "nbytes": 6e4, "held": 1e-5}
    return analysis(
        step("TFRecordDataset#1", lane, args="train.tfrecord", **read),
        step("map#1", lane, args="decode", inputs=("TFRecordDataset#1",), **work, cpu=2e-3, held=1e-4, nbytes=6e5),
        step("map#2", lane, args="tokenise", inputs=("map#1",), **work, cpu=1e-3, held=1e-3, nbytes=1e3),
        step("batch#1", lane, args="32", inputs=("map#2",), parallel=lane != LOOP, cpu=4e-4, held=4e-4, nbytes=3.2e4),
        handing=1e-5,
        **more,
    )


def idle():
    """Build steps of almost no cost; the consumer takes batches."""
    return analysis(
        step("range#1", args="0, 300, 1", ratio=10.0, cpu=1e-8),
        step("batch#1", args="10", inputs=("range#1",), cpu=1e-6, nbytes=80.0),
        handing=2e-4,
    )


def parallel(*, executor="thread", workers=2, autotuned=True, **more):
    """Build the same with both maps, and the batch, on workers."""
    made = {"starved": 0.97, "busy": 2.0, "held_bytes": 64_000, "window": 1 << 26}
    return serial("batch#1", lanes=(LaneFigures("batch#1", LOOP, workers, executor, autotuned, **made),), **more)


def caching(*, full=False):
    """Build an expensive function, a cache after it, which this iteration fills or reads, and a cheaper function."""
    work = {"ratio": 32.0, "nbytes": 1e3}
    found = analysis(
        step("range#1", args="0, 100, 1", **work, cpu=0 if full else 1e-6),
        step("map#1", args="decode", inputs=("range#1",), **work, cpu=0 if full else 4e-3),
        step("cache#1", inputs=("map#1",), **work, cpu=1e-6),
        step("map#2", args="augment", inputs=("cache#1",), **work, cpu=1e-3),
        step("batch#1", args="32", inputs=("map#2",), cpu=1e-4, nbytes=3.2e4),
    )
    if not full:
        return found
    idle = {"range#1", "map#1"}
    steps = (replace(each, elements=0.0, per_second=0.0) if each.name in idle else each for each in found.steps)
    return replace(found, steps=tuple(steps))


def python(*, workers=2, **more):
    """Build a Python function on workers, which hold the lock in turn."""
    return analysis(
        step("range#1", "map#1", args="0, 100, 1", cpu=1e-6, held=1e-6, nbytes=8),
        step("map#1", "map#1", args="tokenise", inputs=("range#1",), parallel=True, cpu=5e-3, held=5e-3, nbytes=1e3),
        lanes=(LaneFigures("map#1", LOOP, workers, autotuned=True, starved=1.0, busy=2.0, window=1 << 26),),
        epoch_elements=100,
        **more,
    )


def reading(*, parallel=False, **more):
    """Build slow remote files, read in turn."""
    lane = "interleave#1 inputs" if parallel else LOOP
    merged = {"args": "TFRecordDataset, cycle_length=16", "cpu": 2e-5, "nbytes": 1e3, "cycle": 16}
    return analysis(
        step("list_files#1", args="100 files", ratio=0.001, cpu=1e-6, nbytes=30),
        step("interleave#1/TFRecordDataset", lane, parallel=parallel, cpu=1e-5, waiting=5e-3, nbytes=1e3),
        step("interleave#1", inputs=("list_files#1",), **merged),
        step("map#1", args="decode", inputs=("interleave#1",), cpu=1e-4, nbytes=2e3),
        lanes=(LaneFigures(lane, LOOP, 2, autotuned=True, starved=0.9),) if parallel else (),
        **more,
    )


def copying():
    """Build large elements, which the consumer gets one by one."""
    return analysis(step("range#1", cpu=1e-5, nbytes=4e6), handing=4e-4, copy_speed=1e10)
