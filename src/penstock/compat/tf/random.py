"""`tf.random`: random numbers of an element depend on the seed of the data set and on the element.

Outside a data set each call returns other numbers. After `set_seed`, every run returns the same numbers, in the order
of the calls. The numbers differ from those of TensorFlow.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import penstock as ps
from penstock.compat.dtypes import as_dtype
from penstock.compat.op import op, seeds
from penstock.compat.teaching import missing_in
from penstock.compat.tf.arrays import _extents
from penstock.compat.values import whole
from penstock.errors import InvalidArgumentError
from penstock.image.drawn import uniforms
from penstock.keys import draws, fold

_FEW = 256  # numbers that are computed directly from the key, which is faster than a generator


def set_seed(seed: Any) -> None:
    """Set the seed of later random numbers, and of data sets that are made later."""
    seeds.set(None if seed is None else int(seed))


set_random_seed = set_seed


def _generator(key: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key))


def _drawn(name: str, block: Callable[..., Any] | None = None) -> Callable[[Callable[..., Any]], tuple[Any, Any]]:
    """Declare a function of a key and a shape as `tf.random.{name}`, and as `tf.random.stateless_{name}`."""

    def decorate(function: Callable[..., Any]) -> tuple[Any, Any]:
        @op(f"random.{name}", draws=True, block=block)
        @functools.wraps(function)
        def drawn(shape: Any, *args: Any, key: int = 0, **kwargs: Any) -> Any:
            return function(key, shape, *args, **kwargs)

        @op(f"random.stateless_{name}")
        @functools.wraps(function)
        def stateless(shape: Any, seed: Any, *args: Any, alg: Any = None, **kwargs: Any) -> Any:
            return function(_key(seed), shape, *args, **kwargs)

        return drawn, stateless

    return decorate


def _uniform_block(shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = "float32", *, key: np.ndarray) -> Any:
    """Compute a few numbers for Blocks, if the bounds are equal for all elements."""
    parts = (shape, minval, maxval)
    few = not any(isinstance(part, np.ndarray) for part in parts) and math.prod(_extents(shape)) <= _FEW
    wide = few and as_dtype(dtype).dtype.kind in "iu" and not 0 < int(maxval or 0) - int(minval) < 2**32
    return _uniform(key, *parts, dtype) if few and not wide else None


def _uniform(key: Any, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = "float32") -> Any:
    """Return numbers in [minval, maxval), by default floats in [0, 1). An array of keys gives numbers for each key."""
    wanted = as_dtype(dtype).dtype
    extents = _extents(shape)
    count, keys = math.prod(extents), np.asarray(key, np.uint64)
    if wanted.kind in "iu":
        if maxval is None:
            message = f"Integers need a maxval: tf.random.uniform({list(extents)}, maxval=10, dtype=tf.{wanted.name})."
            raise InvalidArgumentError(message)
        begin, bound = int(minval), int(maxval) - int(minval)
        if count > _FEW or not 0 < bound < 2**32:
            return np.asarray(_generator(key).integers(begin, int(maxval), extents), wanted)[()]
        return (begin + draws(keys[..., None], 0, count, bound)).astype(wanted).reshape((*keys.shape, *extents))[()]
    low, high = wanted.type(minval), wanted.type(1 if maxval is None else maxval)
    if count > _FEW:
        unit = _generator(key).random(extents, np.float64 if wanted.itemsize == 8 else np.float32)
    elif wanted.itemsize == 8:
        unit = uniforms(key, count, 0.0, 1.0)
    else:
        unit = draws(keys[..., None], 0, count, 1 << 24).astype(np.float32) * np.float32(2**-24)
    return np.asarray(np.asarray(unit, wanted) * (high - low) + low, wanted).reshape((*keys.shape, *extents))[()]


@_drawn("normal")
def _normal(key: int, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32") -> Any:
    """Return numbers of the normal distribution."""
    drawn = _generator(key).standard_normal(_extents(shape))
    return np.asarray(drawn * float(stddev) + float(mean), as_dtype(dtype).dtype)[()]


@_drawn("truncated_normal")
def _truncated(key: int, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32") -> Any:
    """Return numbers of the normal distribution within two standard deviations."""
    generator, extents = _generator(key), _extents(shape)
    found = generator.standard_normal(extents)
    while (far := np.abs(found) > 2).any():
        found = np.where(far, generator.standard_normal(extents), found)
    return np.asarray(found * float(stddev) + float(mean), as_dtype(dtype).dtype)[()]


@op("random.gamma", draws=True)
def gamma(shape: Any, alpha: Any, beta: Any = None, dtype: Any = "float32", *, key: int = 0) -> Any:
    """Return numbers of the gamma distributions of `alpha` and `beta`: `shape` of each."""
    form, rate = np.broadcast_arrays(whole(alpha), whole(1.0 if beta is None else beta))
    found = _generator(key).standard_gamma(form, (*_extents(shape), *form.shape)) / rate
    return np.asarray(found, as_dtype(dtype).dtype)[()]


@op("random.poisson", draws=True)
def poisson(shape: Any, lam: Any, dtype: Any = "float32", *, key: int = 0) -> Any:
    """Return numbers of the Poisson distributions of `lam`: `shape` of each."""
    mean = whole(lam)
    return np.asarray(_generator(key).poisson(mean, (*_extents(shape), *mean.shape)), as_dtype(dtype).dtype)[()]


(uniform, stateless_uniform), (normal, stateless_normal) = _drawn("uniform", _uniform_block)(_uniform), _normal
truncated_normal, stateless_truncated_normal = _truncated


@op("random.log_uniform_candidate_sampler", draws=True)
def log_uniform_candidate_sampler(
    true_classes: Any, num_true: Any, num_sampled: Any, unique: Any, range_max: Any, *, key: int = 0
) -> Any:
    """Choose random classes, low numbers more often, as for words in order of frequency.

    Returns the classes, and the expected counts of the true classes and of these classes.
    """
    generator, found, tries = _generator(key), list[int](), 0
    while len(found) < int(num_sampled):
        drawn = int(np.exp(generator.random() * np.log(int(range_max) + 1.0))) - 1
        tries += 1
        if not unique or drawn not in found:
            found.append(drawn)

    def expected(classes: Any) -> Any:
        share = np.log((classes + 2.0) / (classes + 1.0)) / np.log(int(range_max) + 1.0)
        return (-np.expm1(tries * np.log1p(-share)) if unique else share * tries).astype(np.float32)

    return np.array(found, np.int64), expected(whole(true_classes)), expected(np.array(found))


@op("random.shuffle", draws=True)
def shuffle(value: Any, *, key: int = 0) -> Any:
    """Return the rows in random order."""
    return _generator(key).permutation(whole(value), axis=0)


@op("random.categorical", draws=True)
def categorical(logits: Any, num_samples: Any, dtype: Any = "int64", *, key: int = 0) -> Any:
    """Return random classes with probabilities by the logits in each row."""
    scores = whole(logits, np.float64)
    noise = _generator(key).gumbel(size=(scores.shape[0], int(num_samples), scores.shape[1]))
    return np.argmax(scores[:, None, :] + noise, -1).astype(as_dtype(dtype or "int64").dtype)


def _key(seed: Any) -> int:
    return fold(0, *(int(part) for part in whole(seed).reshape(-1).tolist()))


@op("random.split")
def split(seed: Any, num: Any = 2, alg: Any = None) -> Any:
    """Return several seeds that are derived from one, as the rows of an array."""
    key = _key(seed)
    rows = [[fold(key, row, part) >> 1 for part in (0, 1)] for row in range(int(num))]
    return np.array(rows, np.uint64).astype(whole(seed).dtype)


@op("random.fold_in")
def fold_in(seed: Any, data: Any, alg: Any = None) -> Any:
    """Return a seed that is derived from a seed and a number."""
    key = _key(seed)
    return np.array([fold(key, int(data), part) >> 1 for part in (0, 1)], np.uint64).astype(whole(seed).dtype)


@op("random.stateless_shuffle")
def stateless_shuffle(value: Any, seed: Any, alg: Any = None) -> Any:
    """Return the rows in an order that depends only on `seed`."""
    return _generator(_key(seed)).permutation(whole(value), axis=0)


class Generator:
    """Random numbers of a seed, in the order of the calls. Inside a `map` use `tf.random.uniform`."""

    def __init__(self, seed: int) -> None:
        self._seed, self._count = seed, 0

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        return cls(int(seed))

    def _next(self) -> int:
        self._count += 1
        return fold(self._seed, self._count)

    def uniform(self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = "float32", name: Any = None) -> Any:
        return stateless_uniform(shape, self._next(), minval, maxval, dtype)

    def normal(self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32", name: Any = None) -> Any:
        return stateless_normal(shape, self._next(), mean, stddev, dtype)

    def make_seeds(self, count: Any = 1) -> Any:
        return stateless_uniform([2, int(count)], self._next(), 0, 2**62, "int64")


experimental = SimpleNamespace(
    stateless_split=split,
    stateless_fold_in=fold_in,
    stateless_shuffle=stateless_shuffle,
    Generator=Generator,
    index_shuffle=ps.experimental.index_shuffle,
)

__getattr__ = missing_in(
    "tf.random", globals(), {"get_global_generator": "Write tf.random.Generator.from_seed(seed), or tf.random.uniform."}
)
