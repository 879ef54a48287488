"""Frames of a signal, windows, spectra of the frames, and mel scales."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.audio.windows import hann_window
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.trace.lift import tensor, traceable


def _count(length: int, frame_length: int, frame_step: int, pad_end: bool) -> int:
    return -(-length // frame_step) if pad_end else max((length - frame_length) // frame_step + 1, 0)


def _frame_rule(
    spec: LeafSpec, *, frame_length: int, frame_step: int, pad_end: bool = False, axis: int = -1, **_: Any
) -> TensorSpec:
    signal = tensor(spec)
    at = axis % len(signal.shape)
    extent = signal.shape[at]
    count = None if extent is None else _count(extent, frame_length, frame_step, pad_end)
    return TensorSpec((*signal.shape[:at], count, frame_length, *signal.shape[at + 1 :]), signal.dtype)


@traceable("audio.frame", _frame_rule)
def frame(
    signal: npt.NDArray[Any], frame_length: int, frame_step: int, pad_end: bool = False, pad_value: float = 0,
    axis: int = -1,
) -> npt.NDArray[Any]:  # fmt: skip
    """Return overlapping parts of a signal along a new axis, as `tf.signal.frame` does.

    Args:
        signal: Array with the samples along `axis`.
        frame_length: Number of samples in a frame.
        frame_step: Number of samples from the start of a frame to the start of the next.
        pad_end: If True, frames start at all multiples of `frame_step`, and the last are filled up. By default only
            whole frames are returned.
        pad_value: Value that fills the last frames.
        axis: Axis of the samples.

    Returns:
        The frames of shape (..., frames, frame_length, ...), in new memory.

    Raises:
        InvalidArgumentError: If the length or the step is smaller than 1.

    Example:
        >>> frame(np.arange(5), 3, 2).tolist()
        [[0, 1, 2], [2, 3, 4]]
    """
    if frame_length < 1 or frame_step < 1:
        message = f"frame_length and frame_step must be at least 1, got {frame_length} and {frame_step}."
        raise InvalidArgumentError(message)
    moved = np.moveaxis(signal, axis, -1)
    count = _count(moved.shape[-1], frame_length, frame_step, pad_end)
    missing = (count - 1) * frame_step + frame_length - moved.shape[-1]
    if not count or missing > 0:
        widths = [(0, 0)] * (moved.ndim - 1) + [(0, max(missing, frame_length))]
        moved = np.pad(moved, widths, constant_values=pad_value)
    found = np.lib.stride_tricks.sliding_window_view(moved, frame_length, -1)[..., ::frame_step, :][..., :count, :]
    return np.moveaxis(found, (-2, -1), (axis % moved.ndim, axis % moved.ndim + 1)).copy()


def transform_length(frame_length: int, fft_length: int | None) -> int:
    """Return the number of samples in a transform, by default the smallest power of two that holds a frame."""
    return 1 << max(int(frame_length) - 1, 0).bit_length() if fft_length is None else int(fft_length)


def complex_of(dtype: Any) -> Any:
    """Return the dtype of the spectrum of a signal."""
    return np.complex128 if np.dtype(dtype) == np.float64 else np.complex64


def _spectrum_rule(
    spec: LeafSpec, *, frame_length: int, frame_step: int, fft_length: int | None, pad_end: bool, **params: Any
) -> TensorSpec:
    framed = _frame_rule(spec, frame_length=frame_length, frame_step=frame_step, pad_end=pad_end)
    found = complex_of(framed.dtype)
    dtype = np.dtype(found).type(0).real.dtype if "power" in params else found
    return TensorSpec((*framed.shape[:-1], transform_length(frame_length, fft_length) // 2 + 1), dtype)


@traceable("audio.stft", _spectrum_rule, batches=lambda rank: rank > 0, fresh=True)
def stft(
    signals: npt.NDArray[Any], frame_length: int, frame_step: int, fft_length: int | None = None,
    window: npt.ArrayLike | None = "hann", pad_end: bool = False,
) -> npt.NDArray[Any]:  # fmt: skip
    """Return the spectrum of each frame of a signal, as `tf.signal.stft` does.

    Args:
        signals: Floats of shape (..., samples).
        frame_length: Number of samples in a frame.
        frame_step: Number of samples from the start of a frame to the start of the next.
        fft_length: Number of samples in a transform. By default the smallest power of two that holds a frame.
        window: Factors for the samples of a frame, (frame_length,); "hann" for a Hann window, or None for none.
        pad_end: If True, the last frames are filled up with zeros, as in `frame`.

    Returns:
        The spectra of shape (..., frames, fft_length // 2 + 1): complex64, or complex128 for float64.

    Raises:
        InvalidTypeError: If the signals are not floats.

    Example:
        >>> stft(np.zeros(16000, np.float32), frame_length=255, frame_step=128).shape
        (124, 129)
    """
    array = np.asarray(signals)
    if array.dtype.kind != "f":
        message = f"stft needs floats, got {array.dtype}."
        raise InvalidTypeError(message, hint="Divide integer samples by their range: audio / np.float32(32768).")
    frames = frame(array, frame_length, frame_step, pad_end)
    if window is not None:
        frames = frames * (hann_window(frame_length, dtype=array.dtype) if isinstance(window, str) else window)
    return np.fft.rfft(frames, transform_length(frame_length, fft_length)).astype(complex_of(array.dtype), copy=False)


@traceable("audio.spectrogram", _spectrum_rule, batches=lambda rank: rank > 0, fresh=True)
def spectrogram(
    signals: npt.NDArray[Any], frame_length: int, frame_step: int, fft_length: int | None = None,
    window: npt.ArrayLike | None = "hann", pad_end: bool = False, power: float = 2.0,
) -> npt.NDArray[Any]:  # fmt: skip
    """Return the energy in each frequency of each frame of a signal.

    Args:
        signals: Floats of shape (..., samples).
        frame_length: Number of samples in a frame.
        frame_step: Number of samples from the start of a frame to the start of the next.
        fft_length: Number of samples in a transform. By default the smallest power of two that holds a frame.
        window: Factors for the samples of a frame, (frame_length,); "hann" for a Hann window, or None for none.
        pad_end: If True, the last frames are filled up with zeros, as in `frame`.
        power: Exponent of the magnitude: 2 for energies, 1 for magnitudes.

    Returns:
        Values of shape (..., frames, fft_length // 2 + 1): float32, or float64 for float64.

    Raises:
        InvalidTypeError: If the signals are not floats.

    Example:
        >>> spectrogram(np.ones(16, np.float32), 4, 4, window=None)[0].tolist()
        [16.0, 0.0, 0.0]
    """
    found = stft(signals, frame_length, frame_step, fft_length, window, pad_end)
    energy: npt.NDArray[Any] = np.square(found.real) + np.square(found.imag)
    return energy if power == 2 else np.power(energy, energy.dtype.type(power / 2))


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20, num_spectrogram_bins: int = 129, sample_rate: float = 8000, lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0, dtype: npt.DTypeLike = np.float32,
) -> npt.NDArray[Any]:  # fmt: skip
    """Compute the matrix that converts a spectrogram to mel bins, as `tf.signal.linear_to_mel_weight_matrix` does.

    Args:
        num_mel_bins: Number of mel bins.
        num_spectrogram_bins: Number of frequencies of the spectrogram, `fft_length // 2 + 1`.
        sample_rate: Samples per second of the signal.
        lower_edge_hertz: Lowest frequency of the mel bins.
        upper_edge_hertz: Highest frequency of the mel bins.
        dtype: Dtype of the result.

    Returns:
        Weights of shape (num_spectrogram_bins, num_mel_bins).

    Example:
        >>> import penstock as ps
        >>> ps.audio.linear_to_mel_weight_matrix(num_mel_bins=40).shape
        (129, 40)
    """
    hertz = np.linspace(0.0, float(sample_rate) / 2.0, int(num_spectrogram_bins))[1:]
    edges = np.linspace(_mel(float(lower_edge_hertz)), _mel(float(upper_edge_hertz)), int(num_mel_bins) + 2)
    lower, centre, upper = edges[:-2], edges[1:-1], edges[2:]
    at = _mel(hertz)[:, None]
    weights = np.maximum(0.0, np.minimum((at - lower) / (centre - lower), (upper - at) / (upper - centre)))
    return np.pad(weights, [(1, 0), (0, 0)]).astype(dtype)


def _mel(hertz: Any) -> Any:
    return 1127.0 * np.log(1.0 + hertz / 700.0)


@lru_cache(maxsize=16)
def _filters(num_mel_bins: int, *description: Any) -> tuple[Any, Any, Any]:
    """Return the frequencies and weights of all mel filters, one filter after the other, and where each begins.

    Sums over them have the same bits on all machines. Those of a matrix product depend on the threads of BLAS.
    """
    weights = linear_to_mel_weight_matrix(num_mel_bins, *description).T
    used = weights != 0
    used[~used.any(axis=1), 0] = True  # each filter needs a frequency, if only with the weight 0
    filters, frequencies = np.nonzero(used)
    return frequencies, weights[used], np.searchsorted(filters, np.arange(num_mel_bins))


def _mel_rule(spec: LeafSpec, *, num_mel_bins: int, **_: Any) -> TensorSpec:
    known = tensor(spec)
    return TensorSpec((*known.shape[:-1], num_mel_bins), np.result_type(known.dtype, np.float32))


@traceable("audio.mel_scale", _mel_rule, batches=lambda rank: rank > 0, fresh=True)
def mel_scale(
    spectrogram: npt.NDArray[Any], sample_rate: float, num_mel_bins: int = 80, lower_edge_hertz: float = 0.0,
    upper_edge_hertz: float | None = None,
) -> npt.NDArray[Any]:  # fmt: skip
    """Return a spectrogram with its frequencies summed up into mel bins.

    Args:
        spectrogram: Numbers of shape (..., frequencies), as `spectrogram` returns them.
        sample_rate: Samples per second of the signal.
        num_mel_bins: Number of mel bins.
        lower_edge_hertz: Lowest frequency of the mel bins.
        upper_edge_hertz: Highest frequency of the mel bins. By default half of the sample rate.

    Returns:
        Values of shape (..., num_mel_bins): float32, or float64 for float64.

    Example:
        >>> wave = np.sin(np.arange(16000) * 0.1).astype(np.float32)
        >>> mel_scale(spectrogram(wave, 400, 160), sample_rate=16000).shape
        (98, 80)
    """
    upper = sample_rate / 2 if upper_edge_hertz is None else upper_edge_hertz
    dtype = np.result_type(spectrogram, np.float32)
    description = num_mel_bins, spectrogram.shape[-1], sample_rate, lower_edge_hertz, upper, dtype
    frequencies, weights, starts = _filters(*description)
    return np.add.reduceat(np.take(spectrogram, frequencies, -1) * weights, starts, axis=-1)
