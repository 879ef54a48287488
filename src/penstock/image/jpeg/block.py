"""JpegBlock: decodes the JPEGs of a Block in one call without the GIL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.errors import InvalidArgumentError, PenstockError
from penstock.image.checks import check_contents
from penstock.image.jpeg.kernels import AFTER, BEFORE, COMPONENTS, FIELDS, HEIGHT, TAKEN
from penstock.image.jpeg.libjpeg import check_decode_jpeg, decode_into, extract_jpeg_shape, thread_scratch
from penstock.image.jpeg.places import FLIPS, check_places, cropped, flip_codes
from penstock.image.kernels import CALCULATE, constants, line_of
from penstock.image.resizing.sampling import resize_bilinear
from penstock.native.library import Kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from penstock.image.jpeg.places import Flips, Windows

    Arithmetic = Sequence[tuple[int, tuple[float, ...]]]
    Levels = npt.NDArray[np.float32] | None


__all__ = ["FLIPS", "JpegBlock", "Packed"]

_KERNELS = Kernels("penstock.image.jpeg.kernels.block")

_NO_BYTES, _NO_FLOATS = np.empty(0, np.uint8), np.empty(0, np.float32)
_NO_WINDOWS = np.empty((0, 4), np.int64)
_NO_ARITHMETIC = np.empty(0, np.int64), np.empty((0, 0), np.float32)


class Packed(NamedTuple):
    """Images, concatenated in `pixels`. Image i has `shapes[i]` and begins at `starts[i]`."""

    pixels: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    shapes: npt.NDArray[np.int64]  # (N, 3); zeros for an image that failed
    failed: dict[int, PenstockError]


class JpegBlock:
    """The JPEGs of a Block. Their headers are read at once, and each call of a method decodes all of them.

    The numbers equal those of `decode_jpeg` and `resize`, to the last bit. Kernels take files as cameras and encoders
    write them: sequential, 8 bit, grey or colour at full, half or quarter resolution. Other files (progressive, CMYK)
    and damaged files go one by one through libjpeg. So do all files with `fancy_upscaling=False`, or without
    the kernels.

    A file that cannot be decoded does not affect the others: methods return its error by row, and leave its place
    unchanged.

    >>> from penstock.image import encode_jpeg
    >>> from penstock.image.kernels import DIVIDE
    >>> files = [encode_jpeg(np.full((8, 8, 3), shade, np.uint8)) for shade in (0, 255)]
    >>> batch = np.empty((2, 4, 4, 3), np.float32)
    >>> JpegBlock(files).decode_resize(batch, last=[(DIVIDE, (255.0,) * 3)])
    {}
    >>> batch[:, 0, 0, 0].tolist()
    [0.0, 1.0]
    """

    def __init__(self, contents: Sequence[bytes | memoryview]) -> None:
        checked = [check_contents("decode_jpeg", each) for each in contents]
        held = [np.frombuffer(each, np.uint8) if len(each) else _NO_BYTES for each in checked]
        addresses = [array.__array_interface__["data"][0] for array in held]
        lengths = [array.size for array in held]
        self._read(np.array(addresses, np.int64), np.array(lengths, np.int64), held, checked.__getitem__)

    @classmethod
    def within(
        cls,
        buffers: Sequence[npt.NDArray[np.uint8]],
        starts: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
        which: npt.NDArray[np.integer[Any]] | None = None,
    ) -> JpegBlock:
        """Create a JpegBlock from a column of byte strings.

        File i is at `starts[i]` of buffer `which[i]`, or of the first buffer.

        This takes less of the interpreter's time than a view per file.

        >>> from penstock.image import encode_jpeg
        >>> file = np.frombuffer(encode_jpeg(np.zeros((4, 6, 3), np.uint8)), np.uint8)
        >>> JpegBlock.within([file], np.array([0]), np.array([file.size])).shapes().tolist()
        [[4, 6, 3]]

        Raises:
            InvalidArgumentError: a file that does not lie inside its buffer.
        """
        numbers = np.zeros(len(starts), np.int64) if which is None else np.asarray(which, np.int64)
        sizes = np.array([buffer.size for buffer in buffers] or [0], np.int64)
        bases = np.array([buffer.__array_interface__["data"][0] for buffer in buffers] or [0], np.int64)
        starts, lengths = np.asarray(starts, np.int64), np.array(lengths, np.int64)
        inside = (starts >= 0) & (lengths >= 0) & (lengths <= sizes[numbers] - starts)
        if not inside.all():
            row = int(np.argmin(inside))
            message = f"JpegBlock: file {row} at {starts[row]}, {lengths[row]} bytes, lies outside of its buffer."
            raise InvalidArgumentError(message)

        def content(row: int) -> memoryview:
            view: memoryview = buffers[numbers[row]].data
            return view[starts[row] : starts[row] + lengths[row]]

        block = cls.__new__(cls)
        block._read(bases[numbers] + starts, lengths, buffers, content)
        return block

    def _read(
        self,
        addresses: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
        held: Any,
        content: Callable[[int], bytes | memoryview],
    ) -> None:
        self._addresses, self._lengths, self._held, self._content = addresses, lengths, held, content
        self._kernels = _KERNELS.loaded()
        self._table: npt.NDArray[np.int64] | None = None
        if self._kernels is not None:
            self._table = np.empty((len(lengths), FIELDS), np.int64)
            self._kernels.read_headers(addresses, lengths, self._table)

    def __len__(self) -> int:
        return len(self._lengths)

    def part(self, start: int, stop: int) -> JpegBlock:
        """Return the files from `start` up to `stop`."""
        block = JpegBlock.__new__(JpegBlock)
        block._addresses, block._lengths, block._held = (
            self._addresses[start:stop],
            self._lengths[start:stop],
            self._held,
        )
        block._content = lambda row: self._content(start + row)
        block._kernels, block._table = self._kernels, None if self._table is None else self._table[start:stop]
        return block

    def shapes(self) -> npt.NDArray[np.int64]:
        """Return (N, 3): height, width, and stored channels; zeros for a file with an unreadable header."""
        found = np.zeros((len(self), 3), np.int64)
        if self._table is not None:
            np.multiply(self._table[:, HEIGHT : COMPONENTS + 1], self._table[:, TAKEN, None] != 0, out=found)
        for row in np.flatnonzero(found[:, 0] == 0).tolist():
            try:
                found[row] = extract_jpeg_shape(bytes(self._content(row)))
            except PenstockError:
                continue
        return found

    def decode_resize(
        self,
        out: npt.NDArray[Any],
        *,
        flip_left_right: Flips = "",
        flip_up_down: Flips = "",
        windows: Windows = None,
        levels: Levels = None,
        last: Arithmetic = (),
        planes: bool = False,
        fancy_upscaling: bool = True,
        dct_method: str = "",
    ) -> dict[int, PenstockError]:
        """Write each image, resized (bilinear), flipped and scaled, into its row of `out`. Return the errors by row.

        Args:
            out: C-contiguous (N, H, W, C), C 1 or 3, float32; or uint8 (truncated) without `levels` and `last`.
                (N, C, H, W) with `planes`.
            flip_left_right: mirror "before" or "after" the resize, or (N,) with positions in `FLIPS`.
            flip_up_down: likewise.
            windows: (N, 4) top, left, height and width of the part to resize. Default: the whole image.
            levels: (C, 256) float32 that are resized in place of the values from 0 to 255, which stay if left out.
            last: what is calculated with the results, in order: an operation of `image.kernels` and a float32
                number for each channel.
            planes: If True, write each channel of an image as a plane of its own.
            fancy_upscaling: as in `decode_jpeg`.
            dct_method: as in `decode_jpeg`.

        Raises:
            InvalidArgumentError: arguments that do not fit; not for a file, whose error is returned.
        """
        if out.dtype not in (np.float32, np.uint8):
            message = f"decode_resize gives float32 or uint8; got {out.dtype}."
            raise InvalidArgumentError(message)
        if out.dtype == np.uint8 and (levels is not None or last):
            message = "decode_resize: a uint8 result cannot be scaled; the values may not fit it."
            raise InvalidArgumentError(message, hint="Write to float32 and cast afterwards.")
        check_places(out, len(self), windows, planes=planes)
        flips = flip_codes(flip_left_right, flip_up_down, len(self))
        settings: dict[str, Any] = {"fancy_upscaling": fancy_upscaling, "dct_method": dct_method}
        height, width, channels = (*out.shape[2:], out.shape[1]) if planes else out.shape[1:]
        check_decode_jpeg(channels, 1, dct_method)
        places = np.arange(len(self)) * (out[0].size if len(out) else 0)
        size = height, width, channels
        how: dict[str, Any] = {"levels": levels, "last": last, "planes": planes}
        left = self._run(out, size, places, flips, windows, settings, **how)
        failed: dict[int, PenstockError] = {}
        scratch = thread_scratch().of
        for row in left:
            try:
                image: npt.NDArray[Any] = self._decoded(row, channels, windows, settings, scratch)
            except PenstockError as error:
                failed[row] = error
                continue
            image = image if levels is None else levels[np.arange(channels), image]
            image = resize_bilinear(_flipped(image, flips[row] == BEFORE)[None], height, width)[0]
            for code, numbers in last:
                CALCULATE[code](image, np.array(numbers[:channels], np.float32), out=image)
            image = _flipped(image, flips[row] == AFTER)
            out[row] = image.transpose(2, 0, 1) if planes else image
        return failed

    def decode(
        self,
        out: npt.NDArray[np.uint8],
        *,
        windows: Windows = None,
        fancy_upscaling: bool = True,
        dct_method: str = "",
    ) -> dict[int, PenstockError]:
        """Write each image, or its window, into its row of `out` (N, H, W, C) uint8. Return the errors by row.

        An image of another size fails.

        Raises:
            InvalidArgumentError: arguments that do not fit; not for a file, whose error is returned.
        """
        if out.dtype != np.uint8:
            message = f"decode writes uint8, got {out.dtype}."
            raise InvalidArgumentError(message)
        check_places(out, len(self), windows)
        check_decode_jpeg(out.shape[3], 1, dct_method)
        settings: dict[str, Any] = {"fancy_upscaling": fancy_upscaling, "dct_method": dct_method}
        shapes = self.shapes() if windows is None else windows[:, 2:]
        fits = (shapes[:, 0] == out.shape[1]) & (shapes[:, 1] == out.shape[2])
        size = out[0].size if len(out) else 0
        places = np.where(fits, np.arange(len(self)) * size, -1)
        failed: dict[int, PenstockError] = {}
        for row in self._copy(out, out.shape[3], places, windows, settings):
            try:
                image = self._decoded(row, out.shape[3], windows, settings)
                if image.shape != out.shape[1:]:
                    message = f"decode: an image of shape {image.shape} does not fit a batch of {out.shape[1:]}."
                    raise InvalidArgumentError(message)
                out[row] = image
            except PenstockError as error:
                failed[row] = error
        return failed

    def decode_packed(
        self,
        channels: int = 3,
        *,
        windows: Windows = None,
        fancy_upscaling: bool = True,
        dct_method: str = "",
        memory: Any = None,
    ) -> Packed:
        """Decode images of any sizes, or their windows, concatenated, for kernels that take them.

        Args:
            channels: 1 or 3.
            windows: as in `decode_resize`.
            fancy_upscaling: as in `decode_jpeg`.
            dct_method: as in `decode_jpeg`.
            memory: a function from a number of bytes to a uint8 array at least as large, which must not be the thread's
                scratch; a new array if left out.

        Raises:
            InvalidArgumentError: arguments out of range; not for a file, whose error is in the result.
        """
        check_decode_jpeg(channels, 1, dct_method)
        settings: dict[str, Any] = {"fancy_upscaling": fancy_upscaling, "dct_method": dct_method}
        shapes = np.zeros((len(self), 3), np.int64)
        images: dict[int, npt.NDArray[np.uint8]] = {}
        failed: dict[int, PenstockError] = {}
        taken = self.taken(**settings)
        for row in np.flatnonzero(~taken).tolist():
            try:
                images[row] = self._decoded(row, channels, windows, settings)
                shapes[row] = images[row].shape
            except PenstockError as error:
                failed[row] = error
        if taken.any():
            shapes[taken, :2] = (self.shapes()[:, :2] if windows is None else windows[:, 2:])[taken]
            shapes[taken, 2] = channels
        sizes = shapes.prod(axis=1)
        starts = np.cumsum(sizes) - sizes
        total = int(sizes.sum())
        pixels = np.empty(total, np.uint8) if memory is None else memory(total)
        for row in self._copy(pixels, channels, np.where(taken, starts, -1), windows, settings):
            try:
                image = images[row] if row in images else self._decoded(row, channels, windows, settings)
                pixels[starts[row] : starts[row] + sizes[row]] = image.reshape(-1)
            except PenstockError as error:
                failed[row] = error
                shapes[row] = 0
        return Packed(pixels, starts, shapes, failed)

    def taken(self, *, fancy_upscaling: bool = True, dct_method: str = "") -> npt.NDArray[np.bool_]:
        """Return (N,) flags of the files for the kernels. Their size is plausible for the number of their bytes."""
        if self._kernels is None or self._table is None or not fancy_upscaling:
            return np.zeros(len(self), np.bool_)
        taken: npt.NDArray[np.bool_] = self._table[:, TAKEN] != 0
        return taken

    def _run(
        self,
        out: npt.NDArray[Any],
        size: tuple[int, int, int],
        places: npt.NDArray[np.int64],
        flips: npt.NDArray[np.int8],
        windows: Windows,
        settings: Mapping[str, Any],
        *,
        copies: bool = False,
        levels: Levels = None,
        last: Arithmetic = (),
        planes: bool = False,
    ) -> list[int]:
        """Run the kernel. Return the rows that it has not done."""
        kernels = self._kernels
        if kernels is None or not out.size or not self.taken(**settings).any():
            return list(range(len(self)))
        done = np.empty(len(self), np.int8)
        flat = out.reshape(-1)
        floats, few = (flat, _NO_BYTES) if out.dtype == np.float32 else (_NO_FLOATS, flat)
        scratch = thread_scratch()
        needed = kernels.decode_block(
            self._addresses,
            self._lengths,
            self._table,
            scratch.codes,
            scratch.of(0),
            _NO_WINDOWS if windows is None else np.array(windows, order="C"),
            flips,
            copies,
            _NO_FLOATS if levels is None else line_of(levels),
            *(constants(last, *size[1:]) if last else _NO_ARITHMETIC),
            *size,
            planes,
            floats,
            few,
            places,
            settings["dct_method"] == "INTEGER_ACCURATE",
            done,
        )
        scratch.of(needed)
        return np.flatnonzero(done == 0).tolist()

    def _copy(
        self,
        out: npt.NDArray[np.uint8],
        channels: int,
        places: npt.NDArray[np.int64],
        windows: Windows,
        settings: Mapping[str, Any],
    ) -> list[int]:
        flips = np.zeros((len(self), 2), np.int8)
        return self._run(out, (1, 1, channels), places, flips, windows, settings, copies=True)

    def _decoded(
        self, row: int, channels: int, windows: Windows, settings: Mapping[str, Any], memory: Any = None
    ) -> npt.NDArray[np.uint8]:
        """Decode one image, or its window, with libjpeg."""
        image = decode_into(
            self._content(row),
            memory,
            channels,
            fastdct=settings["dct_method"] != "INTEGER_ACCURATE",
            fastupsample=not settings["fancy_upscaling"],
        )
        return image if windows is None else cropped("decode_jpeg", image, windows[row])


def _flipped(image: npt.NDArray[Any], axes: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Mirror the columns if `axes[0]`, and the rows if `axes[1]`."""
    left_right, up_down = axes
    return image[:: -1 if up_down else 1, :: -1 if left_right else 1]
