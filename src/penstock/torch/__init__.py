"""penstock for torch: a DataLoader with torch's signature, run by this engine.

`from penstock.torch import DataLoader` in place of `from torch.utils.data import DataLoader` is all that changes.
`Dataset.to_torch` is for pipelines written with penstock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import UnknownNameError

if TYPE_CHECKING:
    DataLoader: Any

__all__ = ["DataLoader"]


def __getattr__(name: str) -> Any:
    """The class is derived from torch's, when it is asked for."""
    if name != "DataLoader":
        message = f"penstock.torch has no {name!r}."
        raise UnknownNameError(message, hint=f"It has {', '.join(__all__)}.")
    from penstock.torch.loader import data_loader_type

    return data_loader_type()


def __dir__() -> list[str]:
    return sorted(__all__)
