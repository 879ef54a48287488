"""The function `recognise` determines the format of a file or folder by its content, then by its name."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.io import storage
from penstock.io.writing import reading
from penstock.store.entry import KEY

FORMATS = {
    "tfrecord": "TFRecord files",
    "arrow": "Arrow IPC files (Feather)",
    "parquet": "Parquet files",
    "csv": "CSV files with a line of names",
    "jsonl": "JSON Lines",
    "json": "JSON, a list of objects",
    "array_record": "ArrayRecord files",
    "lmdb": "LMDB databases",
    "numpy": ".npy and .npz files",
    "webdataset": "tar archives in WebDataset's layout",
    "image_folder": "a folder with one folder of images per class",
    "saved": "a folder that Dataset.save or a snapshot wrote",
    "snapshots": "the folder that was given to snapshot() or cache()",
    "tfds": "the folder of a version of a prepared data set",
    "huggingface": "a folder that save_to_disk of Hugging Face's datasets wrote",
    "mds": "a folder of MosaicML Streaming's shards",
    "litdata": "a folder of LitData's chunks",
    "sqlite": "SQLite databases",
    "fixed_length": "records of one length, which record_bytes says",
    "text": "lines of text",
    "image": "a picture",
    "wav": "WAV files",
    "video": "videos, such as MP4",
}
"""Names of the known formats, each with a description."""
_ENDINGS = {
    "tfrecord": (".tfrecord", ".tfrecords"),
    "arrow": (".arrow", ".feather"),
    "parquet": (".parquet",),
    "csv": (".csv",),
    "jsonl": (".jsonl", ".ndjson"),
    "json": (".json",),
    "array_record": (".array_record", ".arrayrecord"),
    "lmdb": (".lmdb", ".mdb"),
    "numpy": (".npy", ".npz"),
    "webdataset": (".tar", ".tgz"),
    "sqlite": (".db", ".sqlite", ".sqlite3"),
    "text": (".txt", ".md", ".log"),
    "wav": (".wav",),
    "video": (".mp4", ".mov", ".webm", ".mkv", ".avi"),
}
_SUFFIXES = {suffix: kind for kind, suffixes in _ENDINGS.items() for suffix in suffixes}
_IMAGES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp")
_BESIDE = (".json", ".md", ".idx", ".lock")  # files that describe the data next to them


@dataclass(frozen=True)
class Found:
    """Format of a file or folder, as `recognise` returns it.

    Attributes:
        path: The file or folder.
        format: Name of the format.
        files: The files, in order.
        compression: `"GZIP"` or `"ZLIB"` if the files are compressed as a whole.
        details: Further facts, by format.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "pets.csv"
        >>> _ = path.write_text("name,age")
        >>> recognise(path).format
        'csv'
    """

    path: str
    format: str
    files: tuple[str, ...] = ()
    compression: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """The size of the files on disk."""
        return sum(os.stat(file).st_size for file in self.files)  # noqa: PTH116 - `files` contains strings


def recognise(path: str | os.PathLike[str], format: str | None = None) -> Found:  # noqa: A002 - as in argparse
    """Recognise the format of a file or folder by its first bytes, its name, and the files next to it.

    Args:
        path: A file or a folder on this machine.
        format: Name of the format, if it cannot be recognised.

    Returns:
        The format and the files.

    Raises:
        NotFoundError: If there is nothing at `path`.
        InvalidArgumentError: If the format is not recognised.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "pets.csv"
        >>> _ = path.write_text("name,age")
        >>> recognise(path).format
        'csv'
    """
    if format is not None and format not in FORMATS:
        message = f"There is no format {format!r}."
        raise InvalidArgumentError(message, hint=f"There are {', '.join(FORMATS)}.")
    if storage.is_url(os.fspath(path)):
        message = f"The format of a URL cannot be recognised: {os.fspath(path)!r}."
        hint = "Copy the files to this machine, or use the class of the format, such as ps.TFRecordDataset(url)."
        raise InvalidArgumentError(message, hint=hint)
    where = Path(path).expanduser()
    with reading(repr(str(path))):
        if not where.exists():
            message = f"There is nothing at {str(path)!r}."
            raise NotFoundError(message, hint="Give a file or a folder on this machine.")
        return _folder(where, format) if where.is_dir() else _file(where, format)


def _file(path: Path, wanted: str | None) -> Found:
    kind, compression = (wanted, _packed(path)[1]) if wanted else _kind(path)
    if kind is None:
        message = f"The format of {str(path)!r} cannot be told from its name or its first bytes."
        hint = f"Say it: one of {', '.join(FORMATS)}. For records of one length, say how many bytes one has."
        raise InvalidArgumentError(message, hint=hint)
    return Found(str(path), kind, (str(path),), compression)


def _kind(path: Path) -> tuple[str | None, str | None]:
    """Return the format of a file or None, and its compression as a whole."""
    with path.open("rb") as file:
        head = file.read(512)
    name, compression = _packed(path, head)
    if head[16:20] == b"\xde\xc0\xef\xbe":
        return "lmdb", None
    if compression is not None:
        if path.suffix == ".tgz":
            return "webdataset", compression
        return _SUFFIXES.get(Path(name).suffix.lower()) or _by_tfrecord_name(name), compression
    return _by_content(head, path) or _SUFFIXES.get(path.suffix.lower()) or _by_tfrecord_name(path.name), None


def _packed(path: Path, head: bytes = b"") -> tuple[str, str | None]:
    """Return the name of a file without .gz, and "GZIP" if it is compressed with gzip."""
    if not head:
        with path.open("rb") as file:
            head = file.read(2)
    return (path.name.removesuffix(".gz"), "GZIP") if head[:2] == b"\x1f\x8b" else (path.name, None)


def _by_tfrecord_name(name: str) -> str | None:
    """Return the format of a shard by its name, such as `x.tfrecord-00000-of-00020`."""
    for suffix, kind in _SUFFIXES.items():
        if f"{suffix}-" in name:
            return kind
    return None


def _by_content(head: bytes, path: Path) -> str | None:
    starts = {
        b"ARROW1": "arrow",
        b"\xff\xff\xff\xff": "arrow",  # a stream
        b"PAR1": "parquet",
        b"\x93NUMPY": "numpy",
        b"SQLite format 3\x00": "sqlite",
    }
    for start, kind in starts.items():
        if head.startswith(start):
            return kind
    if head[257:262] == b"ustar":
        return "webdataset"
    if head[:4] == b"PK\x03\x04" and path.suffix == ".npz":
        return "numpy"
    if is_picture(head):
        return "image"
    return "tfrecord" if _is_record(head) else None


def is_picture(content: bytes) -> bool:
    """Return True if bytes begin like a JPEG, PNG, GIF, BMP or WebP file.

    >>> is_picture(b"GIF89a..."), is_picture(b"GIFts")
    (True, False)
    """
    starts = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a")
    if content.startswith(starts):
        return True
    if content.startswith(b"RIFF"):
        return content[8:12] == b"WEBP"
    return content.startswith(b"BM") and content[6:10] == bytes(4)  # two reserved words


def _is_record(head: bytes) -> bool:
    """Return True if a file begins with the length of a record and the checksum of this length."""
    import crc32c

    if len(head) < 12:
        return False
    crc = crc32c.crc32c(head[:8])
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return masked == int.from_bytes(head[8:12], "little")


def _folder(path: Path, wanted: str | None) -> Found:
    known = wanted or _known_folder(path)
    if known == "lmdb" and (path / "data.mdb").is_file():
        return Found(str(path), known, (str(path / "data.mdb"),))
    if known == "image_folder":
        files = sorted(str(file) for file in path.rglob("*") if file.suffix.lower() in _IMAGES and file.is_file())
        return Found(str(path), known, tuple(files))
    if known == "huggingface":
        return _huggingface(path)
    if known in ("saved", "snapshots", "tfds", "mds", "litdata"):
        return Found(str(path), known, tuple(_files(path)))
    return _alike(path, wanted)


def _known_folder(path: Path) -> str | None:
    """Return the format of a folder with a characteristic file, or of folders of images."""
    if (path / "dataset_info.json").is_file() and (path / "features.json").is_file():
        return "tfds"
    if (path / "state.json").is_file() or (path / "dataset_dict.json").is_file():
        return "huggingface"
    if (path / "manifest.json").is_file():
        return "saved"
    if (path / "data.mdb").is_file():
        return "lmdb"
    with suppress(OSError, ValueError, LookupError, TypeError):  # no index, or the index of another program
        index = json.loads((path / "index.json").read_bytes())
        kind = "litdata" if "chunks" in index and "config" in index else index["shards"][0]["format"]
        if kind in ("litdata", "mds"):
            return str(kind)
    below = [one for one in sorted(path.iterdir()) if one.is_dir() and not one.name.startswith(".")]
    if any(KEY.fullmatch(one.name) for one in below):
        return "snapshots"
    for one in below:
        for file in one.rglob("*"):
            if file.suffix.lower() in _IMAGES:
                return "image_folder"
    return None


def _files(path: Path) -> list[str]:
    """Return the files below a folder, sorted, without hidden files."""
    return sorted(
        str(file)
        for file in path.rglob("*")
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )


def _huggingface(path: Path) -> Found:
    """Return the files of a split of `save_to_disk` in the order of its state."""
    if (path / "dataset_dict.json").is_file():
        splits = json.loads((path / "dataset_dict.json").read_text(encoding="utf-8"))["splits"]
        message = f"{str(path)!r} holds the splits {', '.join(splits)}."
        raise InvalidArgumentError(message, hint=f"Name one of them: {path / splits[0]}.")
    try:
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        files = tuple(str(path / entry["filename"]) for entry in state["_data_files"])
        info = json.loads((path / "dataset_info.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{str(path)!r} is no folder of save_to_disk: {type(error).__name__}: {error}."
        raise InvalidArgumentError(message, hint="It holds state.json, dataset_info.json and Arrow files.") from error
    return Found(str(path), "huggingface", files, details={"features": info.get("features") or {}})


def _alike(path: Path, wanted: str | None) -> Found:
    """Return a folder of files of one format, which are its shards."""
    kinds: dict[tuple[str, str | None], list[str]] = {}
    unknown = []
    for name in _files(path):
        file = Path(name)
        if file.suffix.lower() in _BESIDE:
            continue
        kind, compression = (wanted, _packed(file)[1]) if wanted else _kind(file)
        if kind is None:
            unknown.append(name)
        else:
            kinds.setdefault((kind, compression), []).append(name)
    if len(kinds) != 1 or unknown:
        held = _counted(kinds, unknown)
        message = f"The format of the folder {str(path)!r} cannot be told: it holds {held}."
        hint = "Name one of its files or folders, or say the format."
        if prepared := _prepared_below(path):
            hint = f"Data sets are prepared below it: name the folder of a version, such as {prepared}."
        raise (InvalidArgumentError if kinds or unknown else NotFoundError)(message, hint=hint)
    ((kind, compression), files), *_ = kinds.items()
    if kind == "image":  # images without classes
        return Found(str(path), "image_folder", tuple(files))
    return Found(str(path), kind, tuple(files), compression)


def _prepared_below(path: Path) -> Path | None:
    """Return the last folder of a prepared version below a data dir, a data set or a config, or None."""
    found = (file.parent for depth in ("*", "*/*", "*/*/*") for file in sorted(path.glob(f"{depth}/dataset_info.json")))
    return max((one for one in found if not one.name.startswith("incomplete.")), default=None)


def _counted(kinds: Mapping[tuple[str, str | None], list[str]], unknown: Iterable[str]) -> str:
    parts = [f"{len(files)} of {kind}" for (kind, _), files in kinds.items()]
    others = list(unknown)
    if others:
        parts.append(f"{len(others)} of another kind, such as {Path(others[0]).name!r}")
    return ", ".join(parts) or "no files"
