"""Train one model on two workers with Ray Train; the processes of a service compute the batches for both.

The workers step together: each worker asks for its shard of one stream, so that each step has as many batches as
workers. With `--service ray`, actors compute the batches on the cluster of Ray Train. They need CPUs in addition to
those of the two workers. For a service of `ps.service.start` or `penstock service start`, pass its address.

Run it with `python examples/train/ray_two_workers.py` if Ray is installed (`pip install "ray[train]"`).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import made_up_data
import ray.train
import ray.train.torch
import torch
from torch import nn

import penstock as ps


def pipeline(count, batch_size):
    return (
        ps.Dataset.from_tensor_slices(made_up_data.thumbnails(count))
        .shuffle(256, seed=1)
        .map(lambda image, label: (ps.image.random_flip_left_right(image), label))
        .batch(batch_size, drop_remainder=True)
    )


def train(settings):
    torch.set_num_threads(1)
    context = ray.train.get_context()
    ranks, rank = context.get_world_size(), context.get_world_rank()
    batches = settings["count"] // settings["batch_size"]
    batches -= batches % ranks  # the same number for each worker, because each step waits for the gradients of both
    dataset = pipeline(settings["count"], settings["batch_size"]).take(batches)
    loader = dataset.distribute(
        settings["service"], workers=settings["workers"], num_consumers=ranks, consumer_index=rank
    ).to_torch()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 16, 5, 2), nn.ReLU(), nn.Flatten())
    model = ray.train.torch.prepare_model(nn.Sequential(net, nn.Linear(16 * 5 * 5, 4)))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(settings["epochs"]):
        seen = torch.zeros(3)  # steps, rows, right answers
        for images, labels in loader:
            scores = model(images.permute(0, 3, 1, 2).float() / 255)
            optimizer.zero_grad()
            nn.functional.cross_entropy(scores, labels).backward()
            optimizer.step()
            seen += torch.tensor([1, len(labels), (scores.argmax(1) == labels).sum()])
        steps = int(seen[0])
        torch.distributed.all_reduce(seen)
        found = {"steps": steps, "rows": int(seen[1]), "accuracy": float(seen[2] / seen[1])}
        ray.train.report(found)
        if rank == 0:
            Path(settings["folder"], "last.json").write_text(json.dumps(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--service", default="local", help="'local', 'ray' or the address of a service")
    parser.add_argument("--count", type=int, default=1001, help="number of training images")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=25, help="rows of a step on each worker")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp()
    workers = "auto" if arguments.service.startswith("unix://") else 1
    settings = {**vars(arguments), "workers": workers, "folder": folder}
    trainer = ray.train.torch.TorchTrainer(
        train,
        train_loop_config=settings,
        scaling_config=ray.train.ScalingConfig(num_workers=2, resources_per_worker={"CPU": 1}),
        run_config=ray.train.RunConfig(storage_path=folder),
    )
    trainer.fit()
    found = json.loads(Path(folder, "last.json").read_text())
    print(f"{found['steps']} steps on each worker, {found['rows']} rows together, accuracy {found['accuracy']:.3f}")


if __name__ == "__main__":
    main()
