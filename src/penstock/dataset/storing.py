"""Methods of `Dataset`: save, load, snapshot."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

from penstock.dataset.base import Base, inner
from penstock.errors import Context, PenstockError, UnimplementedError, annotate, user_location
from penstock.io import storage
from penstock.io.compression import codec_of
from penstock.plan.inputs import Scan
from penstock.plan.node import check_ends, check_function
from penstock.plan.storing import Followed, Snapshot, folder_to_write

if TYPE_CHECKING:
    from penstock.cache.writer import SavedWriter
    from penstock.dataset.dataset import Dataset

Path = str | os.PathLike[str]


class Storing(Base):
    """Mixed into `Dataset`."""

    def save(
        self,
        path: Path,
        compression: str | None = None,
        shard_func: Callable[..., Any] | None = None,
        checkpoint_args: dict[str, Any] | None = None,
    ) -> None:
        """Run a pass and write its elements into `path`, a folder or a URL of one, for `Dataset.load`.

        The folder holds Arrow IPC files, which Arrow opens as they are, and `manifest.json`, which says what is in
        them. Elements go to one shard, in order, or each to the shard whose number `shard_func(element)` returns.
        `compression` is None, "LZ4", "ZSTD", or "AUTO" for LZ4 where it saves a tenth or more; tf.data's "SNAPPY" is
        LZ4 here and its "GZIP" ZSTD. Without compression a load maps the files and copies nothing.

        >>> import tempfile, penstock as ps
        >>> path = tempfile.mkdtemp()
        >>> ps.Dataset.range(5).map(lambda x: (x, x * x)).save(path)
        >>> [(int(a), int(b)) for a, b in ps.Dataset.load(path)]
        [(0, 0), (1, 1), (2, 4), (3, 9), (4, 16)]

        The manifest is written last: what was at `path` before is there until then, and gone afterwards. An element
        that fails ends the pass with its error, and nothing changes at `path`. Raises InvalidArgumentError for a data
        set without end, InvalidTypeError for elements that cannot be stored, UnimplementedError for `checkpoint_args`.
        """
        from penstock.cache.column_buffer import stored_as
        from penstock.cache.writer import SavedWriter
        from penstock.plan.content_key import files_of
        from penstock.plan.fingerprint import fingerprint

        label, where = "save", user_location()
        try:
            folder, codec = folder_to_write(path, "save"), codec_of(compression)
            self._check_save(folder, shard_func, checkpoint_args)
            spec = self._plan.spec
            writer = SavedWriter(
                folder,
                plan=fingerprint(self._plan, self._options.seed, self._options.deterministic),
                codec=codec,
                spec=None if spec is None else stored_as(spec),
                sources=files_of(self._plan),
            )
            self._write(writer, shard_func, Context(label, where))
        except PenstockError as error:
            annotate(error, Context(label, where))
            raise

    def _check_save(self, folder: str, shard_func: Any, checkpoint_args: Any) -> None:
        if checkpoint_args is not None:
            message = "save takes no checkpoint_args: it writes the whole data set, or nothing."
            raise UnimplementedError(message, hint="Leave it out; save parts with take and skip, each to its folder.")
        if shard_func is not None:
            check_function("shard_func", shard_func, "save")
        check_ends("save", self._plan.cardinality)

    def _write(self, writer: SavedWriter, shard_func: Any, context: Context) -> None:
        from penstock.physical.key_function import KeyFunction
        from penstock.runtime.run import Settings
        from penstock.runtime.whole_pass import whole_pass

        epoch = self._next_epoch
        self._next_epoch += 1
        vectorise = self._options.experimental_optimization.map_vectorization.enabled
        shard_of = None
        if shard_func is not None:
            shard_of = KeyFunction(shard_func, "shard_func", "save", context.where, vectorise=vectorise)
        count = 0
        try:
            with closing(whole_pass(self._plan, self._options, epoch, Settings(dataset=inner))) as blocks:
                for block in blocks:
                    shards, errors = (None, {}) if shard_of is None else shard_of(block, count)
                    if errors:
                        raise errors[min(errors)]
                    writer.add(block, shards)
                    count += block.size
            writer.commit()
        finally:
            writer.discard()

    @staticmethod
    def load(
        path: Path,
        element_spec: Any = None,
        compression: str | None = None,
        reader_func: Callable[[Any], Any] | None = None,
        wait: bool = False,
    ) -> Dataset:
        """The elements that `save` wrote to `path`, a folder or a URL of one; or those of a snapshot's own folder.

        They have numbers: `len`, `at` and `shuffle(ALL)` read nothing but what is asked for. Elements of one shard come
        in the order in which they were saved; of several, one of each comes in turn, the shards by ascending number.
        `reader_func` may order them otherwise: it gets a Dataset of the shards, each a Dataset, and returns one of
        elements.

        >>> import tempfile, penstock as ps
        >>> path = tempfile.mkdtemp()
        >>> ps.Dataset.range(6).save(path, shard_func=lambda x: x // 3)
        >>> [int(x) for x in ps.Dataset.load(path)], int(ps.Dataset.load(path)[-1])
        ([0, 3, 1, 4, 2, 5], 5)
        >>> ds = ps.Dataset.load(path, reader_func=lambda shards: shards.flat_map(lambda shard: shard))
        >>> [int(x) for x in ds]
        [0, 1, 2, 3, 4, 5]

        `element_spec` and `compression` are known from the manifest; where they are given they are compared with it.
        With `wait` the call waits until there is something. What a snapshot or cache holds that another program still
        writes comes as it is written, also from a URL, and ends when it is complete (for a `reader_func` the call waits
        for that). Without `wait` it is what is there so far, with a warning. Arrays cannot be written to. The checksum
        of a file is looked at when the first of its elements is read.

        Raises NotFoundError where nothing was saved, DataLossError for a damaged manifest, and in the place of its
        elements for a damaged file; InvalidTypeError and InvalidArgumentError for another spec or compression.
        """
        from penstock.dataset.saved import check_compression, checked_spec, so_far, wait_for
        from penstock.io.saved.manifest import read_manifest
        from penstock.plan.storing import read_by
        from penstock.sources.saved import SavedSource

        where = user_location()
        try:
            folder = storage.as_path(path)
            if reader_func is not None:
                check_function("reader_func", reader_func, "load")
            codec_of(compression)
            if wait:
                wait_for(folder, complete=reader_func is not None)
            manifest = read_manifest(folder)
            if not manifest.complete and wait:
                spec = checked_spec(element_spec, manifest) or manifest.element_spec()
                return Base._of(Followed(folder=folder, element_spec=spec))
            if not manifest.complete:
                manifest = so_far(folder)
            check_compression(compression, manifest)
            source = SavedSource.whole(folder, manifest, checked_spec(element_spec, manifest))
            if reader_func is None:
                return Base._of(Scan(source=source))
            found = read_by(reader_func, source, Base._of)
        except PenstockError as error:
            annotate(error, Context("load", where))
            raise
        assert isinstance(found, Base)
        return cast("Dataset", found)

    def snapshot(
        self,
        path: Path,
        compression: str | None = "AUTO",
        reader_func: Callable[[Any], Any] | None = None,
        shard_func: Callable[..., Any] | None = None,
    ) -> Dataset:
        """What a pass gives is written below `path`, a folder or a URL, and serves all later ones, in every process.

        A snapshot belongs to what it was made of: the steps, their functions and what these use, the arrays, the sizes
        and times of the files, the seed. Another data set may use the same `path`, and has a snapshot of its own there.

        >>> import tempfile, penstock as ps
        >>> calls = []
        >>> ds = ps.Dataset.range(3).map(lambda x: calls.append(x) or x * 2).snapshot(tempfile.mkdtemp())
        >>> [[int(x) for x in ds] for epoch in range(3)], len(calls)
        ([[0, 2, 4], [0, 2, 4], [0, 2, 4]], 3)

        Every pass is that of epoch 0: shuffle behind it. A pass that stops early, is killed, or meets an element that
        fails, leaves what it has given so far: the next pass begins with that, goes on behind it and writes the rest.
        While a process writes, others follow it, as `Options.second_writer` says; passes beside each other in one
        process, or in free order, make for themselves what is not written yet. Without room or permission a pass goes
        on without writing, and warns.

        Arrays cannot be written to. `compression` and `shard_func` are those of `save`; `reader_func` is that of
        `load`, and orders the passes over a complete snapshot. Before that they come in the order of the data set; with
        a `shard_func`, what an earlier pass has left comes in the order of its files. What a function reads from
        elsewhere is not seen: delete the folder when that changes.

        Raises InvalidArgumentError for a data set without end, InvalidTypeError, in the place of the first element,
        for elements that cannot be stored; DataLossError, in the place of its elements, for a damaged file.
        """
        return self._then(Snapshot, path=path, compression=compression, reader_func=reader_func, shard_func=shard_func)
