"""Measure the time that penstock's adapter adds to a training step of Keras.

    python benchmarks/keras_overhead.py       # KERAS_BACKEND=torch, jax or tensorflow picks the backend

Batches of 32 rows of 16 numbers are prepared before the measurement. The model has one Dense(1), so that the step is as
short as possible. The same batches come (a) from `to_keras()`, (b) from a plain Python generator over the same arrays.
The difference is the cost of the adapter and the iteration. Rounds of (a) and (b) take turns. The output has the
medians of the time per step, and the time of an iteration over the adapter alone. The program needs Keras and a backend
(`make frameworks` installs them).
"""

import os
import statistics
import sys
import time
from importlib.util import find_spec

STEPS, ROUNDS = 2000, 7


def timed(call):
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) / STEPS * 1e6


def main():
    if find_spec("keras") is None:
        print("keras is not installed: nothing to compare")
        return
    backends = [name for name in ("jax", "torch", "tensorflow") if find_spec(name)]
    os.environ.setdefault("KERAS_BACKEND", backends[0])
    import keras
    import numpy as np

    import penstock as ps

    x, y = np.zeros((STEPS, 32, 16), np.float32), np.zeros((STEPS, 32, 1), np.float32)
    ds = ps.Dataset.from_tensor_slices((x, y))
    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(ds.take(8).to_keras(), verbose=0)

    def generator():
        yield from zip(x, y, strict=True)

    def by_adapter():
        model.fit(ds.to_keras(), verbose=0)

    def by_generator():
        model.fit(generator(), steps_per_epoch=STEPS, verbose=0)

    def alone():
        adapter = ds.to_keras()
        get = {"torch": adapter.get_torch_dataloader, "jax": adapter.get_jax_iterator}
        for _ in get.get(keras.backend.backend(), adapter.get_numpy_iterator)():
            pass

    rows = {"fit from to_keras()": by_adapter, "fit from a generator": by_generator, "iteration alone": alone}
    times = {name: [] for name in rows}
    for _ in range(ROUNDS):
        for name, call in rows.items():
            times[name].append(timed(call))
    print(f"Keras {keras.__version__} on {keras.backend.backend()}, µs for a step (median, spread of {ROUNDS} rounds)")
    for name, found in times.items():
        print(f"  {name:<22} {statistics.median(found):8.1f}   {min(found):.1f} to {max(found):.1f}")


if __name__ == "__main__":
    sys.exit(main())
