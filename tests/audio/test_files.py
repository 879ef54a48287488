"""Files of sound: WAV by itself, other formats by libsndfile; resampling."""

import io
import sys
import wave

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.audio.files import wav_samples
from penstock.errors import InvalidArgumentError, InvalidTypeError, MissingDependencyError

soundfile = pytest.importorskip("soundfile")
pytest.importorskip("soxr")

TONE = (0.5 * np.sin(np.arange(1200) * 0.1)).astype(np.float32)[:, None]


def wav(width, channels=1, samples=b"\x00\x80\xff\x01" * 6):
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setparams((channels, width, 8000, 0, "NONE", ""))
        file.writeframes(samples)
    return content.getvalue()


def encoded(form, subtype=None, sound=TONE, rate=8000):
    content = io.BytesIO()
    soundfile.write(content, sound, rate, format=form, subtype=subtype)
    return content.getvalue()


@given(
    st.lists(st.floats(-2, 2, width=32), max_size=20),
    st.sampled_from([1, 2]),
    st.integers(-1, 3),
    st.integers(-1, 30),
)
def test_wav_files_keep_16_bits(values, channels, wanted, length):
    sound = np.array(values[: len(values) // channels * channels], np.float32).reshape(-1, channels)
    found, rate = ps.audio.decode_wav(ps.audio.encode_wav(sound, 8000), wanted, length)
    kept = np.clip(np.rint(sound * 32768), -32768, 32767) / np.float32(32768)
    kept = kept[:, [min(i, channels - 1) for i in range(channels if wanted < 0 else wanted)]]
    if length >= 0:
        kept = np.concatenate([kept, np.zeros((length, kept.shape[1]))])[:length]
    np.testing.assert_array_equal(found, kept)
    assert (found.dtype, rate, rate.dtype) == (np.float32, 8000, np.int32)


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_32"])
def test_wav_files_are_read_as_libsndfile_reads_them(subtype):
    content = encoded("WAV", subtype)
    np.testing.assert_array_equal(ps.audio.decode_wav(content).audio, ps.audio.decode(content).audio)


def test_integers_of_a_wav_file():
    assert [wav_samples(wav(width))[0].dtype for width in (1, 2, 4)] == [np.int8, np.int16, np.int32]
    assert wav_samples(wav(1))[0][:4, 0].tolist() == [-128, 0, 127, -127]
    assert wav_samples(wav(2, 2))[0].shape == (6, 2)


@pytest.mark.parametrize(("form", "exact"), [("FLAC", 2**-15), ("OGG", 0.05), ("MP3", 0.05)])
def test_formats_of_libsndfile(form, exact):
    sound = ps.audio.decode(encoded(form))
    assert isinstance(sound, ps.audio.Sound)
    found, rate = sound
    assert (found.dtype, found.shape[1], rate, rate.dtype) == (np.float32, 1, 8000, np.int32)
    assert np.abs(found[: len(TONE)] - TONE[: len(found)]).max() <= exact


def test_resampling_keeps_the_tone():
    found = ps.audio.resample(TONE, 8000, 16000)
    expected = 0.5 * np.sin(np.arange(2400) * 0.05)
    np.testing.assert_allclose(found[200:-200, 0], expected[200:-200], atol=1e-3)
    assert (found.shape, found.dtype) == ((2400, 1), np.float32)
    assert ps.audio.resample(TONE, 8000, 8000) is TONE
    content = encoded("WAV", "FLOAT")
    np.testing.assert_array_equal(ps.audio.decode(content, 16000).audio, found)
    assert ps.audio.decode(content, 16000).sample_rate == 16000


def test_files_are_decoded_by_block():
    contents = [encoded("FLAC", sound=TONE[:length]) for length in (1200, 300, 1200)]

    def load(content):
        sound, rate = ps.audio.decode(content, 4000)
        fixed, _ = ps.audio.decode_wav(ps.audio.encode_wav(sound, 4000), 1, 500)
        return sound, rate, fixed[:, 0], ps.audio.resample(sound, 4000, 2000)

    ds = ps.Dataset.from_tensor_slices(contents).map(load)
    assert ds.element_spec == (
        ps.TensorSpec((None, None), np.float32),
        ps.TensorSpec((), np.int32),
        ps.TensorSpec((500,), np.float32),
        ps.TensorSpec((None, None), np.float32),
    )
    for found, content in zip(ds, contents, strict=True):
        for one, other in zip(found, load(content), strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
    assert "runs by Block" in str(ds.explain())


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: ps.audio.decode_wav(b"fLaC" + bytes(60)),
            InvalidArgumentError,
            "b'fLaC'.\n  ps.audio.decode",
        ),
        (lambda: ps.audio.decode_wav(wav(2)[:-1]), InvalidArgumentError, "cut short"),
        (lambda: ps.audio.decode_wav(wav(3)), InvalidArgumentError, "8, 16 or 32 bits, got a WAV file of 24"),
        (lambda: ps.audio.decode_wav("a.wav"), InvalidTypeError, r"got str 'a.wav'.\n  Read a path first"),
        (lambda: ps.audio.decode(bytes(60)), InvalidArgumentError, "got 60 bytes"),
        (lambda: ps.audio.encode_wav([0.5], 8000), InvalidArgumentError, r"2-dimensional \(samples, channels\)"),
    ],
)
def test_what_is_no_sound(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("name", ["soundfile", "soxr"])
def test_a_missing_package_is_named(monkeypatch, name):
    content = encoded("FLAC")
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match=rf"{name}.*\n.*penstock\[audio\]"):
        ps.audio.decode(content, 16000)
