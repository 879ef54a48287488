"""Spectrograms and mel scales: compared with their definition, and equal alone and by Block."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError


def waves(count, length, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=(count, length)).astype(dtype)


def test_a_spectrogram_is_the_energy_of_each_frame():
    wave = waves(1, 50, np.float64)[0]
    frames = [np.append(wave, np.zeros(10))[start : start + 10] for start in range(0, 50, 4)]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(10) / 10)
    expected = [np.abs(np.fft.fft(frame * window, 16)[:9]) ** 2 for frame in frames]
    np.testing.assert_allclose(ps.audio.spectrogram(wave, 10, 4, pad_end=True), expected)
    np.testing.assert_allclose(ps.audio.spectrogram(wave, 10, 4), expected[:11])
    np.testing.assert_allclose(ps.audio.spectrogram(wave, 10, 4, power=1), np.sqrt(expected[:11]))
    np.testing.assert_allclose(np.abs(ps.audio.stft(wave, 10, 4)) ** 2, expected[:11])
    boxes = ps.audio.spectrogram(wave, 10, 4, window=None)
    np.testing.assert_array_equal(boxes, ps.audio.spectrogram(wave, 10, 4, window=np.ones(10)))
    assert ps.audio.spectrogram(wave[:5], 10, 4).shape == (0, 9)


def test_mel_bins_sum_up_frequencies():
    energies = np.random.default_rng(1).random((3, 129)).astype(np.float32)
    weights = ps.audio.linear_to_mel_weight_matrix(40, 129, 16000, 0.0, 8000.0)
    np.testing.assert_allclose(ps.audio.mel_scale(energies, 16000, 40), energies @ weights, rtol=1e-5)
    low = ps.audio.mel_scale(energies, 16000, 40, 100.0, 1000.0)
    np.testing.assert_allclose(
        low, energies @ ps.audio.linear_to_mel_weight_matrix(40, 129, 16000, 100.0, 1000.0), rtol=1e-5
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_more_mel_bins_than_frequencies(dtype):
    energies = np.random.default_rng(1).integers(0, 200, (2, 3, 17)).astype(dtype)
    found = ps.audio.mel_scale(energies, 16000, 60)
    expected = energies @ ps.audio.linear_to_mel_weight_matrix(60, 17, 16000, 0.0, 8000.0, np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert (found == 0).all((0, 1)).any()
    assert found.dtype == (np.float64 if dtype == np.float64 else np.float32)
    (spectrum,) = ps.Dataset.from_tensors(energies[0]).map(lambda x: ps.audio.mel_scale(x, 16000, 60))
    np.testing.assert_array_equal(spectrum, found[0])


@given(
    dtype=st.sampled_from([np.float32, np.float64]),
    count=st.integers(1, 20),
    length=st.integers(1, 300),
    channels=st.sampled_from([(), (1,), (3,)]),
    frame=st.integers(1, 40),
    step=st.integers(1, 40),
    fft=st.sampled_from([None, 64]),
    pad=st.booleans(),
    power=st.sampled_from([1, 2, 0.6]),
    window=st.sampled_from(["hann", None]),
)
def test_by_block_each_bit_is_that_of_the_element(dtype, count, length, channels, frame, step, fft, pad, power, window):
    sounds = np.random.default_rng(length).normal(size=(count, *channels, length)).astype(dtype)

    def features(sound):
        energies = ps.audio.spectrogram(sound, frame, step, fft, window, pad, power)
        return energies, ps.audio.mel_scale(energies, 16000, 20), ps.audio.stft(sound, frame, step, fft, window, pad)

    ds = ps.Dataset.from_tensor_slices(sounds).map(features)
    spec = ds.element_spec
    for found, sound in zip(ds, sounds, strict=True):
        for one, other, known in zip(found, features(sound), spec, strict=True):
            np.testing.assert_array_equal(one, other)
            assert (one.dtype, one.shape) == (other.dtype, other.shape) == (known.dtype, known.shape)
    assert "runs by Block: audio.spectrogram → audio.mel_scale → audio.stft" in str(ds.explain())


def test_sounds_of_differing_length():
    sounds = [waves(1, length)[0] for length in (100, 60, 100)]
    ds = ps.Dataset.from_list(sounds).map(lambda sound: ps.audio.spectrogram(sound, 20, 10))
    for found, sound in zip(ds, sounds, strict=True):
        np.testing.assert_array_equal(found, ps.audio.spectrogram(sound, 20, 10))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ps.audio.stft(np.zeros(9, np.int16), 4, 2), InvalidTypeError, "needs floats, got int16.\n  Divide"),
        (lambda: ps.audio.spectrogram(np.zeros(9, np.float32), 0, 2), InvalidArgumentError, "at least 1, got 0 and 2"),
        (lambda: ps.audio.frame(np.zeros(9), 4, 0), InvalidArgumentError, "at least 1, got 4 and 0"),
    ],
)
def test_what_cannot_be(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_windows():
    np.testing.assert_allclose(
        ps.audio.hann_window(5, dtype=np.float64), 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(5) / 4)
    )
    assert ps.audio.hamming_window(4).tolist() == pytest.approx([0.08, 0.54, 1.0, 0.54])
    assert ps.audio.frame([[1, 2], [3, 4]], 1, 1, axis=0).tolist() == [[[1, 2]], [[3, 4]]]
    assert ps.audio.frame(np.arange(5), 3, 2, pad_end=True, pad_value=9).tolist() == [[0, 1, 2], [2, 3, 4], [4, 9, 9]]
