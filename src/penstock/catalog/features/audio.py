"""Audio: samples of sound."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.audio.files import wav_samples
from penstock.catalog.features.feature import Doc, Stored, StoredNest, file_content, shape_json
from penstock.catalog.features.tensor import Tensor
from penstock.errors import InvalidArgumentError, InvalidTypeError


class Audio(Tensor):
    """Feature for the samples of a sound, of shape (length,) or (length, channels).

    It accepts an array, or a WAV file as a path, bytes or an open file.

    Args:
        file_format: Format of the files.
        shape: Shape of the samples, with None for a length that differs.
        dtype: Dtype of the samples. Default: int64.
        sample_rate: Samples per second.
        encoding: As in `Tensor`.
        lazy_decode: If True, the file is stored as it is, and decoded when it is read. Default: False.
        doc: A `Documentation`, or a string.

    Example:
        >>> Audio(sample_rate=16000).encode_example([0, 1, -1], "audio").tolist()
        [0, 1, -1]
    """

    tfds_class = "tensorflow_datasets.core.features.audio_feature.Audio"

    def __init__(
        self,
        *,
        file_format: str | None = None,
        shape: tuple[int | None, ...] = (None,),
        dtype: Any = np.int64,
        sample_rate: int | None = None,
        encoding: str = "none",
        lazy_decode: bool = False,
        doc: Doc = None,
    ) -> None:
        super().__init__(shape=shape, dtype=dtype, encoding=encoding, doc=doc)
        if len(self.shape) not in (1, 2):
            message = f"shape must be (length,) or (length, channels), got {self.shape}."
            raise InvalidArgumentError(message, hint="Use None for a length that differs.")
        self.file_format, self.sample_rate, self.lazy_decode = file_format, sample_rate, bool(lazy_decode)

    def encode_example(self, value: Any, name: str) -> Any:
        if isinstance(value, np.ndarray | list | tuple):
            if self.lazy_decode:
                message = f"feature {name!r} is stored as a file, got {type(value).__name__}."
                raise InvalidTypeError(message, hint="Give a path or the bytes of the file, or leave lazy_decode out.")
            return super().encode_example(value, name)
        value = file_content(value)
        if not isinstance(value, bytes):
            message = f"feature {name!r} must be an array, or a WAV file, got {type(value).__name__}."
            raise InvalidTypeError(message, hint="Convert the value in _generate_examples().")
        return value if self.lazy_decode else super().encode_example(self._samples(value), name)

    def stored(self) -> StoredNest:
        return Stored((), bytes) if self.lazy_decode else super().stored()

    def decode_example(self, stored: Any) -> Any:
        return self._samples(bytes(stored)) if self.lazy_decode else super().decode_example(stored)

    def decode_batch(self, stored: Any) -> Any:
        from penstock.catalog.features.feature import Feature

        return Feature.decode_batch(self, stored) if self.lazy_decode else super().decode_batch(stored)

    def _samples(self, content: bytes) -> Any:
        samples, _ = wav_samples(content)
        if len(self.shape) == 1:
            samples = samples.mean(axis=1) if samples.shape[1] > 1 else samples[:, 0]
        return samples.astype(self.dtype)

    def to_json(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"shape": shape_json(self.shape), "dtype": self.dtype.name}
        if self.file_format:
            entry["fileFormat"] = self.file_format
        if self.sample_rate:
            entry["sampleRate"] = str(self.sample_rate)
        entry["encoding"] = self.encoding.upper()
        return {"audio": entry | ({"lazyDecode": True} if self.lazy_decode else {})}
