"""Two processes train one model together with torch.distributed; each reads its own part of the data.

It starts its own two processes on this machine. Where `torchrun` starts them, on one machine or several, call
`dist.init_process_group()` without the meeting place, the rank and the world size: torchrun tells them.

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
    """The same calls on every rank: `shard="rank"` below parts the elements, in front of the batches."""
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
    # Before the first step the ranks compare their data sets: one that was built otherwise is an error, not a mystery.
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
        print("all ranks have the same weights" if alike else "the ranks have drifted apart")
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--count", type=int, default=1001, help="pictures to train on")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=25, help="rows of a step on each rank")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        given = (arguments.ranks, Path(folder, "meeting"), arguments.count, arguments.epochs, arguments.batch_size)
        torch.multiprocessing.spawn(worker, given, nprocs=arguments.ranks)


if __name__ == "__main__":
    main()
