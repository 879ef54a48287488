"""distributed_save: workers write a saved data set, each worker the ranges that it computes."""

from __future__ import annotations

import json
import pickle
import secrets
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.block.structure import LEAF
from penstock.dataset.base import inner
from penstock.dataset.dataset import Dataset
from penstock.errors import Context, InvalidArgumentError, InvalidTypeError, PenstockError, annotate, user_location
from penstock.io import storage
from penstock.io.compression import AUTO, codec_of
from penstock.physical.stretch import Stretch, failure
from penstock.plan.distribution import Distribute, Remote, parted
from penstock.plan.fingerprint import fingerprint
from penstock.plan.inputs import relaxed
from penstock.plan.node import check_ends
from penstock.rewrite.driver import optimise
from penstock.runtime.run import RunSettings
from penstock.runtime.whole_pass import whole_pass
from penstock.store.chunk import Chunk
from penstock.store.chunk_files import ChunkWriter
from penstock.store.column_buffer import Alike, stored_as
from penstock.store.content_key.digest import files_of
from penstock.store.folder import folder_to_write
from penstock.store.saved_writer import SavedWriter

if TYPE_CHECKING:
    from penstock.delivery.handle import Handle
    from penstock.delivery.ray_service import RayHandle


def distributed_save(
    dataset: Dataset,
    path: Any,
    service: str | Handle | RayHandle = "local",
    *,
    workers: int | str = "auto",
    compression: str | None = None,
) -> None:
    """Compute a data set with workers, and write its elements to a folder, from which `Dataset.load` reads them.

    The elements are those of `Dataset.save`, in the same order; only the sizes of the files differ. If a worker dies,
    another one writes its elements. The manifest is written last: a folder that exists is replaced at the end. If a
    step needs the whole stream (see `Dataset.distribute`), the workers compute the steps before it, and this process
    writes.

    Args:
        dataset: The data set.
        path: The folder, or the URL of one. On Ray with several nodes, all nodes need access to it.
        service: As in `Dataset.distribute`.
        workers: As in `Dataset.distribute`.
        compression: None, `"LZ4"` or `"ZSTD"`.

    Raises:
        InvalidArgumentError: If the data set is infinite, or if `compression` is `"AUTO"`.
        InvalidTypeError: If a file cannot store the elements.

    Example:
        >>> import tempfile, penstock as ps
        >>> path = tempfile.mkdtemp()
        >>> ps.service.distributed_save(ps.Dataset.range(5).map(lambda x: x * x), path, workers=2)
        >>> [int(x) for x in ps.Dataset.load(path)]
        [0, 1, 4, 9, 16]
    """
    where = user_location()
    try:
        if not isinstance(dataset, Dataset):
            message = f"distributed_save takes a Dataset, got {type(dataset).__name__}."
            raise InvalidTypeError(message, hint="distributed_save(dataset, path, service='local')")
        _save(dataset, path, service, workers, compression)
    except PenstockError as error:
        annotate(error, Context("distributed_save", where))
        raise


def _save(dataset: Dataset, path: Any, service: Any, workers: Any, compression: str | None) -> None:
    folder, codec = folder_to_write(path, "distributed_save"), codec_of(compression)
    folder = folder if storage.is_url(folder) else str(Path(folder).absolute())
    if codec == AUTO:
        message = "distributed_save needs to know how files are compressed, got compression='AUTO'."
        raise InvalidArgumentError(message, hint="None, 'LZ4' or 'ZSTD'.")
    check_ends("distributed_save", dataset.cardinality())
    remote = dataset.distribute(service, workers=workers)
    options = dataset._options
    node = remote._plan
    assert isinstance(node, Distribute)
    plan, cut = parted(replace(node, input=optimise(dataset._plan, options)))
    if not isinstance(plan, Remote) or cut.rest:
        remote.save(folder, compression)
        return
    spec = None if dataset._plan.spec is None else stored_as(dataset._plan.spec)
    writer = SavedWriter(
        folder,
        plan=fingerprint(dataset._plan, options.seed, options.deterministic),
        codec=codec,
        spec=spec,
        sources=files_of(dataset._plan),
    )
    epoch = dataset._next_epoch
    dataset._next_epoch += 1
    try:
        plan = replace(plan, finish=_Write(folder, writer.run(), codec, spec))
        found = spec
        with closing(whole_pass(plan, options, epoch, RunSettings(dataset=inner))) as blocks:
            for block in blocks:
                for written in block.elements():
                    chunks, its_spec = pickle.loads(written)
                    found = its_spec if found is None else _both(found, its_spec)
                    writer.adopt([Chunk.from_json(json.loads(chunk)) for chunk in chunks], found)
        writer.commit()
    finally:
        writer.discard()


def _both(before: Any, spec: Any) -> Any:
    found = relaxed(before, spec)
    if found is None:
        message = f"An element of {spec} cannot be stored after elements of {before}."
        raise InvalidTypeError(message, hint="A saved data set has elements of one kind: convert them in a map.")
    return found


@dataclass(frozen=True)
class _Write:
    """A function for workers: write a range to files, and return an element that names these files."""

    folder: str
    run: str
    codec: str | None
    spec: Any

    def __call__(self, start: int, parts: Sequence[Stretch]) -> Stretch:
        alike, writer = Alike(self.spec), ChunkWriter(self.folder, self.codec)
        chunks: list[str] = []
        for part in parts:
            for piece in part.pieces():
                if isinstance(piece, Exception):
                    return failure(piece)
                try:
                    block, specs = alike(piece)
                except PenstockError as error:
                    return failure(error)
                # The random number gives other names to the files of a worker that computes this range again.
                name = f"{self.run}/shard_00000_{start:012d}{len(chunks):06d}{secrets.randbelow(10**12):012d}.arrow"
                chunks.append(json.dumps(writer.write(name, 0, block, specs).to_json()))
        content = pickle.dumps((chunks, alike.spec))
        return Stretch(Block(LEAF, [BytesColumn.from_values([content], (), 1)], 1))
