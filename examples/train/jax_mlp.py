"""A multi-layer perceptron in JAX, written without any library of layers.

Run it with `python examples/train/jax_mlp.py --epochs 5`.
"""

from __future__ import annotations

import argparse

import jax
import jax.numpy as jnp
import made_up_data
import numpy as np

import penstock as ps

CLASSES = 4


def initial(sizes, seed=0):
    """Return weights and biases, layer by layer."""
    keys = jax.random.split(jax.random.key(seed), len(sizes) - 1)
    pairs = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [(jax.random.normal(key, (m, n)) * np.sqrt(2 / m), jnp.zeros(n)) for key, m, n in pairs]


def logits(layers, images):
    x = images.reshape(len(images), -1)
    for weights, bias in layers[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = layers[-1]
    return x @ weights + bias


def mean_loss(layers, images, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits(layers, images)), labels[:, None], axis=1))


@jax.jit
def step(layers, speeds, images, labels, rate):
    """Do a step of gradient descent with momentum."""
    loss, gradients = jax.value_and_grad(mean_loss)(layers, images, labels)
    speeds = jax.tree.map(lambda speed, gradient: 0.9 * speed - rate * gradient, speeds, gradients)
    return jax.tree.map(jnp.add, layers, speeds), speeds, loss


def prepare(image, label):
    """Return the brightness at half the resolution: 256 numbers around 0."""
    grey = image.astype(np.float32).mean(axis=-1) / 128 - 1
    return grey.reshape(16, 2, 16, 2).mean(axis=(1, 3)), label.astype(np.int32)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=4000, help="number of training images")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=100)
    arguments = parser.parse_args()

    train = (
        ps.Dataset.from_tensor_slices(made_up_data.thumbnails(arguments.count))
        .map(prepare, num_parallel_calls=ps.AUTOTUNE)
        .cache()
        .shuffle(ps.ALL, seed=1)
        # Batches of one size: JAX compiles a step for each new shape.
        .batch(arguments.batch_size, drop_remainder=True)
        .prefetch(ps.AUTOTUNE)
    )
    test = ps.Dataset.from_tensor_slices(made_up_data.thumbnails(500, seed=1)).map(prepare).batch(500)

    layers = initial([256, 256, 64, CLASSES])
    speeds = jax.tree.map(jnp.zeros_like, layers)
    loader = train.to_jax()  # on an accelerator, batches arrive before the step needs them
    images, labels = next(iter(test.to_jax()))
    for epoch in range(arguments.epochs):
        for batch in loader:
            layers, speeds, loss = step(layers, speeds, *batch, 0.01)
        right = jnp.mean(jnp.argmax(logits(layers, images), axis=1) == labels)
        print(f"epoch {epoch + 1}: loss {float(loss):.3f}, test accuracy {float(right):.3f}")


if __name__ == "__main__":
    main()
