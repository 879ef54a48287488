"""SmallNet: three convolutions and a linear layer in plain numpy, which can distinguish shapes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class Conv:
    """A convolution with stride 2, then a rectifier; (n, h, w, inputs) → (n, h/2, w/2, outputs), float32."""

    def __init__(self, rng: np.random.Generator, size: int, inputs: int, outputs: int) -> None:
        self.size, self.inputs = size, inputs
        fan_in = size * size * inputs
        self.weight = rng.standard_normal((fan_in, outputs), np.float32) * np.float32((2 / fan_in) ** 0.5)
        self.bias = np.zeros(outputs, np.float32)
        self.parameters = [self.weight, self.bias]

    def forward(self, x: Floats) -> Floats:
        n, height, width, _ = x.shape
        pad = self.size // 2
        padded = np.zeros((n, height + 2 * pad, width + 2 * pad, self.inputs), np.float32)
        padded[:, pad : pad + height, pad : pad + width] = x
        windows = sliding_window_view(padded, (self.size, self.size), axis=(1, 2))[:, ::2, ::2]
        self._columns = windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, self.weight.shape[0])
        self._shape = x.shape
        out: Floats = self._columns @ self.weight
        out += self.bias
        np.maximum(out, 0, out=out)
        self._out = out
        return out.reshape(n, windows.shape[1], windows.shape[2], -1)

    def backward(self, gradient: Floats, *, into_input: bool) -> tuple[list[Floats], Floats | None]:
        """Return the gradients of weight and bias, and that of the input if `into_input` is True."""
        flat = gradient.reshape(self._out.shape) * (self._out > 0)
        gradients = [self._columns.T @ flat, flat.sum(axis=0)]
        if not into_input:
            return gradients, None
        n, height, width, channels = self._shape
        pad = self.size // 2
        columns = (flat @ self.weight.T).reshape(n, (height + 1) // 2, (width + 1) // 2, self.size, self.size, channels)
        padded = np.zeros((n, height + 2 * pad, width + 2 * pad, channels), np.float32)
        for i in range(self.size):
            for j in range(self.size):
                padded[:, i : i + height : 2, j : j + width : 2] += columns[:, :, :, i, j]
        return gradients, padded[:, pad : pad + height, pad : pad + width]


@dataclass
class SmallNet:
    """A classifier of square RGB images, trained by Adam. The same seed and batches give the same bits.

    >>> net = SmallNet(classes=4, seed=0)
    >>> images = np.random.default_rng(0).random((8, 64, 64, 3), np.float32)
    >>> labels = np.arange(8) % 4
    >>> first = net.step(images, labels)[0]
    >>> for _ in range(20):
    ...     last = net.step(images, labels)[0]
    >>> bool(last < first)
    True
    """

    classes: int
    seed: int = 0
    widths: tuple[int, int, int] = (16, 32, 64)
    rate: float = 6e-3
    _steps: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        first, second, third = self.widths
        self._layers = [Conv(rng, 5, 2, first), Conv(rng, 3, first, second), Conv(rng, 3, second, third)]
        self._weight = rng.standard_normal((2 * third, self.classes), np.float32) * np.float32(0.1)
        self._bias = np.zeros(self.classes, np.float32)
        self.parameters = [p for layer in self._layers for p in layer.parameters] + [self._weight, self._bias]
        self._mean = [np.zeros_like(p) for p in self.parameters]
        self._square = [np.zeros_like(p) for p in self.parameters]

    def logits(self, images: Floats) -> Floats:
        """Return the scores of all classes: images float32 (n, size, size, 3), about 0…1, to float32 (n, classes)."""
        x = _brightness_and_vividness(images)
        for layer in self._layers:
            x = layer.forward(x)
        n, height, width, channels = x.shape
        cells = x.reshape(n, height * width, channels)
        # Pooling drops the position of the shape, so few images are enough for training.
        self._best = cells.argmax(axis=1)
        self._pooled = np.concatenate([cells.mean(axis=1), cells.max(axis=1)], axis=1)
        self._cells = cells.shape
        return self._pooled @ self._weight + self._bias

    def step(self, images: Floats, labels: NDArray[np.int64]) -> tuple[float, int]:
        """Learn from one batch. Return the mean loss and the number of right answers before the step."""
        gradients, loss, right = self.gradients(images, labels)
        self._learn(gradients)
        return loss, right

    def gradients(self, images: Floats, labels: NDArray[np.int64]) -> tuple[list[Floats], float, int]:
        """Return the gradient of the mean loss for each of `parameters`, the loss, and the number of right answers."""
        logits = self.logits(images)
        logits -= logits.max(axis=1, keepdims=True)
        chances = np.exp(logits)
        chances /= chances.sum(axis=1, keepdims=True)
        rows = np.arange(len(labels))
        loss = float(-np.log(chances[rows, labels] + np.float32(1e-9)).mean())
        right = int((logits.argmax(axis=1) == labels).sum())
        gradient = chances
        gradient[rows, labels] -= 1
        gradient /= np.float32(len(labels))
        return self._backward(gradient), loss, right

    def accuracy(self, images: Floats, labels: NDArray[np.int64]) -> float:
        """Return the share of `images` whose label has the highest score."""
        right = 0
        for start in range(0, len(labels), 32):
            part = slice(start, start + 32)
            right += int((self.logits(images[part]).argmax(axis=1) == labels[part]).sum())
        return right / len(labels)

    def _backward(self, gradient: Floats) -> list[Floats]:
        last = [self._pooled.T @ gradient, gradient.sum(axis=0)]
        pooled = gradient @ self._weight.T
        n, places, channels = self._cells
        cells: Floats = np.repeat(pooled[:, None, :channels] / np.float32(places), places, axis=1)
        at = np.arange(n)[:, None], self._best, np.arange(channels)[None]
        cells[at] += pooled[:, channels:]
        found: list[list[Floats]] = []
        flowing: Floats | None = cells
        for depth in (2, 1, 0):
            assert flowing is not None
            gradients, flowing = self._layers[depth].backward(flowing, into_input=depth > 0)
            found.insert(0, gradients)
        return [one for group in found for one in group] + last

    def _learn(self, gradients: list[Floats]) -> None:
        """Make one step of Adam (Kingma and Ba, 2015, algorithm 1)."""
        self._steps += 1
        rate = np.float32(self.rate * (1 - 0.999**self._steps) ** 0.5 / (1 - 0.9**self._steps))
        for parameter, mean, square, gradient in zip(self.parameters, self._mean, self._square, gradients, strict=True):
            mean += np.float32(0.1) * (gradient - mean)
            square += np.float32(0.001) * (gradient * gradient - square)
            parameter -= rate * mean / (np.sqrt(square) + np.float32(1e-7))


def _brightness_and_vividness(images: Floats) -> Floats:
    """Return brightness and vividness, which tell a small net more than red, green and blue.

    The net need not learn the meaning of colours.
    """
    red, green, blue = images[..., 0], images[..., 1], images[..., 2]
    low, high = np.minimum(np.minimum(red, green), blue), np.maximum(np.maximum(red, green), blue)
    return np.stack([(low + high) * np.float32(0.5) - np.float32(0.5), high - low], axis=-1)
