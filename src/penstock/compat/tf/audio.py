"""`tf.audio`: sound in WAV files of 16 bits."""

from __future__ import annotations

import io
import wave
from collections import namedtuple
from typing import Any

import numpy as np

import penstock as ps
from penstock.compat.op import op
from penstock.compat.teaching import missing_in
from penstock.compat.values import array_of, whole
from penstock.errors import InvalidArgumentError

DecodeWav = namedtuple("DecodeWav", ["audio", "sample_rate"])

_LOUDEST = 1 << 15


def _decoded_rule(contents: Any, desired_channels: Any = -1, desired_samples: Any = -1) -> Any:
    extents = [None if isinstance(given, ps.TensorSpec) or int(given) < 0 else int(given)
               for given in (desired_samples, desired_channels)]  # fmt: skip
    return DecodeWav(ps.TensorSpec(extents, np.float32), ps.TensorSpec((), np.int32))


@op("audio.decode_wav", rule=_decoded_rule)
def decode_wav(contents: Any, desired_channels: Any = -1, desired_samples: Any = -1) -> Any:
    """The samples of a WAV file, float32 from -1 to 1 of shape (samples, channels), and their rate.

    Cut, or filled up with zeros, to `desired_samples`; to `desired_channels` by leaving out the last, or repeating it.

    Raises InvalidArgumentError where it is no WAV file of 16 bits.
    """
    try:
        with wave.open(io.BytesIO(array_of(contents))) as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            content = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        message = f"Can't decode this as WAV: {error}."
        raise InvalidArgumentError(
            message, hint="It takes PCM of 16 bits; the package soundfile reads others."
        ) from None
    if width != 2:
        message = f"Can only read 16-bit WAV files, but received {width * 8}."
        raise InvalidArgumentError(message, hint="The package soundfile reads others, in a tf.numpy_function.")
    samples = np.frombuffer(content[: len(content) // (2 * channels) * 2 * channels], "<i2").reshape(-1, channels)
    found = samples.astype(np.float32) / np.float32(_LOUDEST)
    wanted, length = int(desired_channels), int(desired_samples)
    if wanted >= 0:
        found = found[:, np.minimum(np.arange(wanted), channels - 1)]
    if length >= 0:
        found = np.pad(found[:length], [(0, max(length - len(found), 0)), (0, 0)])
    return DecodeWav(found, np.int32(rate))


@op("audio.encode_wav", rule=lambda audio, sample_rate: ps.TensorSpec((), bytes))
def encode_wav(audio: Any, sample_rate: Any) -> Any:
    """A WAV file of 16 bits from samples of shape (samples, channels); what is louder than 1 is cut off."""
    samples = whole(audio, np.float32)
    if samples.ndim != 2:
        message = f"audio must be 2-dimensional but got shape {list(samples.shape)}."
        raise InvalidArgumentError(message, hint="tf.expand_dims(audio, -1) is one channel.")
    levels = np.clip(np.rint(samples * np.float32(_LOUDEST)), -_LOUDEST, _LOUDEST - 1).astype("<i2")
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(int(sample_rate))
        file.writeframes(levels.tobytes())
    return made.getvalue()


__getattr__ = missing_in("tf.audio", globals())
