"""penstock for torch: a DataLoader with torch's signature, run by this engine.

To switch from torch, import `DataLoader` from `penstock.torch` instead of `torch.utils.data`. Nothing else changes.
`open_image` opens an image as Pillow does, and decodes it in a kernel.
`Dataset.to_torch` is for pipelines written with penstock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import UnknownNameError

if TYPE_CHECKING:
    from penstock.torch.vision.opened import open_image

    DataLoader: Any

__all__ = ["DataLoader", "open_image"]


def __getattr__(name: str) -> Any:
    """Return the `DataLoader` class or `open_image`.

    The class is derived from torch's class at the first access, so that torch is imported late. Pillow, too.
    """
    if name == "open_image":
        from penstock.torch.vision.opened import open_image

        return open_image
    if name != "DataLoader":
        message = f"penstock.torch has no {name!r}."
        raise UnknownNameError(message, hint=f"It has {', '.join(__all__)}.")
    from penstock.torch.loader import data_loader_type

    return data_loader_type()


def __dir__() -> list[str]:
    return sorted(__all__)
