"""Train one model in two processes with torch.distributed; each process reads its own shard of the data.

The program starts its own two processes on this machine. If `torchrun` starts them, on one machine or several, call
`dist.init_process_group()` without arguments for the address, the rank and the world size: torchrun sets them.

Run it with `python examples/train/torch_two_ranks.py --ranks 2`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import made_up_data
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import penstock as ps


def pipeline(count, batch_size):
    """Build the same data set on each rank. `shard="rank"` below shards the elements, before the batches."""
    return (
        ps.Dataset.from_tensor_slices(made_up_data.thumbnails(count))
        .shuffle(256, seed=1)
        .map(lambda image, label: (ps.image.random_flip_left_right(image), label))
        .batch(batch_size)
        .prefetch(ps.AUTOTUNE)
    )


def worker(rank, ranks, meeting, count, epochs, batch_size):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
    # Before the first step the ranks compare their data sets. A data set that differs raises an error.
    loader = pipeline(count, batch_size).to_torch(shard="rank")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 16, 5, 2), nn.ReLU(), nn.Flatten())
    model = DistributedDataParallel(nn.Sequential(net, nn.Linear(16 * 5 * 5, 4)))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        seen = torch.zeros(3)  # steps, rows, right answers
        for images, labels in loader:
            scores = model(images.permute(0, 3, 1, 2).float() / 255)
            optimizer.zero_grad()
            nn.functional.cross_entropy(scores, labels).backward()  # waits for the other ranks' gradients
            optimizer.step()
            seen += torch.tensor([1, len(labels), (scores.argmax(1) == labels).sum()])
        steps = int(seen[0])
        dist.all_reduce(seen)
        if rank == 0:
            rows, right = int(seen[1]), seen[2] / seen[1]
            print(f"epoch {epoch + 1}: {steps} steps on each rank, {rows} rows together, accuracy {right:.3f}")
    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    everyone = [torch.empty_like(weights) for _ in range(ranks)]
    dist.all_gather(everyone, weights)
    if rank == 0:
        alike = all(torch.equal(weights, others) for others in everyone)
        print("all ranks have the same weights" if alike else "the weights of the ranks differ")
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--count", type=int, default=1001, help="number of training images")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=25, help="rows of a step on each rank")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        given = (arguments.ranks, Path(folder, "meeting"), arguments.count, arguments.epochs, arguments.batch_size)
        torch.multiprocessing.spawn(worker, given, nprocs=arguments.ranks)


if __name__ == "__main__":
    main()
