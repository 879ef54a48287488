"""`tf.signal`: frames of a signal, windows, Fourier transforms and mel spectrograms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock import audio
from penstock.audio.spectra import complex_of, transform_length
from penstock.compat.op import known, named, op, through
from penstock.compat.teaching import missing_in
from penstock.compat.values import array_of, raised, whole
from penstock.errors import InvalidArgumentError

frame = through(audio.frame, first=whole)
hann_window = op("signal.hann_window")(audio.hann_window)
hamming_window = op("signal.hamming_window")(audio.hamming_window)
linear_to_mel_weight_matrix = op("signal.linear_to_mel_weight_matrix")(audio.linear_to_mel_weight_matrix)


def _transform(name: str, function: Callable[..., Any], *, real: str = "") -> Any:
    """Return a Fourier transform over the last axis, in the precision of its input."""

    def length_of(fft_length: Any) -> Any:
        found = None if fft_length is None else [int(part) for part in whole(fft_length).reshape(-1)]
        return found if found is None or name.endswith("2d") else found[0]

    @op(f"signal.{name}")
    def call(input: Any, fft_length: Any = None) -> Any:
        array = whole(input)
        precision = np.dtype(complex_of(array.real.dtype))
        found = function(array, length_of(fft_length)) if real else function(array)
        return found.astype(precision.type(0).real.dtype if real == "result" else precision)

    return named(call, name, f"The transform `{name}` along the last axis; complex64 of float32.")


rfft, irfft = _transform("rfft", np.fft.rfft, real="input"), _transform("irfft", np.fft.irfft, real="result")
rfft2d, irfft2d = (
    _transform("rfft2d", np.fft.rfft2, real="input"),
    _transform("irfft2d", np.fft.irfft2, real="result"),
)
fft, ifft = _transform("fft", np.fft.fft), _transform("ifft", np.fft.ifft)
fft2d, ifft2d = _transform("fft2d", np.fft.fft2), _transform("ifft2d", np.fft.ifft2)


_stft = through(audio.stft, first=whole)


@known
def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Any = hann_window,
    pad_end: Any = False,
    name: Any = None,
) -> Any:
    """Return the spectrum of each frame of a signal: (..., frames, fft_length // 2 + 1), complex64 for float32.

    >>> stft(np.zeros(16000, np.float32), frame_length=255, frame_step=128).shape
    TensorShape([124, 129])
    """
    dtype = getattr(signals, "dtype", np.float32)
    window = None if window_fn is None else array_of(window_fn(frame_length, dtype=dtype))
    return _stft(signals, frame_length, frame_step, fft_length, window, pad_end)


@op("signal.overlap_and_add")
def overlap_and_add(signal: Any, frame_step: Any) -> Any:
    """Add up frames, each of which begins `frame_step` values after the frame before."""
    frames, step = whole(signal), int(frame_step)
    count, length = frames.shape[-2:]
    found = np.zeros((*frames.shape[:-2], (count - 1) * step + length), frames.dtype)
    for number in range(count):
        found[..., number * step : number * step + length] += frames[..., number, :]
    return found


def inverse_stft_window_fn(frame_step: Any, forward_window_fn: Any = hann_window, name: Any = None) -> Any:
    """Return the window function with which `inverse_stft` undoes an `stft` of the forward window."""

    def inverse(frame_length: Any, dtype: Any = "float32") -> Any:
        window, step = array_of(forward_window_fn(frame_length, dtype=dtype)), int(frame_step)
        squares = np.pad(np.square(window), [(0, -len(window) % step)]).reshape(-1, step)
        return raised(window / np.tile(squares.sum(0), len(squares))[: len(window)])

    return inverse


@known
def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Any = hann_window,
    name: Any = None,
) -> Any:
    """Return the signal of a spectrum: the inverse transforms of its frames, times a window, added up."""
    length = int(frame_length)
    frames = irfft(stfts, [transform_length(length, fft_length)])[..., :length]
    window = 1.0 if window_fn is None else window_fn(frame_length, dtype=frames.dtype)
    return overlap_and_add(frames * window, frame_step)


def _cosines(array: np.ndarray, norm: Any = None, *, inverse: bool = False) -> Any:
    """Return the cosine transform of type 2 along the last axis, or of type 3, its inverse."""
    size = array.shape[-1]
    weights = 2 * np.cos(np.pi / size * (np.arange(size)[:, None] + 0.5) * np.arange(size))
    if norm == "ortho":
        weights /= np.sqrt(2 * size)
        weights[:, 0] /= np.sqrt(2)
    elif inverse:
        weights[:, 0] /= 2
    return array @ (weights.T if inverse else weights).astype(array.dtype)


def _cosine_transform(name: str, first: int) -> Any:
    @op(f"signal.{name}")
    def call(input: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
        array = whole(input)
        if type not in (2, 3) or norm not in (None, "ortho") or axis not in (-1, array.ndim - 1):
            message = f"tf.signal.{name} has types 2 and 3 along the last axis, got {type=}, {axis=}, {norm=}."
            raise InvalidArgumentError(message, hint="Write scipy.fft in a tf.numpy_function.")
        if n is not None:
            array = np.pad(array[..., :n], [(0, 0)] * (array.ndim - 1) + [(0, max(n - array.shape[-1], 0))])
        return _cosines(array, norm, inverse=type != first)

    return named(call, name, f"Return the cosine transform `{name}` along the last axis, cut or padded to `n` values.")


dct, idct = _cosine_transform("dct", 2), _cosine_transform("idct", 3)


@op("signal.mfccs_from_log_mel_spectrograms")
def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any) -> Any:
    """Return the cepstral coefficients of mel spectrograms: their cosine transform."""
    array = whole(log_mel_spectrograms)
    return (_cosines(array) / np.sqrt(array.dtype.type(2 * array.shape[-1]))).astype(array.dtype)


__getattr__ = missing_in(
    "tf.signal", globals(), dict.fromkeys(("mdct", "inverse_mdct"), "Write scipy.fft.dct of type 4.")
)
