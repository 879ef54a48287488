"""penstock for JAX: the state of a data set in Orbax checkpoints.

`Dataset.to_jax` gives the arrays. `CheckpointSave(loader)` and `CheckpointRestore(loader)` are items of a checkpoint of
`orbax.checkpoint`, beside the model's: each process writes where its own part of the data is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import UnknownNameError

if TYPE_CHECKING:
    CheckpointHandler: Any
    CheckpointSave: Any
    CheckpointRestore: Any

__all__ = ["CheckpointHandler", "CheckpointRestore", "CheckpointSave"]
_PLACES = {"CheckpointHandler": 0, "CheckpointSave": 1, "CheckpointRestore": 2}


def __getattr__(name: str) -> Any:
    """The classes are made with Orbax, when they are asked for."""
    if name not in _PLACES:
        message = f"penstock.jax has no {name!r}."
        raise UnknownNameError(message, hint=f"It has {', '.join(__all__)}.")
    from penstock.adaptors.orbax import orbax_types

    return orbax_types()[_PLACES[name]]


def __dir__() -> list[str]:
    return sorted(__all__)
