"""Methods of `Dataset`: save, load, snapshot."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

from penstock.dataset.base import Base, Located, inner
from penstock.errors import UnimplementedError, user_location
from penstock.io import storage
from penstock.io.compression import codec_of
from penstock.plan.inputs import Scan
from penstock.plan.node import check_ends, check_function
from penstock.plan.storing import Followed, Snapshot, read_by
from penstock.store.folder import folder_to_write

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset
    from penstock.store.saved_writer import SavedWriter

Path = str | os.PathLike[str]


class Storing(Base):
    """Methods that store elements."""

    def save(
        self,
        path: Path,
        compression: str | None = None,
        shard_func: Callable[..., Any] | None = None,
        checkpoint_args: dict[str, Any] | None = None,
    ) -> None:
        """Write all elements to a folder, from which `Dataset.load` reads them.

        The folder contains Arrow IPC files and `manifest.json`, which describes them. The manifest is written last: a
        folder that exists is replaced at the end. If an element fails, the call raises its error, and the folder does
        not change.

        Args:
            path: The folder, or the URL of one.
            compression: None, `"LZ4"`, `"ZSTD"`, or `"AUTO"`, which means LZ4 if it saves at least a tenth. tf.data's
                `"SNAPPY"` means LZ4, and its `"GZIP"` means ZSTD. Without compression, `load` maps the files into
                memory without a copy.
            shard_func: A function of an element that returns the number of its shard. Default: one shard.
            checkpoint_args: Not supported.

        Raises:
            InvalidArgumentError: If the data set is infinite, or if `compression` is another string.
            InvalidTypeError: If a file cannot store the elements.
            UnimplementedError: If `checkpoint_args` is passed.

        Example:
            >>> import tempfile, penstock as ps
            >>> path = tempfile.mkdtemp()
            >>> ps.Dataset.range(5).map(lambda x: (x, x * x)).save(path)
            >>> [(int(a), int(b)) for a, b in ps.Dataset.load(path)]
            [(0, 0), (1, 1), (2, 4), (3, 9), (4, 16)]
        """
        from penstock.plan.fingerprint import fingerprint
        from penstock.store.column_buffer import stored_as
        from penstock.store.content_key.digest import files_of
        from penstock.store.saved_writer import SavedWriter

        with Located("save"):
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
            self._write(writer, shard_func)

    def _check_save(self, folder: str, shard_func: Any, checkpoint_args: Any) -> None:
        if checkpoint_args is not None:
            message = "save takes no checkpoint_args: it writes the whole data set, or nothing."
            raise UnimplementedError(message, hint="Leave it out; save parts with take and skip, each to its folder.")
        if shard_func is not None:
            check_function("shard_func", shard_func, "save")
        check_ends("save", self._plan.cardinality)

    def _write(self, writer: SavedWriter, shard_func: Any) -> None:
        from penstock.physical.key_function import KeyFunction
        from penstock.plan.node import StepName
        from penstock.runtime.run import RunSettings
        from penstock.runtime.whole_pass import whole_pass

        epoch = self._next_epoch
        self._next_epoch += 1
        vectorise = self._options.experimental_optimization.map_vectorization.enabled
        step = StepName("save", user_location())
        shard_of = None if shard_func is None else KeyFunction(shard_func, "shard_func", step, vectorise=vectorise)
        count = 0
        try:
            with closing(whole_pass(self._plan, self._options, epoch, RunSettings(dataset=inner))) as blocks:
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
        """Create a data set of the elements that `save` has written to a folder.

        The elements have an index. Elements of one shard are in the order in which they were saved. With several
        shards, `load` takes one element from each shard in turn. Checksums are verified when the first element of a
        file is read. Arrays are read-only.

        Args:
            path: The folder, or the URL of one. The folder of a snapshot works too.
            element_spec: Spec of an element. It is compared with the manifest. Default: the spec of the manifest.
            compression: Compression of the files. It is compared with the manifest.
            reader_func: A function of a data set of the shards, each of which is a data set, that returns a data set of
                elements. It replaces the default order.
            wait: If True, and if another process is still writing the folder, wait for its first elements, and yield
                each element when it is written. If False, the data set contains the elements that are complete, and
                penstock warns. Default: False.

        Returns:
            A data set of the saved elements.

        Raises:
            NotFoundError: If the folder contains no saved data set.
            DataLossError: If the manifest is damaged, or, during the iteration, if a file is damaged.
            InvalidTypeError: If `element_spec` differs from the manifest.
            InvalidArgumentError: If `compression` differs from the manifest.

        Example:
            >>> import tempfile, penstock as ps
            >>> path = tempfile.mkdtemp()
            >>> ps.Dataset.range(6).save(path, shard_func=lambda x: x // 3)
            >>> [int(x) for x in ps.Dataset.load(path)], int(ps.Dataset.load(path)[-1])
            ([0, 3, 1, 4, 2, 5], 5)
            >>> ds = ps.Dataset.load(path, reader_func=lambda shards: shards.flat_map(lambda shard: shard))
            >>> [int(x) for x in ds]
            [0, 1, 2, 3, 4, 5]
        """
        from penstock.dataset.saved import check_compression, checked_spec, so_far, wait_for
        from penstock.store.manifest import read_manifest
        from penstock.store.saved_source import SavedSource

        with Located("load"):
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
        assert isinstance(found, Base)
        return cast("Dataset", found)

    def snapshot(
        self,
        path: Path,
        compression: str | None = "AUTO",
        reader_func: Callable[[Any], Any] | None = None,
        shard_func: Callable[..., Any] | None = None,
    ) -> Dataset:
        """Write the elements of the first epoch to a folder, and read them in all later epochs and in other processes.

        A snapshot belongs to the pipeline before it: the steps, their functions and the values these use, the arrays,
        the sizes and times of the files, and the seed. A different pipeline may use the same `path` and has a snapshot
        of its own there. penstock does not notice changes of data that a function reads from elsewhere: delete the
        folder after such a change.

        An iteration that stops early, or that meets an element that fails, keeps the elements written so far. The next
        iteration reads these elements, computes the others and writes them. While one process writes, other processes
        read its elements as `Options.second_writer` says. If the disk is full or the folder is read-only, the iteration
        continues without writing, and penstock warns. Every epoch yields the same elements: put `shuffle` and random
        augmentation after this step.

        Args:
            path: The folder, or the URL of one.
            compression: As in `save`. Default: `"AUTO"`.
            reader_func: As in `load`. It orders the elements of a complete snapshot.
            shard_func: As in `save`.

        Returns:
            A data set of the same elements. Arrays are read-only.

        Raises:
            InvalidArgumentError: If the data set is infinite.
            InvalidTypeError: If, during the iteration, a file cannot store the elements.
            DataLossError: If, during the iteration, a file is damaged.

        Example:
            >>> import tempfile, penstock as ps
            >>> calls = []
            >>> ds = ps.Dataset.range(3).map(lambda x: calls.append(x) or x * 2).snapshot(tempfile.mkdtemp())
            >>> [[int(x) for x in ds] for epoch in range(3)], len(calls)
            ([[0, 2, 4], [0, 2, 4], [0, 2, 4]], 3)
        """
        return self._then(Snapshot, path=path, compression=compression, reader_func=reader_func, shard_func=shard_func)
