"""Frames of videos, by PyAV."""

import io
import sys

import numpy as np
import pytest

import penstock as ps
from penstock.errors import InvalidArgumentError, MissingDependencyError

av = pytest.importorskip("av")


def video(frames=12, form="mp4"):
    """A video of grey frames: frame i has the level 16 + 16 * i."""
    content = io.BytesIO()
    with av.open(content, "w", format=form) as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.height, stream.width, stream.pix_fmt = 48, 64, "yuv420p"
        for i in range(frames):
            image = np.full((48, 64, 3), 16 + 16 * i, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())
    return content.getvalue()


VIDEO = video()


def levels(frames):
    return [round((float(frame.mean()) - 16) / 16) for frame in frames]


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        (None, [*range(12)]),
        (4, [0, 4, 7, 11]),
        (1, [0]),
        (14, [0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 8, 9, 10, 11]),
        (np.int64(2), [0, 11]),
        (slice(2, 9, 3), [2, 5, 8]),
        (slice(10, None), [10, 11]),
        (slice(9, 20, 2), [9, 11]),
    ],
)
def test_frames_are_chosen(frames, expected):
    found = ps.video.decode(VIDEO, frames)
    assert (levels(found), found.dtype, found.shape[1:]) == (expected, np.uint8, (48, 64, 3))


def test_a_path_is_as_good_as_bytes(tmp_path):
    path = tmp_path / "grey.avi"
    path.write_bytes(video(5, "avi"))
    assert [ps.video.count_frames(given) for given in (path, str(path), path.read_bytes())] == [5, 5, 5]
    np.testing.assert_array_equal(ps.video.decode(path, 3), ps.video.decode(path.read_bytes(), 3))


def test_videos_are_decoded_by_block_on_workers():
    ds = ps.Dataset.from_tensor_slices([VIDEO, video(6)]).map(lambda content: ps.video.decode(content, 3))
    assert ds.element_spec == ps.TensorSpec((3, None, None, 3), np.uint8)
    assert [levels(frames) for frames in ds] == [[0, 6, 11], [0, 2, 5]]
    assert "runs by Block: video.decode" in str(ds.explain())
    assert "becomes a parallel map" in str(ds.explain())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: ps.video.decode(bytes(60)), "a video that FFmpeg reads"),
        (lambda: ps.video.decode(VIDEO[:100]), "a video that FFmpeg reads"),
        (lambda: ps.video.count_frames("no/such/file.mp4"), "Check the path"),
        (
            lambda: ps.video.decode(VIDEO, slice(12, 14)),
            r"without them.\n.*count_frames",
        ),
        (lambda: ps.video.decode(VIDEO, 0), "frames=0"),
        (lambda: ps.video.decode(ps.audio.encode_wav(np.zeros((100, 1)), 8000)), "it has no stream of video"),
    ],
)
def test_what_cannot_be_decoded(call, text):
    with pytest.raises(InvalidArgumentError, match=text):
        call()


def test_the_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingDependencyError, match=r"av.*\n.*penstock\[video\]"):
        ps.video.decode(VIDEO)
