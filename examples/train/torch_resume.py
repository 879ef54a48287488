"""A training that is killed in the middle of an epoch resumes at its checkpoint and ends with the same weights.

The program starts itself three times: one whole run, one that is killed (SIGKILL, as if a machine failed), and one that
resumes from the checkpoint of the killed run.

Run it with `python examples/train/torch_resume.py --kill-at 20`.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import made_up_data
import torch
from torch import nn

import penstock as ps


def augment(image, label):
    image = ps.image.random_flip_left_right(image)
    return ps.image.random_brightness(image, 0.2), label


def pipeline(count):
    return (
        ps.Dataset.from_tensor_slices(made_up_data.thumbnails(count))
        .shuffle(256, seed=1)
        .map(augment, num_parallel_calls=ps.AUTOTUNE)
        .batch(25)
        .prefetch(ps.AUTOTUNE)
    )


def save(path, **parts):
    """Write the whole file or nothing: if the program is killed while writing, the previous checkpoint stays."""
    part = path.with_suffix(".part")
    torch.save(parts, part)
    part.replace(path)


def train(checkpoint, epochs, count, save_every, kill_at):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(32 * 32 * 3, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = pipeline(count).to_torch()
    step = epoch = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["data"])  # a few hundred bytes of numbers and text, without any batch
        step, epoch = saved["step"], saved["epoch"]
        print(f"resumes after step {step}, in epoch {epoch}")
    while epoch < epochs:
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images.float() / 255), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % save_every == 0:
                states = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                save(checkpoint, **states, data=loader.state_dict(), step=step, epoch=epoch)
            if step == kill_at:
                print(f"is killed at step {step}", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
        epoch += 1
    weights = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
    print(f"ends with step {step}, weights {hashlib.sha256(weights).hexdigest()[:16]}")


def run(checkpoint, *more):
    """Run this program in another process. Return its last printed line."""
    command = [sys.executable, __file__, "--checkpoint", str(checkpoint), *map(str, more)]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout
    print(printed, end="")
    return printed.splitlines()[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, help="train with this file instead of running all three runs")
    parser.add_argument("--count", type=int, default=500, help="number of training images")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--save-every", type=int, default=7)
    parser.add_argument("--kill-at", type=int, default=25, help="the step at which the second run is killed")
    arguments = parser.parse_args()
    sizes = ("--count", arguments.count, "--epochs", arguments.epochs, "--save-every", arguments.save_every)
    if arguments.checkpoint is not None:
        torch.set_num_threads(1)
        train(arguments.checkpoint, arguments.epochs, arguments.count, arguments.save_every, arguments.kill_at)
        return
    with tempfile.TemporaryDirectory() as folder:
        whole = run(Path(folder, "whole.pt"), *sizes, "--kill-at", 0)
        run(Path(folder, "killed.pt"), *sizes, "--kill-at", arguments.kill_at)
        resumed = run(Path(folder, "killed.pt"), *sizes, "--kill-at", 0)
    print("the same weights" if whole == resumed else "different weights")


if __name__ == "__main__":
    main()
