"""Processes that torchrun starts train one model, with DDP or with FSDP, and resume from a checkpoint.

Run it with `torchrun --nproc-per-node 2 examples/train/torchrun_ddp_fsdp.py --fsdp`.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import made_up_data
import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import penstock as ps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fsdp", action="store_true", help="shard the model with FSDP instead of copying it with DDP")
    parser.add_argument("--count", type=int, default=1001, help="number of images")
    parser.add_argument("--steps", type=int, default=40, help="number of steps of this run")
    parser.add_argument("--batch-size", type=int, default=25, help="images of a step on each rank")
    parser.add_argument("--checkpoint", type=Path, help="folder to resume from, if it exists, and to save to")
    arguments = parser.parse_args()

    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    else:
        device = torch.device("cpu")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")  # torchrun sets rank and world size
    rank = dist.get_rank()

    def prepare(image, label):
        return ps.image.random_flip_left_right(image) / np.float32(255), label

    ds = (
        ps.Dataset.from_tensor_slices(made_up_data.thumbnails(arguments.count))
        .shuffle(ps.ALL, seed=1)
        .map(prepare, num_parallel_calls=ps.AUTOTUNE)
        .batch(arguments.batch_size)
        .repeat()
        .prefetch(ps.AUTOTUNE)
    )
    loader = ds.to_torch(device, shard="rank")  # each rank reads its own images

    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(32 * 32 * 3, 64), nn.ReLU(), nn.Linear(64, 4)).to(device)
    if arguments.fsdp:
        model = fully_shard(net)  # each rank stores a shard of the weights
    else:
        model = DistributedDataParallel(net)  # each rank stores all weights
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    checkpoint = arguments.checkpoint
    if checkpoint and checkpoint.exists():
        model_state, optimizer_state = get_state_dict(model, optimizer)
        dcp.load({"model": model_state, "optimizer": optimizer_state}, checkpoint_id=checkpoint)
        set_state_dict(model, optimizer, model_state_dict=model_state, optim_state_dict=optimizer_state)
        loader.load_state_dict(torch.load(checkpoint / f"data-{rank}.pt", weights_only=False))

    for step, (images, labels) in enumerate(loader, start=1):
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == arguments.steps:
            break
    print(f"rank {rank} of {dist.get_world_size()}: loss {loss.item():.4f}", flush=True)

    if checkpoint:
        model_state, optimizer_state = get_state_dict(model, optimizer)
        dcp.save({"model": model_state, "optimizer": optimizer_state}, checkpoint_id=checkpoint)
        torch.save(loader.state_dict(), checkpoint / f"data-{rank}.pt")  # each rank has its own position in the data
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
