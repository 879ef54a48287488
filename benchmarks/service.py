"""Measure the cost of computing elements in worker processes of the service.

Each pipeline runs with `distribute()` and without it, or is compared with other services. The sides take turns in one
run:

    - waiting: each element sleeps 5 ms, on 1, 2, 4 and 8 workers. Efficiency is the rate divided by the rate of the
      sleeps alone in this process, times workers. Goal: ≥ 0.95.
    - computing: each element is 1 ms of plain Python, on one worker, compared with the consumer's thread. Goal: ≥ 0.8
      of its rate.
    - sorting: each element sorts 100,000 numbers without the GIL, on as many workers as there are cores, compared with
      as many threads. Goal: ≥ 0.8 of their rate.
    - moving: batches of 19 MB, each filled by one function, on one worker, compared with threads. Goal: ≥ 0.8 of their
      rate.
    - moving on Ray: the same batches, by one actor, compared with a plain actor of Ray that computes them, with as many
      calls ahead. Both actors are new for each iteration. A first write to a page of Ray's store costs as much as all
      the rest, so the two halves of an iteration are measured separately. The plain loop gets read-only views;
      penstock returns writable arrays, and views in a second run (`Options.zero_copy`). Goal: ≥ 0.7 of its rate. Left
      out without Ray: run it with the Python of `make service`.
    - images: a service with as many workers as there are cores decodes and resizes 1,600 JPEGs into batches of 32. The
      side to compare with is one worker of tf.data's service, which also has all cores, in its own process. Goal: ≥ 1.5
      times its rate. Left out without TensorFlow: `make bench` has it.

A first iteration of the same data set starts the workers before the measurement.

    python benchmarks/service.py [--turns N] [--only waiting,computing,sorting,moving,ray,images]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import time

import numpy as np

import penstock as ps

SLEEP = 0.005
FLOATS = 19 * 2**20 // 4
MOVED = 160  # batches of `FLOATS`: three times the size of Ray's store here


def sleep(x):
    time.sleep(SLEEP)
    return x


def compute(x):
    total = int(x)
    for i in range(12_000):
        total += i * i % 7
    return total


def order(x):
    return np.sort(np.random.default_rng(int(x)).random(100_000))[:10]


def fill(x):
    return np.full(FLOATS, x, np.float32)


def seconds(dataset):
    began = time.perf_counter()
    count = sum(1 for _ in dataset)
    return (time.perf_counter() - began) / count


def compared(dataset, workers, turns):
    """Return the median seconds of an element without the service and with it."""
    remote = dataset.distribute(workers=workers)
    here, there = [], []
    seconds(remote)
    for _ in range(turns):
        here.append(seconds(dataset))
        there.append(seconds(remote))
    return statistics.median(here), statistics.median(there)


def alone():
    """Return the seconds that a sleep of `SLEEP` takes now."""
    began = time.perf_counter()
    for x in range(200):
        sleep(x)
    return (time.perf_counter() - began) / 200


def waiting(turns):
    for workers in (1, 2, 4, 8):
        dataset = ps.Dataset.range(200 * workers).map(sleep).distribute(workers=workers)
        seconds(dataset)
        pairs = [(alone(), seconds(dataset)) for _ in range(turns)]
        took = statistics.median(pair[1] for pair in pairs)
        found = sorted(one / workers / each for one, each in pairs)
        print(
            f"waiting, {workers} workers: {took * 1e3:.2f} ms an element, efficiency {statistics.median(found):.2f} "
            f"({found[0]:.2f} to {found[-1]:.2f})"
        )


def computing(turns):
    here, there = compared(ps.Dataset.range(400).map(compute), 1, turns)
    print(f"computing, 1 worker: {here * 1e3:.2f} ms here, {there * 1e3:.2f} ms there, {here / there:.2f} of its rate")


def sorting(turns):
    workers = os.cpu_count()
    dataset = ps.Dataset.range(400).map(order, num_parallel_calls=workers, executor="thread")
    here, there = compared(dataset, workers, turns)
    print(f"sorting, {workers} workers: {here * 1e3:.2f} ms here, {there * 1e3:.2f} ms there, {here / there:.2f} of it")


def moving(turns):
    here, there = compared(ps.Dataset.range(40).map(fill, num_parallel_calls=1, executor="thread"), 1, turns)
    print(
        f"moving 19 MB, 1 worker: {here * 1e3:.1f} ms here, {there * 1e3:.1f} ms there, {here / there:.2f} of its rate"
    )


def on_ray(turns):
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=1 << 30)

    @ray.remote
    class Bare:
        def fill(self, x):
            return fill(x)

    def bare(ahead=4):
        """Return the seconds of an element by a plain actor, for the first half of the elements and for the second."""
        actor = Bare.remote()
        waiting = [actor.fill.remote(x) for x in range(ahead)]
        times = []
        for x in range(MOVED):
            assert ray.get(waiting.pop(0))[0] == x
            times.append(time.perf_counter())
            if x + ahead < MOVED:
                waiting.append(actor.fill.remote(x + ahead))
        ray.kill(actor)
        return halves(times)

    def ours(**how):
        options = ps.Options(**how)
        elements = ps.Dataset.range(MOVED).map(fill).distribute("ray", workers=1).with_options(options)
        return halves([time.perf_counter() for _ in elements])

    def halves(times):
        middle = len(times) // 2
        return (times[middle] - times[0]) / middle, (times[-1] - times[middle]) / (len(times) - 1 - middle)

    bare()
    rounds = [(bare(), ours(), ours(zero_copy=True)) for _ in range(turns)]
    for half, name in enumerate(("new pages", "known pages")):
        here, there, views = (statistics.median(each[side][half] for each in rounds) for side in range(3))
        ratio, ratio_of_views = (
            statistics.median(each[0][half] / each[side][half] for each in rounds) for side in (1, 2)
        )
        print(
            f"moving 19 MB on Ray, {name}: {here * 1e3:.1f} ms bare, {there * 1e3:.1f} ms ours, {ratio:.2f} of its "
            f"rate; as views {views * 1e3:.1f} ms, {ratio_of_views:.2f}"
        )
    ray.shutdown()


TF_WORKER = """
import tensorflow as tf
service = tf.data.experimental.service
dispatcher = service.DispatchServer(service.DispatcherConfig(port=0))
worker = service.WorkerServer(service.WorkerConfig(dispatcher_address=dispatcher.target.split("://")[1]))
print(dispatcher.target, flush=True)
input()
"""


def images(turns):
    import tensorflow as tf
    from _common.jpeg_pipelines import BATCH, penstock_images, tf_data_images

    service = ps.service.start(os.cpu_count())  # its workers keep running, like those of tf.data's service
    ours = penstock_images(floats=False).batch(BATCH).distribute(service)
    command = [sys.executable, "-c", TF_WORKER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        try:
            target = running.stdout.readline().strip()
            theirs = tf_data_images(floats=False).batch(BATCH)
            mode = tf.data.experimental.service.ShardingPolicy.OFF
            theirs = theirs.apply(tf.data.experimental.service.distribute(mode, target)).prefetch(tf.data.AUTOTUNE)
            seconds(ours), seconds(theirs)
            pairs = [(seconds(theirs), seconds(ours)) for _ in range(turns)]
        finally:
            running.kill()
            service.stop()
    there, here = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratios = sorted(one / other for one, other in pairs)
    print(
        f"images, {os.cpu_count()} processes: {there * 1e3:.1f} ms a batch by tf.data's service, {here * 1e3:.1f} ms "
        f"by ours, {statistics.median(ratios):.2f} times its rate ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    )


PARTS = {
    "waiting": (waiting, None),
    "computing": (computing, None),
    "sorting": (sorting, None),
    "moving": (moving, None),
    "ray": (on_ray, "ray"),
    "images": (images, "tensorflow"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", default=",".join(PARTS), help="parts to run, separated by commas")
    chosen = parser.parse_args()
    for name in chosen.only.split(","):
        part, needs = PARTS[name]
        if needs is None or importlib.util.find_spec(needs) is not None:
            part(chosen.turns)
        else:
            print(f"{name}: left out, {needs} is not installed")


if __name__ == "__main__":
    main()
