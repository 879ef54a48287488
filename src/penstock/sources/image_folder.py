"""The image files of a directory, with class numbers from its folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, DenseColumn
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.block.structure import LEAF, Structure, flatten
from penstock.io import storage
from penstock.sources.source import FetchedSource

_ENOUGH = 1 << 20  # bytes of files that are returned together
_PAIR = flatten((0, 0))[1]


@dataclass(frozen=True)
class ImageFolderSource(FetchedSource):
    """The contents of files, as (bytes, label) if there are labels. A file that cannot be read is one failure."""

    files: tuple[str, ...] = field(repr=False)
    labels: tuple[int, ...] | None = field(repr=False)
    directory: str

    kind: ClassVar[str] = "ImageFolderDataset"

    @property
    def label(self) -> str:
        return f"{self.kind}({self.directory})"

    @property
    def _structure(self) -> Structure:
        return LEAF if self.labels is None else _PAIR

    @property
    def spec(self) -> Any:
        image = TensorSpec((), bytes)
        return image if self.labels is None else (image, TensorSpec((), np.int64))

    @property
    def cardinality(self) -> int:
        return len(self.files)

    def fetch(self, indices: Sequence[int]) -> list[Block | Exception]:
        contents: list[bytes] = []
        total = 0
        failed: list[Block | Exception] = []
        for index in indices:
            try:
                with storage.open_read(self.files[index]) as file:
                    contents.append(file.read())
            except Exception as raised:
                failed.append(raised)
                break
            total += len(contents[-1])
            if total > _ENOUGH:
                break
        return [self._block(indices[: len(contents)], contents), *failed] if contents else failed

    def _block(self, indices: Sequence[int], contents: list[bytes]) -> Block:
        lengths = np.array([len(content) for content in contents], np.int64)
        starts, which = np.zeros(len(contents), np.int64), np.arange(len(contents), dtype=np.int32)
        buffers = tuple(np.frombuffer(content, np.uint8) for content in contents)
        columns: list[Any] = [BytesColumn(buffers, starts, lengths, which if len(buffers) > 1 else None)]
        if self.labels is not None:
            columns.append(DenseColumn(np.array([self.labels[index] for index in indices], np.int64)))
        names = tuple(self.files[index] for index in indices)
        return Block(self._structure, columns, len(contents), Origin(names, which.astype(np.int64), starts))
