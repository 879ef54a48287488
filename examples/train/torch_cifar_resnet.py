"""A small ResNet in torch on images like CIFAR's, padded, cropped, flipped, rotated and partly covered.

The images are uint8 in the pipeline. The loop converts them to numbers from 0 to 1 on the device: a quarter of the
memory.

Run it with `python examples/train/torch_cifar_resnet.py --epochs 6`.
"""

from __future__ import annotations

import argparse

import made_up_data
import numpy as np
import torch
from torch import nn

import penstock as ps

CLASSES = 4


def augment(image, label):
    """Augment an image. Its random numbers depend on the seed, the epoch and the number of the image only."""
    image = ps.image.pad(image, ((4, 4), (4, 4), (0, 0)))
    image = ps.image.random_crop(image, (32, 32, 3))
    image = ps.image.random_flip_left_right(image)
    image = ps.image.random_rotate(image, np.radians(10), interpolation="bilinear")
    image = ps.image.random_cutout(image, 8)
    return image, label


class Residual(nn.Module):
    def __init__(self, narrow, wide, stride):
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(narrow, wide, 3, stride, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU()),
            *(nn.Conv2d(wide, wide, 3, 1, 1, bias=False), nn.BatchNorm2d(wide)),
        )
        self.short = nn.Conv2d(narrow, wide, 1, stride)

    def forward(self, x):
        return torch.relu(self.body(x) + self.short(x))


def resnet():
    return nn.Sequential(
        *(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU()),
        *(Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 32, 1)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, CLASSES)),
    )


def to_floats(batch, device):
    """Convert uint8 (N, 32, 32, 3) to float32 (N, 3, 32, 32), on the device."""
    return batch.permute(0, 3, 1, 2).to(device, torch.float32).div_(255)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="number of training images")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=50)
    arguments = parser.parse_args()

    # The model and the preparation share the cores; on a GPU machine they do not.
    torch.set_num_threads(max(1, torch.get_num_threads() // 2))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train = (
        ps.Dataset.from_tensor_slices(made_up_data.thumbnails(arguments.count))
        .shuffle(ps.ALL, seed=1)
        .map(augment, num_parallel_calls=ps.AUTOTUNE)
        .batch(arguments.batch_size, drop_remainder=True)
        .prefetch(ps.AUTOTUNE)
    )
    test = ps.Dataset.from_tensor_slices(made_up_data.thumbnails(200, seed=1)).batch(100)

    torch.manual_seed(0)
    model = resnet().to(device)
    loader = train.to_torch(device)  # on a GPU, batches are copied ahead of the step
    rounds = arguments.epochs * len(loader)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=rounds)
    for epoch in range(arguments.epochs):
        model.train()
        for batch, labels in loader:
            loss = nn.functional.cross_entropy(model(to_floats(batch, device)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            answers = [(model(to_floats(batch, device)).argmax(1), labels) for batch, labels in test.to_torch(device)]
        right = torch.cat([(found == labels).float() for found, labels in answers])
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}, test accuracy {right.mean().item():.3f}")


if __name__ == "__main__":
    main()
