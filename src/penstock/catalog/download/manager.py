"""DownloadManager: provides a builder with its files."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from penstock.catalog.download import archive
from penstock.catalog.download.fetch import Patience, fetch, wrong_size
from penstock.catalog.nests import each_of
from penstock.catalog.progress import ProgressStep, Reporter
from penstock.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, PenstockError
from penstock.hints import size_text
from penstock.io.writing import FULL, writing
from penstock.store.lock import Unlockable, hold

_AT_ONCE = 4
_CHUNK = 1 << 20
_SETTING = (
    "Choose another folder with download_and_prepare(download_dir=…) (--download-dir on the command line); "
    "by default it is `downloads` in the data_dir."
)


@dataclass(frozen=True)
class Checksum:
    """Properties by which a downloaded file is verified.

    Attributes:
        size: Size in bytes.
        sha256: SHA-256 in hexadecimal.
        filename: Name of the file, if its address does not contain it.

    Example:
        >>> Checksum(size=3, sha256="ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad").size
        3
    """

    size: int | None = None
    sha256: str | None = None
    filename: str | None = None


@dataclass
class DownloadManager:
    """Downloads, verifies, caches and unpacks the files of one data set.

    Files are stored in `folder` under their checksum, so no file is downloaded twice and versions never mix.
    `checksums` are by address. A file without a checksum is stored under its address.

    Example:
        >>> import pathlib, tempfile, zipfile, penstock as ps
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> with zipfile.ZipFile(folder / "pets.zip", "w") as archive:
        ...     archive.writestr("cat.txt", "meow")
        >>> manager = ps.catalog.DownloadManager(folder / "downloads", "pets")
        >>> (manager.extract(folder / "pets.zip") / "cat.txt").read_text()
        'meow'
    """

    folder: Path
    name: str = ""
    checksums: Mapping[str, Checksum] = field(default_factory=dict)
    manual_dir: Path | None = None
    instructions: str | None = None
    progress: Reporter | None = None
    patience: Patience = field(default_factory=Patience)
    downloaded_bytes: int = 0

    def download(self, urls: Any) -> Any:
        """Download files.

        Args:
            urls: An address, or a nest (list, dict) of addresses.

        Returns:
            The paths of the files, in the structure of `urls`.

        Raises:
            DataLossError: If a file has the wrong size or checksum. The file is kept under another name.
            NotFoundError: If the server has no such file.
            FailedPreconditionError: If a file cannot be downloaded.
        """
        addresses: dict[str, None] = {}
        each_of(urls, addresses.setdefault)
        distinct = list(addresses)
        sizes = [self._checksum(url).size for url in distinct]
        self._check_space(distinct, sizes)
        total = sum(size for size in sizes if size) if all(sizes) else None
        with self._progress().step(f"{self.name}: downloading {_files(len(distinct))}", total, "bytes") as step:
            shared = _Total(step, {} if total is None else None)
            with ThreadPoolExecutor(min(_AT_ONCE, max(len(distinct), 1))) as pool:
                found = dict(zip(distinct, pool.map(lambda url: self._one(url, shared), distinct), strict=True))
        self.downloaded_bytes += sum(path.stat().st_size for path in found.values())
        return each_of(urls, found.__getitem__)

    def extract(self, paths: Any) -> Any:
        """Unpack archives into folders, and return the folders for the nest of paths that `download` returned."""
        return each_of(paths, self._extracted)

    def _extracted(self, path: str | os.PathLike[str]) -> Path:
        to = Path(f"{path}.extracted")
        if not to.is_dir():
            title = f"{self.name}: unpacking {Path(path).name}"
            with self._writing(), self._locked(to), self._progress().step(title, None, "bytes") as step:
                if not to.is_dir():
                    archive.extract(path, to, advance=step.advance)
        return to

    def download_and_extract(self, urls: Any) -> Any:
        """Return `extract(download(urls))`. Files that are no archives are returned as they are."""
        return each_of(self.download(urls), lambda path: self._extracted(path) if archive.kind_of(path) else path)

    def iter_archive(self, path: str | os.PathLike[str]) -> Iterator[tuple[str, BinaryIO]]:
        """Yield the name and the content of each file in an archive as a stream."""
        return archive.iter_archive(path)

    def manual(self, *names: str) -> Path:
        """Return the folder of files that the user must download.

        Args:
            *names: Files that the folder must contain.

        Returns:
            The path of the folder.

        Raises:
            FailedPreconditionError: If files are missing. The message names them and the folder.
        """
        folder = self.manual_dir or self.folder / "manual"
        missing = [name for name in names if not (folder / name).exists()]
        if missing or not folder.is_dir():
            what = ", ".join(missing) or "files"
            message = f"{self.name!r} needs files that you must download yourself: {what}."
            hint = f"{(self.instructions or '').strip()} Put them into {folder}, or name another manual_dir.".strip()
            raise FailedPreconditionError(message, hint=hint)
        return folder

    # -- implementation ---------------------------------------------------------------------------------------------

    def _progress(self) -> Reporter:
        if self.progress is None:
            self.progress = Reporter()
        return self.progress

    def _checksum(self, url: str) -> Checksum:
        return self.checksums.get(url, Checksum())

    def place(self, url: str) -> Path:
        """Return the path of the file of an address."""
        known = self._checksum(url)
        key = known.sha256 or hashlib.sha256(url.encode()).hexdigest()
        name = known.filename or unquote(Path(urlsplit(url).path).name) or "file"
        name = re.sub(r"[^\w.+-]", "_", name).lstrip(".")[-80:] or "file"
        return self.folder / key[:16] / name

    def _one(self, url: str, shared: _Total) -> Path:
        target, known = self.place(url), self._checksum(url)
        if target.is_file():
            shared.take_up(target.stat().st_size, url)
            return target
        with self._writing(), self._locked(target):
            if target.is_file():
                shared.take_up(target.stat().st_size, url)
                return target
            part = target.with_name(f"{target.name}.part")
            if "://" not in url or url.startswith("file://"):
                self._copy(url, part, shared)
                size, sha256 = part.stat().st_size, _digest(part)
            else:
                came = fetch(
                    url,
                    part,
                    size=known.size,
                    advance=shared.advance,
                    expect=lambda count: shared.expect(url, count),
                    note=self._progress().note,
                    patience=self.patience,
                )
                size, sha256 = came.size, came.sha256
            self._verify(url, part, known, size, sha256)
            part.rename(target)
            part.with_name(f"{part.name}.json").unlink(missing_ok=True)
        return target

    def _copy(self, url: str, part: Path, shared: _Total) -> None:
        source = Path(unquote(urlsplit(url).path) if url.startswith("file://") else url)
        if not source.is_file():
            message = f"there is no file {source}."
            raise InvalidArgumentError(message, hint="An address begins with https://; anything else is a local path.")
        with source.open("rb") as file, part.open("wb") as copy:
            while chunk := file.read(_CHUNK):
                copy.write(chunk)
                shared.advance(len(chunk))

    def _verify(self, url: str, part: Path, known: Checksum, size: int, sha256: str) -> None:
        wrong = ""
        if known.size is not None and size != known.size:
            wrong = str(wrong_size(url, known.size, size).message)
        elif known.sha256 is not None and sha256 != known.sha256.lower():
            wrong = f"{url} should have the SHA-256 {known.sha256}, and has {sha256}."
        if wrong:
            aside = part.with_name(f"{part.name.removesuffix('.part')}.wrong")
            part.replace(aside)
            part.with_name(f"{part.name}.json").unlink(missing_ok=True)
            hint = "It is kept aside. Was it changed by those who publish it, or damaged on its way? Try again."
            raise DataLossError(wrong, hint=hint, file=str(aside))

    def _check_space(self, urls: list[str], sizes: list[int | None]) -> None:
        missing = sum(size or 0 for url, size in zip(urls, sizes, strict=True) if not self.place(url).is_file())
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self.folder).free
        if missing > free:
            message = f"the downloads need {size_text(missing)}, and {size_text(free)} are left on the disk."
            raise FailedPreconditionError(message, hint=f"Make room in {self.folder}, or choose another download_dir.")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Convert errors of writes to errors that name the folder."""
        try:
            with writing(self.folder, f"download_dir {str(self.folder)!r}", _SETTING):
                yield
        except PenstockError:
            raise
        except OSError as error:
            if error.errno not in FULL:
                raise
            free = size_text(shutil.disk_usage(self.folder).free)
            message = f"the disk of the downloads is full: {free} are left ({error.strerror})."
            hint = f"Make room in {self.folder}, or choose another download_dir. What came is kept."
            raise FailedPreconditionError(message, hint=hint, file=error.filename) from error

    def _locked(self, target: Path) -> Any:
        target.parent.mkdir(parents=True, exist_ok=True)
        return _Held(target.parent)


class _Held:
    """Lets one thread of one process at a time work in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock: Any = None

    def __enter__(self) -> None:
        while True:
            try:
                self._lock = hold(str(self._folder))
            except Unlockable:
                return
            if self._lock is not None:
                return
            time.sleep(0.05)

    def __exit__(self, *problem: object) -> None:
        if self._lock is not None:
            self._lock.release()


class _Total:
    """The progress of several files together. The servers report the total if it is not known."""

    def __init__(self, step: ProgressStep, learnt: dict[str, int] | None) -> None:
        self._step, self._learnt = step, learnt

    def advance(self, count: int) -> None:
        self._step.advance(count)

    def take_up(self, count: int, url: str) -> None:
        self.expect(url, count)
        self._step.take_up(count)

    def expect(self, url: str, count: int) -> None:
        if self._learnt is not None:
            self._learnt[url] = count
            self._step.expect(sum(self._learnt.values()))


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
