"""SpeechCommands: 100,503 sounds of one second: ten words, other words and silence."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from penstock.audio.files import wav_samples
from penstock.catalog import features
from penstock.catalog.builder import Examples, Skipped
from penstock.catalog.builders.published import Published
from penstock.catalog.download.manager import DownloadManager
from penstock.errors import DataLossError, InvalidArgumentError

_FILE, _TEST_FILE = "speech_commands_v0.02.tar.gz", "speech_commands_test_set_v0.02.tar.gz"
_WORDS = ("down", "go", "left", "no", "off", "on", "right", "stop", "up", "yes")
_SILENCE, _UNKNOWN, _NOISE = "_silence_", "_unknown_", "_background_noise_"
_RATE = 16_000
_VALIDATION_NOISE = f"{_NOISE}/running_tap.wav"


class SpeechCommands(Published):
    """Sounds of one second at 16 kHz: ten words to recognise, other words, "_unknown_", and "_silence_".

    There are 85,511 sounds for training, 10,102 for validation and 4,890 for test. The silence for training and
    validation is cut from long recordings of noise, one second every half second. The silence for test consists of
    separate recordings. A file that cannot be decoded is an error, although tfds skips it: there should be none.
    """

    def _features(self) -> Mapping[str, features.Feature]:
        return {
            "audio": features.Audio(file_format="wav", sample_rate=_RATE, dtype=np.int16),
            "label": features.ClassLabel(names=(*_WORDS, _SILENCE, _UNKNOWN)),
        }

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        path, test = dl_manager.download([self.URL + _FILE, self.URL + _TEST_FILE])
        train, validation = self._listed(dl_manager, path)
        return {
            "train": self._generate_examples(dl_manager, path, train),
            "validation": self._generate_examples(dl_manager, path, validation),
            "test": self._generate_examples(dl_manager, test, None),
        }

    def _listed(self, dl_manager: DownloadManager, path: Path) -> tuple[set[str], set[str]]:
        """Return the files for training and validation. The archive lists the files for validation and test."""
        files: set[str] = set()
        lists: dict[str, set[str]] = {}
        for name, file in dl_manager.iter_archive(path):
            if name in ("testing_list.txt", "validation_list.txt"):
                lists[name] = set(file.read().decode().split())
            elif name.endswith(".wav"):
                files.add(name)
        if len(lists) < 2:
            message = "the archive does not say what is there to test and to validate."
            raise DataLossError(message, hint="Delete it, and it is downloaded again.", file=str(path))
        validation = lists["validation_list.txt"] | {_VALIDATION_NOISE}
        return files - validation - lists["testing_list.txt"], validation

    def _generate_examples(
        self, dl_manager: DownloadManager, path: Path, wanted: set[str] | None
    ) -> Iterator[tuple[str, dict[str, Any]] | Skipped]:
        for name, file in dl_manager.iter_archive(path):
            if not name.endswith(".wav") or (wanted is not None and name not in wanted):
                continue
            word, file_name = posixpath.split(name)
            word = posixpath.basename(word)
            try:
                samples, _ = wav_samples(file.read())
            except InvalidArgumentError as error:
                yield Skipped(name, error.message)
                continue
            samples = samples.reshape(-1)
            label = word if word in _WORDS else _SILENCE if word in (_SILENCE, _NOISE) else _UNKNOWN
            key = f"{word}_{file_name}"
            if word != _NOISE:
                yield key, {"audio": samples, "label": label}
                continue
            for start in range(0, len(samples) - _RATE, _RATE // 2):
                yield f"{key}_{start}", {"audio": samples[start : start + _RATE], "label": label}
