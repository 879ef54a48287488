"""Preparation: from a builder's examples to a published folder, with resumption after an early end.

The work is in `incomplete.<version>` beside the final folder. Each split has `<split>.spool` with the examples so far,
and `<split>.state.json` with the progress. When everything is written, the folder gets its final name.

With a data dir at a URL, the work is below `download_dir`. Its files are uploaded, `dataset_info.json` last. The data
set exists from this file on.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.catalog.data_dir import SETTING, SETTING_OF_DOWNLOADS
from penstock.catalog.info import FILE_NAME, DatasetInfo, SplitInfo, shard_name
from penstock.catalog.making import of_any, of_each
from penstock.catalog.progress import Reporter, Stopwatch
from penstock.catalog.recipe import DataRecipe, Each, Skipped
from penstock.catalog.splits import NAME_OF_SPLIT
from penstock.catalog.spool import Spool
from penstock.catalog.writer import write_shards
from penstock.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, InvalidTypeError
from penstock.hints import redacted, size_text
from penstock.io import storage
from penstock.io.storage import is_url
from penstock.io.writing import FULL, writing
from penstock.store.folder import folder_to_write
from penstock.store.lock import Lock, Unlockable, hold, writer_of

_SENDERS = 4  # files in transfer at a time, each in parts of its own
_FORMAT = 1  # format of the work folder; another format restarts the work
_LISTED = 10_000  # skipped inputs that the metadata lists
_working: dict[str, int] = {}


def prepare(builder: DataRecipe, progress: Reporter) -> None:
    """Write the data set of `builder`, unless it is there. Wait if another process writes it.

    Raises:
        InvalidArgumentError: If a key came twice, or if an example does not fit the features.
        DataLossError: If more inputs are unusable than the builder expects.
        FailedPreconditionError: If the disk is full, or if required files are missing. The next call resumes.
    """
    final = builder.data_path
    elsewhere = is_url(final)
    if elsewhere:
        folder_to_write(str(final), builder.name)
    with _place_of_work(builder, progress) as folder:
        if folder is None:
            return
        try:
            with _writing(builder, folder):
                _check_plan(builder, folder)
                described = _write_all(builder, folder, progress)
                if not elsewhere:
                    _remove_work(folder)
                    described.save(folder)
                if not elsewhere and not builder.is_prepared:
                    folder.rename(final)
        except FailedPreconditionError:  # no network, no room, no permission: the examples so far are valid
            raise
        except OSError as error:
            if builder.is_prepared:  # without locks, another process was faster and has written the same
                shutil.rmtree(folder, ignore_errors=True)
                return
            if error.errno in FULL:
                raise _no_space(error, builder, folder) from error
            raise
        except Exception:
            # The builder failed and will change before the next run, so its examples are useless.
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if elsewhere:  # the work is complete, even if the upload fails
            _send(builder, described, folder, progress)


# -- the folder and its lock ------------------------------------------------------------------------------------------


@contextmanager
def _place_of_work(builder: DataRecipe, progress: Reporter) -> Iterator[Path | None]:
    """Yield the locked folder of the work, or None if another process has prepared the data set."""
    final = builder.data_path
    home = _home_of_work(builder)
    folder = home / f"incomplete.{final.name}"
    if _working.get(str(folder)) == threading.get_ident():
        message = f"{builder.name!r} is being prepared, and asks for itself."
        raise FailedPreconditionError(message, hint="A builder cannot load the data set that it prepares.")
    told = False
    while True:
        if builder.is_prepared:
            yield None
            return
        alone: Path | None = None
        with _writing(builder, folder):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                lock = hold(str(folder))
            except FileNotFoundError:  # another process published it after mkdir
                continue
            except Unlockable:
                alone = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=home))
        if alone is not None:
            yield alone
            return
        if lock is None:
            if not told:
                progress.note(f"{builder.name}: another process prepares it, in {folder}; waiting for it")
                told = True
            time.sleep(0.1)
            continue
        if _still_there(folder, lock):
            break
        lock.release()
    _working[str(folder)] = threading.get_ident()
    try:
        yield folder
    finally:
        del _working[str(folder)]
        lock.release()


def _home_of_work(builder: DataRecipe) -> Path:
    final = builder.data_path
    if not is_url(final):
        return final.parent
    assert builder._download_dir is not None
    name = hashlib.blake2b(str(final.parent).encode(), digest_size=8).hexdigest()
    return builder._download_dir / f"prepared.{name}"


def _writing(builder: DataRecipe, folder: Path) -> AbstractContextManager[None]:
    """Convert errors of the system about the folder of the work to errors that name the setting."""
    if is_url(builder._data_dir):
        return writing(folder, f"download_dir {str(builder._download_dir)!r}", SETTING_OF_DOWNLOADS)
    return writing(folder, f"data_dir {str(builder._data_dir)!r}", SETTING)


def _still_there(folder: Path, lock: Lock) -> bool:
    """Return True if the locked folder still has its name, and was not published meanwhile."""
    try:
        return os.path.samestat(os.fstat(lock._handle), folder.stat())
    except FileNotFoundError:
        return False


def _check_plan(builder: DataRecipe, folder: Path) -> None:
    """Remove the work of another builder, or of another version of its code."""
    described = builder.info
    plan = {
        "format": _FORMAT,
        "name": described.full_name,
        "features": described.features.entry(),
        "arguments": builder.arguments,
        "code": _code_of(type(builder)),
    }
    path = folder / "plan.json"
    text = json.dumps(plan, sort_keys=True, default=repr)
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    path.write_text(text, encoding="utf-8")


def _code_of(kind: type) -> str:
    """Return a digest of the source files of a builder."""
    digest = hashlib.sha256()
    for part in kind.__mro__:
        if part.__module__.startswith("penstock.catalog.builder") and "builders" not in part.__module__:
            break
        module = sys.modules.get(part.__module__)
        try:
            digest.update(inspect.getsource(module if module is not None else part).encode())
        except (OSError, TypeError):
            digest.update(part.__qualname__.encode())
    return digest.hexdigest()


# -- splits -----------------------------------------------------------------------------------------------------------


def _write_all(builder: DataRecipe, folder: Path, progress: Reporter) -> DatasetInfo:
    generators = _checked_splits(builder.split_generators())
    splits: dict[str, SplitInfo] = {}
    skipped: dict[str, Any] = {}
    for name in generators:
        splits[name], left_out = _write(builder, folder, name, generators[name], progress)
        if left_out["count"]:
            skipped[name] = left_out
    described = builder.info
    metadata = {**described.metadata, **({"skipped": skipped} if skipped else {})}
    return replace(described, splits=splits, metadata=metadata, download_size=builder.downloaded_bytes)


def _checked_splits(given: Any) -> Mapping[str, Any]:
    """Check the result of `_split_generators` before examples are computed, and return it."""
    if not isinstance(given, Mapping) or not given:
        got = "none" if isinstance(given, Mapping) else type(given).__name__
        message = f"_split_generators() must return a dict from the name of each split to its examples, got {got}."
        raise InvalidTypeError(message, hint='For example {"train": self._generate_examples(folder / "train")}.')
    for name in given:
        if not isinstance(name, str) or not NAME_OF_SPLIT.fullmatch(name) or name == "all":
            message = f"a split cannot be called {name!r}."
            hint = 'Names are of letters, digits, "_" and "-", such as "train"; "all" stands for all of them together.'
            raise InvalidArgumentError(message, hint=hint)
    return given


def _no_examples(name: str, split: str, state: _State) -> InvalidArgumentError:
    skipped = state.skipped["count"]
    also = f"; {skipped:,} {'input was' if skipped == 1 else 'inputs were'} skipped" if skipped else ""
    message = f"split {split!r} of {name!r} has no examples{also}."
    hint = "Are the files where the builder looks for them? A split that has none is left out of _split_generators()."
    return InvalidArgumentError(message, hint=hint)


def _remove_work(folder: Path) -> None:
    """Remove all files except the shards."""
    for entry in folder.glob("*.state.json"):
        entry.unlink()
    (folder / "plan.json").unlink()


def _send(builder: DataRecipe, described: DatasetInfo, folder: Path, progress: Reporter) -> None:
    """Upload the written files to a URL. After an error, the next call of any process uploads the rest.

    Another process that prepares the same data set writes the same files. The first process that has uploaded all of
    them completes the data set. If the old data set is being removed, the upload waits.
    """
    watch = Stopwatch()
    shards = [
        shard_name(described.name, split.name, number, split.num_shards)
        for split in described.splits.values()
        for number in range(split.num_shards)
    ]
    about = folder / "described"
    about.mkdir(exist_ok=True)
    described.save(about)
    beside = sorted(path.name for path in about.iterdir() if path.name != FILE_NAME)
    noted = folder / "sent.txt"
    sent = set(noted.read_text(encoding="utf-8").splitlines()) if noted.is_file() else set()
    final = builder.data_path
    with progress.step(f"{builder.name}: sending to {redacted(str(final))}", len(shards), "files") as step:

        def send(name: str) -> None:
            there = f"{final}/{name}"
            known = name in sent and storage.exists(there) and storage.size(there) == (folder / name).stat().st_size
            if not known and not builder.is_prepared:
                _copy(folder / name, there)
                with noted.open("a", encoding="utf-8") as note:
                    note.write(f"{name}\n")
            step.advance()

        left = shards
        while left and not builder.is_prepared:
            _wait_for_removal(builder, progress)
            with ThreadPoolExecutor(_SENDERS) as pool:
                for _ in pool.map(send, left):
                    pass
            there = set(storage.names_in(final))  # another process may have removed published files
            left = [name for name in shards if name not in there]
    if not builder.is_prepared:
        for name in (*beside, FILE_NAME):
            _copy(about / name, f"{final}/{name}")
    shutil.rmtree(folder)
    with suppress(OSError):  # it contains the work of another version
        folder.parent.rmdir()
    progress.say(f"{builder.name}: sent to {redacted(str(final))}, {watch.seconds:.1f} s")


def _wait_for_removal(builder: DataRecipe, progress: Reporter) -> None:
    told = False
    while writer_of(str(builder.data_path)) is not None:
        if not told:
            progress.note(f"{builder.name}: what was there before is being removed; waiting for that")
            told = True
        time.sleep(1.0)


def _copy(file: Path, url: str) -> None:
    from penstock.io.remote.upload import put

    put(url, file)  # directly, because `storage.open_write` would first write a second file


def _write(
    builder: DataRecipe, folder: Path, split: str, examples: Any, progress: Reporter
) -> tuple[SplitInfo, dict[str, Any]]:
    watch = Stopwatch()
    state = _State(folder / f"{split}.state.json")
    spool_folder = folder / f"{split}.spool"
    if state.shards is None:
        total = builder._num_examples(split)
        total = len(examples) if total is None and isinstance(examples, Each) else total
        spool = Spool(spool_folder, split, shuffled=not builder.info.disable_shuffling)
        try:
            with spool:
                if not state.generated:
                    _fill(builder, split, spool, examples, state, progress, total)
                if not spool.count:
                    raise _no_examples(builder.name, split, state)
                with progress.step(f"{builder.name}: writing {split}", spool.count) as step:
                    written = write_shards(spool, folder, builder.name, split, step, builder._num_shards(split))
        except OSError as error:
            if error.errno not in FULL:
                raise
            raise _no_space(error, builder, folder, _still_needed(spool, folder, split, total)) from error
        state.finish(written)
        shutil.rmtree(spool_folder)
        also = f", {state.skipped['count']} inputs skipped" if state.skipped["count"] else ""
        progress.say(f"{builder.name}: {split}: {written.summary}, {watch.seconds:.1f} s{also}")
    else:
        shutil.rmtree(spool_folder, ignore_errors=True)
    assert state.shards is not None
    return SplitInfo(split, *state.shards), state.skipped


class _State:
    """The progress of a split: skipped inputs, the end of the generation, the written shards."""

    def __init__(self, path: Path) -> None:
        self._path = path
        known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        self.generated: bool = known.get("generated", False)
        self.skipped: dict[str, Any] = known.get("skipped", {"count": 0, "inputs": {}})
        self.shards: tuple[tuple[int, ...], int] | None = None
        if "shards" in known:
            self.shards = tuple(known["shards"][0]), known["shards"][1]

    def skip(self, one: Skipped) -> None:
        self.skipped["count"] += 1
        if len(self.skipped["inputs"]) < _LISTED:
            self.skipped["inputs"][one.name] = one.reason

    def generation_ends(self) -> None:
        self.generated = True
        self._save()

    def finish(self, written: SplitInfo) -> None:
        self.shards = written.shard_lengths, written.num_bytes
        self._save()

    def _save(self) -> None:
        content = {"generated": self.generated, "skipped": self.skipped}
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(content | ({"shards": self.shards} if self.shards else {})), encoding="utf-8")
        part.rename(self._path)


def _fill(
    builder: DataRecipe, split: str, spool: Spool, examples: Any, state: _State, progress: Reporter, total: int | None
) -> None:
    features = builder.info.features
    expected = builder._max_skipped(split)
    with (
        progress.step(f"{builder.name}: generating {split}", total) as step,
        _closing(examples),
    ):
        step.take_up(spool.count)
        made = of_each(examples, features, spool) if isinstance(examples, Each) else of_any(examples, features, spool)
        with closing(made):
            for number, key, content in made:
                if isinstance(content, Skipped):
                    state.skip(content)
                    if expected is not None and state.skipped["count"] > expected:
                        raise _too_many(builder.name, split, expected, state)
                    continue
                spool.add(key, content, number)
                step.advance()
        spool.flush()
    state.generation_ends()


def _closing(examples: Any) -> AbstractContextManager[Any]:
    """Close a generator, and with it its workers, when the loop over it ends early."""
    return closing(examples) if isinstance(examples, Generator) else nullcontext()


def _too_many(name: str, split: str, expected: int, state: _State) -> DataLossError:
    (first, reason), *_ = state.skipped["inputs"].items()
    more = f"more than {expected}" if expected else "some"
    message = f"{more} inputs of {name!r}, split {split!r}, cannot be used; the first is {first}: {reason}"
    hint = "Were the files changed, or cut short? A builder says with _max_skipped() how many it expects."
    return DataLossError(message, hint=hint)


def _still_needed(spool: Spool, folder: Path, split: str, total: int | None) -> str:
    """Return the space that a split still needs, in words: each example is in the spool, then also in a shard."""
    if not spool.count:
        return ""
    whole = spool.num_bytes * max(total or 0, spool.count) // spool.count
    written = sum(path.stat().st_size for path in folder.glob(f"*-{split}.tfrecord-*"))
    needed = size_text(max(2 * whole - spool.num_bytes - written, 0))
    return f", and split {split!r} needs {'at least' if total is None else 'about'} {needed} more"


def _no_space(error: OSError, builder: DataRecipe, folder: Path, needed: str = "") -> FailedPreconditionError:
    setting = "download_dir" if is_url(builder.data_path) else "data_dir"
    free = size_text(shutil.disk_usage(folder).free)
    message = f"the disk is full: {free} are left{needed} ({error.strerror})."
    hint = f"Make room, or choose another {setting}. What was done is kept, and the next call goes on with it."
    return FailedPreconditionError(message, hint=hint, file=str(error.filename or folder))
