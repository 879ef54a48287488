"""`tf.signal`: frames of a signal, windows, Fourier transforms and mel spectrograms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import penstock as ps
from penstock.compat.dtypes import as_dtype
from penstock.compat.op import known, named, op
from penstock.compat.teaching import missing_in
from penstock.compat.values import array_of, raised, whole
from penstock.errors import InvalidArgumentError


def _complex(dtype: Any) -> Any:
    return np.complex128 if np.dtype(dtype).itemsize == np.dtype(dtype).alignment == 8 else np.complex64


def _count(length: int, frame_length: int, frame_step: int, pad_end: bool) -> int:
    return -(-length // frame_step) if pad_end else max((length - frame_length) // frame_step + 1, 0)


def _frames(signal: np.ndarray, length: int, step: int, pad_end: bool, pad_value: Any, axis: int) -> np.ndarray:
    if length < 1 or step < 1:
        message = f"frame_length and frame_step must be at least 1, got {length} and {step}."
        raise InvalidArgumentError(message)
    moved = np.moveaxis(signal, axis, -1)
    count = _count(moved.shape[-1], length, step, pad_end)
    needed = (count - 1) * step + length if count else 0
    if needed > moved.shape[-1]:
        widths = [(0, 0)] * (moved.ndim - 1) + [(0, needed - moved.shape[-1])]
        moved = np.pad(moved, widths, constant_values=pad_value)
    if not count:
        return np.zeros((*moved.shape[:-1], 0, length), moved.dtype)
    found = np.lib.stride_tricks.sliding_window_view(moved, length, -1)[..., ::step, :][..., :count, :]
    return found if axis in (-1, signal.ndim - 1) else np.moveaxis(found, (-2, -1), (axis, axis + 1))


def _frame_rule(
    signal: Any, frame_length: Any, frame_step: Any, pad_end: Any = False, pad_value: Any = 0, axis: int = -1
) -> Any:
    at = axis % len(signal.shape)
    count = None if signal.shape[at] is None else _count(signal.shape[at], int(frame_length), int(frame_step), pad_end)
    return ps.TensorSpec((*signal.shape[:at], count, int(frame_length), *signal.shape[at + 1 :]), signal.dtype)


@op("signal.frame", rule=_frame_rule)
def frame(
    signal: Any, frame_length: Any, frame_step: Any, pad_end: Any = False, pad_value: Any = 0, axis: int = -1
) -> Any:
    """Overlapping parts of a signal: `frame_length` values, every `frame_step`, along a new axis."""
    return _frames(whole(signal), int(frame_length), int(frame_step), bool(pad_end), pad_value, axis).copy()


def _window(name: str, high: float) -> Any:
    @op(f"signal.{name}")
    def window(window_length: Any, periodic: bool = True, dtype: Any = "float32") -> Any:
        size, wanted = int(window_length), as_dtype(dtype).dtype
        if size == 1:
            return np.ones(1, wanted)
        count = wanted.type(size + bool(periodic) * (size % 2 == 0) - 1)
        turned = np.cos(wanted.type(2 * np.pi) * np.arange(size, dtype=wanted) / count)
        return (wanted.type(high) - wanted.type(1 - high) * turned).astype(wanted)

    return named(window, name, f"A {name.partition('_')[0].capitalize()} window of so many values.")


hann_window, hamming_window = _window("hann_window", 0.5), _window("hamming_window", 0.54)


def _transform(name: str, function: Callable[..., Any], *, real: str = "") -> Any:
    """A Fourier transform over the last axis, in the precision of what it is given."""

    def length_of(fft_length: Any) -> Any:
        found = None if fft_length is None else [int(part) for part in whole(fft_length).reshape(-1)]
        return found if found is None or name.endswith("2d") else found[0]

    @op(f"signal.{name}")
    def call(input: Any, fft_length: Any = None) -> Any:
        array = whole(input)
        precision = np.dtype(_complex(array.real.dtype))
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


def _enclosing(length: int) -> int:
    return 1 << max(length - 1, 0).bit_length()


def _stft_rule(
    signals: Any, frame_length: Any, frame_step: Any, fft_length: Any = None, window: Any = None, pad_end: Any = False
) -> Any:
    framed = _frame_rule(signals, frame_length, frame_step, pad_end)
    bins = (_enclosing(int(frame_length)) if fft_length is None else int(fft_length)) // 2 + 1
    return ps.TensorSpec((*framed.shape[:-1], bins), _complex(signals.dtype))


@op("signal.stft", rule=_stft_rule)
def _stft(signals: Any, frame_length: Any, frame_step: Any, fft_length: Any, window: Any, pad_end: Any) -> Any:
    array, length = whole(signals), int(frame_length)
    frames = _frames(array, length, int(frame_step), bool(pad_end), 0, -1)
    if window is not None:
        frames = frames * window
    return np.fft.rfft(frames, _enclosing(length) if fft_length is None else int(fft_length)).astype(
        _complex(array.dtype)
    )


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
    """The spectrum of each frame of a signal: (..., frames, fft_length // 2 + 1), complex64 of float32.

    >>> stft(np.zeros(16000, np.float32), frame_length=255, frame_step=128).shape
    TensorShape([124, 129])
    """
    dtype = getattr(signals, "dtype", np.float32)
    window = None if window_fn is None else array_of(window_fn(frame_length, dtype=dtype))
    return _stft(signals, frame_length, frame_step, fft_length, window, pad_end)


def _mel(hertz: Any) -> Any:
    return 1127.0 * np.log(1.0 + hertz / 700.0)


@op("signal.linear_to_mel_weight_matrix")
def linear_to_mel_weight_matrix(
    num_mel_bins: Any = 20,
    num_spectrogram_bins: Any = 129,
    sample_rate: Any = 8000,
    lower_edge_hertz: Any = 125.0,
    upper_edge_hertz: Any = 3800.0,
    dtype: Any = "float32",
) -> Any:
    """What a spectrogram is multiplied with for its mel bins: (num_spectrogram_bins, num_mel_bins)."""
    hertz = np.linspace(0.0, float(sample_rate) / 2.0, int(num_spectrogram_bins))[1:]
    edges = np.linspace(_mel(float(lower_edge_hertz)), _mel(float(upper_edge_hertz)), int(num_mel_bins) + 2)
    lower, centre, upper = edges[:-2], edges[1:-1], edges[2:]
    at = _mel(hertz)[:, None]
    weights = np.maximum(0.0, np.minimum((at - lower) / (centre - lower), (upper - at) / (upper - centre)))
    return np.pad(weights, [(1, 0), (0, 0)]).astype(as_dtype(dtype).dtype)


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
    frames = irfft(stfts, [_enclosing(length) if fft_length is None else fft_length])[..., :length]
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
