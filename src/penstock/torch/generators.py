"""The generators of torch, numpy and Python's `random` in a worker: seeds as torch sets them, and states as bytes."""

from __future__ import annotations

import random
import struct
from importlib import import_module
from typing import Any

import numpy as np

_ALL, _TORCH = b"\1", b"\0"  # first bytes of a state
_WORDS, _KEYS = 4 * 625, 4 * 624  # bytes of the words of `random` and of numpy
# of `random`: is there a next normal number, and the number; of numpy: the position, and the same two
_REST = struct.Struct("<?di?d")
_RANDOM = struct.Struct("<625I")  # the words of `random`
_OTHERS = _WORDS + _KEYS + _REST.size


def seed_all(base: int, worker: int) -> None:
    """Seed a worker as torch does. Of torch's generators, only the CPU's: the others cost more than all of these."""
    random.seed(base + worker)
    import_module("torch").default_generator.manual_seed(base + worker)
    np.random.seed(import_module("torch.utils.data._utils.worker")._generate_state(base, worker))


def states() -> bytes:
    """Return the states of all generators."""
    _, words, gauss = random.getstate()
    _, keys, at, has_gauss, cached = np.random.get_state()
    rest = _REST.pack(gauss is not None, gauss or 0.0, at, has_gauss, cached)
    others = _RANDOM.pack(*words) + np.asarray(keys, np.uint32).tobytes() + rest
    return _ALL + others + torch_state(import_module("torch").get_rng_state())[1:]


def torch_state(found: Any) -> bytes:
    """Return the state of torch's generator, a tensor, as `set_states` takes it."""
    return _TORCH + bytes(found.numpy())


def set_states(found: bytes) -> None:
    """Set what `states` or `torch_state` returned."""
    import_module("torch").set_rng_state(as_tensor(found))
    if found[:1] == _ALL:
        keys = np.frombuffer(found, np.uint32, 624, 1 + _WORDS)
        has, gauss, at, has_gauss, cached = _REST.unpack_from(found, 1 + _WORDS + _KEYS)
        random.setstate((3, _RANDOM.unpack_from(found, 1), gauss if has else None))
        np.random.set_state(("MT19937", keys, at, has_gauss, cached))


def as_tensor(found: bytes) -> Any:
    """Return the state of torch's generator."""
    torch, start = import_module("torch"), 1 + _OTHERS * (found[:1] == _ALL)
    return torch.frombuffer(bytearray(found[start:]), dtype=torch.uint8)
