"""The samples of tar archives: consecutive files whose names differ only in their suffix."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.errors import Context, DataLossError, InvalidArgumentError, InvalidTypeError
from penstock.io import storage
from penstock.io.window import FileWindow
from penstock.sources.files import FileReader, FilesSource, Place

# A member is a header of 512 bytes and its data, padded to a multiple of 512. POSIX (pax) and GNU archives put extra
# members before a member whose name or size does not fit its header. Source: POSIX.1-2024, pax, "ustar Interchange
# Format" and "pax Interchange Format"; GNU tar manual, "Basic Tar Format".

BLOCK = 512
_ZEROS = bytes(BLOCK)
_SPACES = 8 * ord(" ")
_MOST_DIGITS = 20  # digits of a size; Python refuses to convert thousands of digits
_SHOWN = 40  # bytes of the damaged field in an error

_EXTENSIONS = b"xgLKX"  # pax header, global pax header, GNU long name, GNU long link, Solaris pax header
_FILES = b"0\x007"
_LINKS = b"12"
_WITHOUT_DATA = b"123456"  # links, devices, directories, pipes; the data of other types is skipped
_AT_ONCE = 1 << 20  # bytes


class TarDamage(Exception):
    """Damage at byte `at` of the buffer."""

    def __init__(self, what: str, at: int) -> None:
        super().__init__(what)
        self.at = at


class CutShort(TarDamage):
    """The buffer ends before the member does. The member has `wanted` bytes."""

    def __init__(self, what: str, at: int, wanted: int) -> None:
        super().__init__(what, at)
        self.wanted = wanted


@dataclass(frozen=True, slots=True)
class TarMember:
    """One member: `begin` is its first header, `start` its data, `stop` the start of the next member."""

    name: bytes
    begin: int
    start: int
    size: int
    stop: int
    is_file: bool
    is_link: bool


def read_member(buffer: np.ndarray, begin: int) -> TarMember | None:
    """Return the member whose first header is at `begin`, or None at the end of the archive. Raises TarDamage.

    >>> import io, tarfile
    >>> out = io.BytesIO()
    >>> with tarfile.open(fileobj=out, mode="w") as archive:
    ...     member = tarfile.TarInfo("a/1.txt")
    ...     member.size = 2
    ...     archive.addfile(member, io.BytesIO(b"hi"))
    >>> found = read_member(np.frombuffer(out.getvalue(), np.uint8), 0)
    >>> found.name, found.start, found.size, found.stop
    (b'a/1.txt', 512, 2, 1024)
    """
    view = buffer.data
    at = begin
    name: bytes | None = None
    size: int | None = None
    sparse = False
    while True:
        head = bytes(view[at : at + BLOCK])
        if len(head) < BLOCK:
            if not head and at == begin:
                return None
            what = f"a header has {BLOCK} bytes, and {len(head)} are left"
            raise CutShort(what, at, at + BLOCK - begin)
        if head == _ZEROS:
            return None
        length = _checked_size(head, at)
        start, kind = at + BLOCK, head[156:157]
        if kind not in _EXTENSIONS:
            break
        stop = start + _padded(length)
        if stop > len(view):
            message = f"the {length} bytes of an extended header end after the file"
            raise CutShort(message, at, stop - begin)
        body = bytes(view[start : start + length])
        if kind == b"L":
            name = body.partition(b"\0")[0]
        elif kind in b"xX":
            fields = _pax_fields(body, at)
            name = fields.get(b"path", name)
            size = int(fields[b"size"]) if b"size" in fields else size
            sparse = sparse or any(key.startswith(b"GNU.sparse.") for key in fields)
        at = stop
    if size is not None:
        length = size
    if kind == b"M" or kind == b"S" or sparse:
        message = "a file that began in another volume" if kind == b"M" else "a sparse file, whose holes are not stored"
        raise TarDamage(message, at)
    if name is None:
        name = _name(head)
    held = 0 if kind in _WITHOUT_DATA else length
    stop = start + _padded(held)
    if stop > len(view):
        message = f"a member takes {stop - start} bytes, and {len(view) - start} are left"
        raise CutShort(message, at, stop - begin)
    return TarMember(name, begin, start, held, stop, kind in _FILES and not name.endswith(b"/"), kind in _LINKS)


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def _name(head: bytes) -> bytes:
    name = head[:100].partition(b"\0")[0]
    prefix = head[345:500].partition(b"\0")[0] if head[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _checked_size(head: bytes, at: int) -> int:
    """Return the size that a header states. Raises TarDamage if its checksum does not match."""
    stated = _octal(head[148:156])
    field = head[148:156]
    if stated != sum(head) - sum(field) + _SPACES and stated != _signed_sum(head) - _signed_sum(field) + _SPACES:
        message = "the checksum of a header does not match"
        raise TarDamage(message, at)
    text = head[124:136]
    if text[0] & 0x80:
        return int.from_bytes(bytes([text[0] & 0x7F]) + text[1:], "big")
    size = _octal(text)
    if size is None:
        message = f"the size in a header is no number: {text!r}"
        raise TarDamage(message, at)
    return size


def _octal(text: bytes) -> int | None:
    """Return the number in a header field, or None if it contains other bytes than digits, such as a sign."""
    digits = text.strip(b"\0 ") or b"0"
    return int(digits, 8) if not digits.translate(None, b"01234567") else None


def _signed_sum(part: bytes) -> int:
    """Return the signed checksum that some old archivers wrote."""
    return sum(byte - 256 if byte > 127 else byte for byte in part)


def _pax_fields(body: bytes, at: int) -> dict[bytes, bytes]:
    """Return the records of a pax header: `length key=value` and a newline. The length counts the whole record."""
    found: dict[bytes, bytes] = {}
    place = 0
    while place < len(body) and body[place]:
        number, space, _ = body[place : place + 24].partition(b" ")
        length = int(number) if space and number.isdigit() else 0
        record = body[place + len(number) + 1 : place + length]
        key, equals, value = record.partition(b"=")
        if not equals or not value.endswith(b"\n"):
            message = f"an extended header holds {body[place : place + 24]!r}"
            raise TarDamage(message, at)
        found[key] = value[:-1]
        place += length
    size = found.get(b"size", b"0")
    if not size.isdigit() or len(size) > _MOST_DIGITS:
        message = f"an extended header says that the size is {size[:_SHOWN]!r}"
        raise TarDamage(message, at)
    return found


KEY = "__key__"
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class WebSource(FilesSource):
    """Samples as dicts of byte strings. A position is (byte offset, the suffixes of the first sample)."""

    suffixes: tuple[str, ...] | None = None

    kind: ClassVar[str] = "WebDataset"

    @property
    def spec(self) -> Any:
        if self.suffixes is None:
            return None
        return {name: TensorSpec((), bytes) for name in (KEY, *self.suffixes)}

    def open_file(self, name: str, place: Place) -> FileReader:
        offset, suffixes = place if isinstance(place, list) else (place, None)
        with storage.open_read(name) as file:
            compression = "GZIP" if file.read(2) == _GZIP else None
        window = FileWindow(name, compression_type=compression, buffer_size=self.buffer_size, offset=offset)
        return _SamplesReader(window, suffixes and tuple(suffixes), self.suffixes)


@dataclass(slots=True)
class _Sample:
    """Neighbouring files with one key. Positions are relative to the window's, because the window may advance."""

    key: bytes
    begin: int
    stop: int = 0
    files: dict[str, tuple[int, int]] = field(default_factory=dict)  # suffix: position and size
    repeated: str | None = None
    links: list[str] = field(default_factory=list)  # suffixes of files that are links

    def add(self, suffix: str, start: int, size: int, stop: int) -> None:
        if suffix in self.files or suffix == KEY:
            self.repeated = suffix
        self.files[suffix] = start, size
        self.stop = stop


class _Later(Exception):
    pass


class _SamplesReader(FileReader):
    def __init__(self, window: FileWindow, seen: tuple[str, ...] | None, wanted: tuple[str, ...] | None) -> None:
        self._window = window
        self._seen = wanted or seen
        self._picked = wanted is not None
        self._over = False
        self._last: tuple[np.ndarray, int, TarMember] | None = None  # the first file of the next sample

    def read(self, max_elements: int) -> Block | None:
        samples: list[_Sample] = []
        at = 0
        while len(samples) < max_elements:
            try:
                sample = self._sample(at, first=not samples)
                error = None if sample is None else self._unfit(sample)
            except (_Later, DataLossError):
                if samples:
                    break  # return the samples before the error first
                raise
            if sample is None or (error is not None and samples):
                break
            if error is not None:
                self._window.at += sample.stop
                raise error
            self._seen = self._seen or tuple(sample.files)
            samples.append(sample)
            at = sample.stop
        if not samples:
            return None
        block = self._block(samples)
        self._window.at += at
        return block

    def _sample(self, at: int, *, first: bool) -> _Sample | None:
        """Return the sample at a position, or None at the end.

        Only the first sample of a read may advance the window.
        """
        sample: _Sample | None = None
        while True:
            try:
                member = self._member(at, more=first)
                if member is None and sample is None and first:
                    self._check_end(at)
            except TarDamage as damage:
                if sample is not None and self._unfit(sample) is None and self._seen is not None:
                    return sample
                self._over = True
                raise self._loss(damage) from damage
            if member is None:
                return sample
            begin, at = at, member.stop - self._window.at
            key, suffix = split_name(member.name)
            if suffix is None or not (member.is_file or member.is_link):
                continue
            if sample is None:
                sample = _Sample(key, begin)
            elif key != sample.key:
                self._last = self._window.buffer, self._window.at + begin, member
                return sample
            sample.add(suffix, member.start - self._window.at, member.size, at)
            if member.is_link:
                sample.links.append(suffix)

    def _check_end(self, at: int) -> None:
        """Raise TarDamage if data follows the end of the archive.

        A compressed file is read to its end, where its checksum is.
        """
        window = self._window
        end, start = window.tell() + at, window.at + at
        while True:
            for piece in range(start, len(window.buffer), _AT_ONCE):
                if window.buffer[piece : piece + _AT_ONCE].any():
                    message = "zeros end it, and data follows them"
                    raise TarDamage(message, end - window.base)
            window.at = len(window.buffer)
            if not window.extend(1):
                return
            start = window.at

    def _member(self, at: int, *, more: bool) -> TarMember | None:
        window = self._window
        if self._last is not None and self._last[0] is window.buffer and self._last[1] == window.at + at:
            return self._last[2]
        while True:
            try:
                member = read_member(window.buffer, window.at + at)
                if member is not None or window.left > at:
                    return member
                cut, wanted = None, at + BLOCK
            except CutShort as error:
                cut, wanted = error, at + error.wanted
            if not window.whole and not window.broken:
                if not more:
                    raise _Later
                if window.extend(wanted):
                    continue
            if cut is not None:
                raise cut
            return None

    def _unfit(self, sample: _Sample) -> Exception | None:
        """Return the reason why a sample is no valid element, or None."""
        name = sample.key.decode(errors="replace")
        where = Context(file=self._window.name, offset=self._window.tell() + sample.begin)
        if sample.repeated is not None:
            message = f"Sample {name!r} has two files with the suffix {sample.repeated!r}."
            return InvalidArgumentError(message, hint="Files of one sample differ in their suffix.", context=where)
        links = [suffix for suffix in sample.links if not self._picked or suffix in (self._seen or ())]
        if links:
            message = f"The file {links[0]!r} of sample {name!r} is a link: the archive has no data of it."
            hint = "Write the archive with `tar --hard-dereference --dereference`, which stores the files."
            return InvalidArgumentError(message, hint=hint, context=where)
        expected = self._seen
        if expected is None:
            return None
        missing = [suffix for suffix in expected if suffix not in sample.files]
        more = [] if self._picked else [suffix for suffix in sample.files if suffix not in expected]
        if not missing and not more:
            return None
        message = f"Sample {name!r} has the files {', '.join(sample.files)}; expected were {', '.join(expected)}."
        hint = "All samples have the same suffixes; with suffixes=(...) only those that are named are read."
        return InvalidTypeError(message, hint=hint, context=where)

    def _loss(self, damage: TarDamage) -> DataLossError:
        message = f"The archive is damaged: {damage}. What follows in it is lost."
        hint = "Write or copy it again."
        return DataLossError(message, hint=hint, file=self._window.name, offset=self._window.base + damage.at)

    def _block(self, samples: list[_Sample]) -> Block:
        window, suffixes = self._window, self._seen or ()
        columns = [BytesColumn.from_values([sample.key for sample in samples])]
        for suffix in suffixes:
            places = np.array([sample.files[suffix] for sample in samples], np.int64)
            columns.append(BytesColumn((window.buffer,), places[:, 0] + window.at, places[:, 1].copy()))
        structure = flatten(dict.fromkeys((KEY, *suffixes), 0))[1]
        offsets = np.array([sample.begin for sample in samples], np.int64) + window.tell()
        return Block(structure, columns, len(samples), Origin.of_file(window.name, offsets))

    def place(self) -> Place:
        return [self._window.tell(), self._seen and list(self._seen)]

    def following(self) -> Place:
        return [0, self._seen and list(self._seen)]

    @property
    def over(self) -> bool:
        return self._over or self._window.broken

    def close(self) -> None:
        self._window.close()


def split_name(name: bytes) -> tuple[bytes, str | None]:
    """Return the key and the suffix of a file in an archive. The first dot after the last slash separates them.

    >>> split_name(b"train/0001.seg.PNG"), split_name(b"README")
    ((b'train/0001', 'seg.png'), (b'README', None))
    """
    slash = name.rfind(b"/") + 1
    dot = name.find(b".", slash)
    if dot <= slash:
        return name, None
    return name[:dot], name[dot + 1 :].decode(errors="surrogateescape").lower()
