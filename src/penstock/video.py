"""Frames of videos on numpy arrays, by PyAV (FFmpeg)."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.block.spec import LeafSpec, TensorSpec
from penstock.errors import InvalidArgumentError, optional_package
from penstock.trace.lift import Nature, byte_string, of_nature, traceable

__all__ = ["count_frames", "decode"]


def _rule(spec: LeafSpec, *, frames: int | slice | None) -> TensorSpec:
    byte_string(spec)
    return TensorSpec((frames if isinstance(frames, int) else None, None, None, 3), np.uint8)


@of_nature(Nature("decodes video", decodes=True))
@traceable("video.decode", _rule, fresh=True)
def decode(contents: bytes | str | os.PathLike[str], frames: int | slice | None = None) -> npt.NDArray[np.uint8]:
    """Decode frames of a video: MP4, WebM, MKV, AVI, or another format that FFmpeg reads.

    FFmpeg decodes all frames up to the last frame that is returned, so frames at the start take less time.

    Args:
        contents: The bytes of the file, or its path as a str or a path object.
        frames: A number of frames, evenly spaced from the first frame to the last; or a slice of the frames without
            negative numbers, such as `slice(start, start + 64, 4)`. Default: all frames.

    Returns:
        uint8 array of RGB frames, of shape (frames, height, width, 3).

    Raises:
        InvalidArgumentError: If the bytes are no such file, or if the video has none of the frames.
        MissingDependencyError: If the extra `video` is not installed.

    Example:
        >>> clip = ps.video.decode("holiday.mp4", frames=16)  # doctest: +SKIP
    """
    if isinstance(frames, (int, np.integer)):
        wanted: Any = np.linspace(0, count_frames(contents) - 1, frames).round().astype(int).tolist()
    else:
        steps = slice(None) if frames is None else frames
        wanted = range(steps.start or 0, sys.maxsize if steps.stop is None else steps.stop, steps.step or 1)
    with _opened(contents) as container:
        decoded = enumerate(islice(container.decode(video=0), wanted[-1] + 1 if wanted else 0))
        found = {number: frame.to_ndarray(format="rgb24") for number, frame in decoded if number in wanted}
    if not found or (isinstance(wanted, list) and wanted[-1] not in found):
        message = f"decode needs frames={frames!r}, got a video without them."
        raise InvalidArgumentError(message, hint="ps.video.count_frames returns the number of frames.")
    return np.stack([found[number] for number in (wanted if isinstance(wanted, list) else found)])


def count_frames(contents: bytes | str | os.PathLike[str]) -> int:
    """Return the number of frames of a video, without decoding them.

    Args:
        contents: The bytes of the file, or its path as a str or a path object.

    Returns:
        The number of frames.

    Raises:
        InvalidArgumentError: If the bytes are no such file.
        MissingDependencyError: If the extra `video` is not installed.

    Example:
        >>> ps.video.count_frames("holiday.mp4")  # doctest: +SKIP
    """
    return int(measured(contents)["frames"])


def measured(contents: bytes | str | os.PathLike[str]) -> dict[str, Any]:
    """Return the size of a video's frames, their number, and their rate. The file is read, but no frame is decoded."""
    with _opened(contents) as container:
        stream = container.streams.video[0]
        frames = sum(packet.size > 0 for packet in container.demux(stream))
        rate = float(stream.average_rate or 0)
        return {"height": stream.height, "width": stream.width, "frames": frames, "frames_per_second": rate}


@contextmanager
def _opened(contents: Any) -> Iterator[Any]:
    av = optional_package("av", "Decoding video", "video")
    try:
        with av.open(contents if isinstance(contents, (str, os.PathLike)) else io.BytesIO(contents)) as container:
            for stream in container.streams.video:
                stream.thread_count = 1  # penstock runs several decoders
            yield container
    except (av.FFmpegError, IndexError) as error:
        why = "it has no stream of video" if isinstance(error, IndexError) else error
        message = f"decode needs a video that FFmpeg reads, got {contents!r:.60}: {why}."
        raise InvalidArgumentError(message, hint="Check the path, or convert the file with ffmpeg.") from None


def __dir__() -> list[str]:
    return sorted(__all__)
