"""Two JAX processes train one model together; each reads its own shard of the data.

It starts its own two processes on this machine. On several hosts, start one process on each host, and call
`jax.distributed.initialize()` as your cluster needs it. On Cloud TPUs, Slurm and Kubernetes it needs no arguments.

Run it with `python examples/train/jax_two_processes.py`.
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys

import numpy as np

import penstock as ps


def pipeline(count, batch_size):
    """Return the same data set on every process: `shard="process"` below gives each process its shard."""
    points = np.random.default_rng(0).normal(size=(count, 2)).astype(np.float32)
    rows = {"x": points, "label": (points.sum(axis=1) > 0).astype(np.float32)}
    return ps.Dataset.from_tensor_slices(rows).shuffle(ps.ALL, seed=1).batch(batch_size, drop_remainder=True)


def worker(address, processes, index, epochs):
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec

    jax.distributed.initialize(address, processes, index)
    mesh = jax.make_mesh((jax.device_count(),), ("data",))  # all devices of all processes
    by_row = NamedSharding(mesh, PartitionSpec("data"))
    loader = pipeline(1000, 50).to_jax(by_row, shard="process")  # global batches of 50 rows per process

    def loss(weights, x, label):
        logits = x @ weights
        return jnp.mean(jnp.logaddexp(0, logits) - label * logits)

    @jax.jit
    def step(weights, x, label):
        value, gradient = jax.value_and_grad(loss)(weights, x, label)
        return weights - gradient, value

    weights = jax.device_put(np.zeros(2, np.float32), NamedSharding(mesh, PartitionSpec()))
    for epoch in range(epochs):
        for batch in loader:
            weights, value = step(weights, batch["x"], batch["label"])
        if index == 0:
            print(f"epoch {epoch + 1}: global batches of shape {batch['x'].shape}, loss {float(value):.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument(
        "--worker", nargs=3, metavar=("ADDRESS", "PROCESSES", "INDEX"), help="run as one of the processes"
    )
    arguments = parser.parse_args()
    if arguments.worker:
        address, processes, index = arguments.worker
        worker(address, int(processes), int(index), arguments.epochs)
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, __file__, "--epochs", str(arguments.epochs), "--worker", address, "2"]
    running = [subprocess.Popen([*command, str(index)]) for index in range(2)]
    sys.exit(max(process.wait() for process in running))


if __name__ == "__main__":
    main()
