"""The processes of a JAX program over several hosts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from penstock.adaptors.ranks import check_alike


def own_part(jax: Any) -> tuple[int, int]:
    """Number of processes, and which of them this one is."""
    return jax.process_count(), jax.process_index()


def agree(mine: dict[str, Any]) -> None:
    """Raise FailedPreconditionError in every process unless all have the same identity. It waits for all of them."""
    from penstock.adaptors.framework import framework

    gather = framework("jax.experimental.multihost_utils", "to_jax", "jax").process_allgather
    text = np.frombuffer(json.dumps(mine).encode(), np.uint8)
    lengths = np.ravel(gather(np.array([text.size], np.int32)))
    padded = np.zeros(int(lengths.max()), np.uint8)
    padded[: text.size] = text
    rows = np.asarray(gather(padded)).reshape(len(lengths), -1)
    check_alike([json.loads(row[:size].tobytes()) for row, size in zip(rows, lengths, strict=True)])
