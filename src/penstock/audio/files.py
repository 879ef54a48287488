"""Files of sound: WAV by itself, all other formats by libsndfile; the rate of samples changed by soxr."""

from __future__ import annotations

import io
import wave
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.block.spec import LeafSpec, TensorSpec
from penstock.errors import InvalidArgumentError, InvalidTypeError, optional_package
from penstock.trace.lift import Nature, byte_string, of_nature, tensor, traceable


class Sound(NamedTuple):
    """Samples of a sound, and their rate.

    Attributes:
        audio: float32 samples from -1 to 1, of shape (samples, channels).
        sample_rate: Samples per second.

    Example:
        >>> import numpy as np, penstock as ps
        >>> ps.audio.decode_wav(ps.audio.encode_wav(np.zeros((800, 1)), 8000)).audio.shape
        (800, 1)
    """

    audio: Any
    sample_rate: Any


_WIDTHS: dict[int, np.dtype[Any]] = {1: np.dtype(np.uint8), 2: np.dtype("<i2"), 4: np.dtype("<i4")}
_DECODER = Nature("decodes sound")


def _file(op: str, contents: Any) -> io.BytesIO:
    if isinstance(contents, (bytes, bytearray, memoryview)):
        return io.BytesIO(contents)
    message = f"{op} needs the bytes of one file of sound, got {type(contents).__name__} {contents!r:.60}."
    raise InvalidTypeError(message, hint="Read a path first: Path(path).read_bytes().")


def _sound_rule(spec: LeafSpec, *, desired_channels: int = -1, desired_samples: int = -1, **_: Any) -> Sound:
    byte_string(spec)
    shape = [None if wanted < 0 else wanted for wanted in (desired_samples, desired_channels)]
    return Sound(TensorSpec(shape, np.float32), TensorSpec((), np.int32))


_OTHERS = "ps.audio.decode reads other formats."


def read_wav(contents: bytes | memoryview) -> tuple[bytes, int, int, int]:
    """Return what a WAV file holds: the bytes of its samples, bytes per sample, channels, and samples per second.

    Raises:
        InvalidArgumentError: If the file is damaged, no WAV file, or one without PCM samples.
    """
    try:
        with wave.open(_file("decode_wav", contents)) as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            content = file.readframes(file.getnframes())
            if len(content) < file.getnframes() * width * channels:
                raise EOFError
            return content, width, channels, rate
    except (wave.Error, EOFError) as error:
        why = f"{str(error) or 'it is cut short'}; it begins with {bytes(contents[:4])!r}"
        raise InvalidArgumentError(f"decode_wav cannot decode this as WAV: {why}.", hint=_OTHERS) from None


def wav_samples(contents: bytes | memoryview) -> tuple[npt.NDArray[Any], int]:
    """Return the integers of a WAV file and their rate.

    Returns:
        The samples of shape (samples, channels), int8, int16 or int32 as in the file; and the samples per second.

    Raises:
        InvalidArgumentError: If the file is damaged, no WAV file, or one without PCM samples of 8, 16 or 32 bits.
    """
    content, width, channels, rate = read_wav(contents)
    if width not in _WIDTHS:
        message = f"decode_wav needs samples of 8, 16 or 32 bits, got a WAV file of {width * 8}."
        raise InvalidArgumentError(message, hint=_OTHERS)
    samples = np.frombuffer(content, _WIDTHS[width])
    if width == 1:
        samples = (samples.astype(np.int16) - 128).astype(np.int8)  # 8-bit WAV is unsigned, and its zero is 128
    return samples.reshape(-1, channels), rate


@of_nature(_DECODER)
@traceable("audio.decode_wav", _sound_rule, fresh=True, gives=Sound)
def decode_wav(contents: bytes, desired_channels: int = -1, desired_samples: int = -1) -> Sound:
    """Return the samples of a WAV file, as `tf.audio.decode_wav` does, also of files with 8 or 32 bits.

    Args:
        contents: The bytes of the file.
        desired_channels: Number of channels. Further channels are left out; missing ones repeat the last. -1: all.
        desired_samples: Number of samples. Longer sounds are cut, shorter ones filled up with zeros. -1: all.

    Returns:
        A `Sound`: float32 samples from -1 to 1 of shape (samples, channels), and their rate as int32.

    Raises:
        InvalidArgumentError: If the file is damaged, no WAV file, or one without PCM samples of 8, 16 or 32 bits.

    Example:
        >>> decode_wav(encode_wav([[0.5], [-1.0]], 8000))
        Sound(audio=array([[ 0.5],
               [-1. ]], dtype=float32), sample_rate=np.int32(8000))
    """
    samples, rate = wav_samples(contents)
    found = samples.astype(np.float32) / np.float32(-float(np.iinfo(samples.dtype).min))
    if desired_channels >= 0:
        found = found[:, np.minimum(np.arange(desired_channels), found.shape[1] - 1)]
    if desired_samples >= 0:
        found = np.pad(found[:desired_samples], [(0, max(desired_samples - len(found), 0)), (0, 0)])
    return Sound(found, np.int32(rate))


@traceable("audio.encode_wav", lambda spec, sample_rate: tensor(spec) and TensorSpec((), bytes))
def encode_wav(audio: npt.ArrayLike, sample_rate: int) -> bytes:
    """Encode samples as a WAV file of 16 bits, as `tf.audio.encode_wav` does. Samples outside of [-1, 1] are clipped.

    Args:
        audio: Samples from -1 to 1 of shape (samples, channels).
        sample_rate: Samples per second.

    Returns:
        The bytes of the file.

    Raises:
        InvalidArgumentError: If the samples have another rank.

    Example:
        >>> import numpy as np, penstock as ps
        >>> len(ps.audio.encode_wav(np.zeros((800, 1)), 8000))
        1644
    """
    samples = np.asarray(audio, np.float32)
    if samples.ndim != 2:
        message = f"audio must be 2-dimensional (samples, channels), got shape {samples.shape}."
        raise InvalidArgumentError(message, hint="Write audio[:, None] for one channel.")
    levels = np.clip(np.rint(samples * np.float32(1 << 15)), -1 << 15, (1 << 15) - 1).astype("<i2")
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(int(sample_rate))
        file.writeframes(levels.tobytes())
    return made.getvalue()


@of_nature(_DECODER)
@traceable("audio.decode", _sound_rule, fresh=True, gives=Sound)
def decode(contents: bytes, sample_rate: int | None = None) -> Sound:
    """Decode a sound file: WAV, FLAC, MP3, OGG, or another format that libsndfile reads.

    Args:
        contents: The bytes of the file.
        sample_rate: Rate to resample to, in samples per second. Default: the rate of the file.

    Returns:
        A `Sound`: float32 samples from -1 to 1 of shape (samples, channels), and their rate as int32.

    Raises:
        InvalidArgumentError: If the bytes are no such file, or if the file is damaged.
        MissingDependencyError: If the extra `audio` is not installed.

    Example:
        >>> import numpy as np, penstock as ps
        >>> sound = ps.audio.decode(ps.audio.encode_wav(np.zeros((800, 1)), 8000), sample_rate=4000)
        >>> sound.audio.shape, int(sound.sample_rate)
        ((400, 1), 4000)
    """
    soundfile, file = optional_package("soundfile", "Decoding sound", "audio"), _file("decode", contents)
    try:
        audio, rate = soundfile.read(file, dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        message = f"decode needs a file that libsndfile reads, got {len(contents)} bytes: {error.error_string}"
        raise InvalidArgumentError(message, hint="Convert the file, for example with ffmpeg.") from None
    wanted = rate if sample_rate is None else sample_rate
    return Sound(resample(audio, rate, wanted), np.int32(wanted))


@traceable("audio.resample", lambda spec, **_: TensorSpec((None, *tensor(spec).shape[1:]), tensor(spec).dtype))
def resample(audio: npt.NDArray[Any], rate_in: int, rate_out: int) -> npt.NDArray[Any]:
    """Resample a sound to another rate, with the high-quality filter of soxr.

    If the rates are equal, the sound is returned as it is.

    Args:
        audio: Samples of shape (samples,) or (samples, channels): float32, float64, int16 or int32.
        rate_in: Samples per second of `audio`.
        rate_out: Samples per second of the result.

    Returns:
        The samples, with the dtype and the number of channels of `audio`.

    Raises:
        MissingDependencyError: If the extra `audio` is not installed.

    Example:
        >>> import numpy as np, penstock as ps
        >>> ps.audio.resample(np.zeros(800, np.float32), 8000, 16000).shape
        (1600,)
    """
    if rate_in == rate_out:
        return audio
    soxr = optional_package("soxr", "Resampling", "audio")
    return np.asarray(soxr.resample(audio, rate_in, rate_out))
