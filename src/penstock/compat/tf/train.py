"""`tf.train`: examples as messages, and checkpoints of iterators and variables."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from penstock.compat.teaching import missing_in
from penstock.compat.values import lowered
from penstock.errors import NotFoundError, writing_to
from penstock.io.example import encode_feature, encode_features


class _Message:
    """The methods that all messages have in protobuf."""

    def MergeFrom(self, other: Any) -> None:
        """Add the values of another message: entries replace those of the same name, lists become longer."""
        for name, theirs in vars(copy.deepcopy(other)).items():
            mine = getattr(self, name)
            add = "update" if isinstance(theirs, dict) else "extend" if isinstance(theirs, list) else "MergeFrom"
            getattr(mine, add)(theirs)

    def CopyFrom(self, other: Any) -> None:
        """Replace all values by those of another message."""
        vars(self).update(vars(copy.deepcopy(other)))

    def Clear(self) -> None:
        """Remove all values."""
        self.CopyFrom(type(self)())

    def HasField(self, name: str) -> bool:
        """Return True if an inner message has values."""
        return bool(getattr(self, name) != type(getattr(self, name))())

    @classmethod
    def FromString(cls, serialized: Any) -> Any:
        """Return the message in `serialized`."""
        found: Any = cls()
        found.ParseFromString(serialized)
        return found

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class _List(_Message):
    """The values of a feature of one kind."""

    def __init__(self, value: Any = ()) -> None:
        self.value: list[Any] = [lowered(item) for item in value]


class BytesList(_List):
    """Byte strings."""


class FloatList(_List):
    """Numbers, as float32."""


class Int64List(_List):
    """Integers."""


_LISTS = ("bytes_list", "float_list", "int64_list")


class Feature(_Message):
    """One feature: a list of one of three kinds."""

    def __init__(self, bytes_list: Any = None, float_list: Any = None, int64_list: Any = None) -> None:
        self.bytes_list = BytesList() if bytes_list is None else bytes_list
        self.float_list = FloatList() if float_list is None else float_list
        self.int64_list = Int64List() if int64_list is None else int64_list
        given = zip(_LISTS, (bytes_list, float_list, int64_list), strict=True)
        self._kind = next((name for name, item in given if item is not None), None)

    def WhichOneof(self, name: str = "kind") -> str | None:
        """Return the name of the list that is set, or None."""
        return self._kind or next((name for name in _LISTS if getattr(self, name).value), None)

    def __repr__(self) -> str:
        kind = self.WhichOneof()
        return "Feature()" if kind is None else f"Feature({kind}={getattr(self, kind)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Feature) and repr(self) == repr(other)

    __hash__ = None

    def MergeFrom(self, other: Any) -> None:
        """Add the values of another feature, or replace the values if the kinds differ."""
        kind = other.WhichOneof()
        if kind is not None and kind != self.WhichOneof():
            self.CopyFrom(other)
        elif kind is not None:
            getattr(self, kind).MergeFrom(getattr(other, kind))

    def HasField(self, name: str) -> bool:
        """Return True for the kind of list that is set."""
        return self.WhichOneof() == name

    def SerializeToString(self, deterministic: bool = True) -> bytes:
        """Return the serialized message."""
        return encode_feature(self._encodable(), "feature")

    def _encodable(self) -> Any:
        kind = self.WhichOneof()
        if kind == "bytes_list":
            return self.bytes_list.value
        if kind == "float_list":
            return np.asarray(self.float_list.value, np.float32)
        return np.asarray(self.int64_list.value if kind else [], np.int64)

    @classmethod
    def _of(cls, values: Any) -> Feature:
        if isinstance(values, list):
            return cls(bytes_list=BytesList(values))
        kind = "float_list" if values.dtype.kind == "f" else "int64_list"
        return cls(**{kind: (FloatList if kind == "float_list" else Int64List)(values.tolist())})


class _Map(dict[str, Any]):
    """Messages by name. A missing message is made on access, as in protobuf."""

    def __init__(self, kind: type, values: Any = None) -> None:
        super().__init__(values or {})
        self._kind = kind

    def __missing__(self, name: str) -> Any:
        return self.setdefault(name, self._kind())

    def __reduce__(self) -> Any:
        return _Map, (self._kind, dict(self))


class Features(_Message):
    """The features of an example."""

    def __init__(self, feature: Mapping[str, Feature] | None = None) -> None:
        self.feature = _Map(Feature, feature)

    def SerializeToString(self, deterministic: bool = True) -> bytes:
        """Return the serialized message."""
        return encode_features({name: item._encodable() for name, item in self.feature.items()})

    def __iter__(self) -> Iterator[str]:
        return iter(self.feature)


class Example(_Message):
    """A `tf.train.Example`.

    >>> example = Example(features=Features(feature={"label": Feature(int64_list=Int64List(value=[3]))}))
    >>> Example.FromString(example.SerializeToString()).features.feature["label"].int64_list.value
    [3]
    """

    def __init__(self, features: Features | None = None) -> None:
        self.features = Features() if features is None else features

    def SerializeToString(self, deterministic: bool = True) -> bytes:
        """Return the serialized message."""
        return ps.io.encode_example({name: item._encodable() for name, item in self.features.feature.items()})

    def ParseFromString(self, serialized: Any) -> int:
        """Replace the content by that of a serialized message."""
        decoded = ps.io.decode_example(lowered(serialized))
        self.features = Features({name: Feature._of(values) for name, values in decoded.items()})
        return len(serialized)


class _Repeated(list[Feature]):
    """A list of features. `add()` appends one, as in protobuf."""

    def add(self) -> Feature:
        self.append(Feature())
        return self[-1]


class FeatureList(_Message):
    """The features of one name, one for each step."""

    def __init__(self, feature: Iterable[Feature] = ()) -> None:
        self.feature = _Repeated(feature)


class FeatureLists(_Message):
    """The feature lists of a sequence example."""

    def __init__(self, feature_list: Mapping[str, FeatureList] | None = None) -> None:
        self.feature_list = _Map(FeatureList, feature_list)


class SequenceExample(_Message):
    """A `tf.train.SequenceExample`: a context, and lists of features, one for each step.

    >>> frames = FeatureList(feature=[Feature(int64_list=Int64List(value=[step])) for step in (3, 4)])
    >>> example = SequenceExample(feature_lists=FeatureLists(feature_list={"frames": frames}))
    >>> again = SequenceExample.FromString(example.SerializeToString())
    >>> [step.int64_list.value for step in again.feature_lists.feature_list["frames"].feature]
    [[3], [4]]
    """

    def __init__(self, context: Features | None = None, feature_lists: FeatureLists | None = None) -> None:
        self.context = Features() if context is None else context
        self.feature_lists = FeatureLists() if feature_lists is None else feature_lists

    def SerializeToString(self, deterministic: bool = True) -> bytes:
        """Return the serialized message."""
        context = {name: item._encodable() for name, item in self.context.feature.items()}
        lists = {
            name: [step._encodable() for step in item.feature] for name, item in self.feature_lists.feature_list.items()
        }
        return ps.io.SequenceExample(context, lists).SerializeToString()

    def ParseFromString(self, serialized: Any) -> int:
        """Replace the content by that of a serialized message."""
        read = ps.io.SequenceExample.FromString(lowered(serialized))
        self.context = Features({name: Feature._of(values) for name, values in read.context.items()})
        lists = {name: FeatureList(map(Feature._of, steps)) for name, steps in read.feature_lists.items()}
        self.feature_lists = FeatureLists(lists)
        return len(serialized)


class _Restored:
    """The result of `restore`, which has restored everything."""

    def assert_consumed(self) -> _Restored:
        return self

    assert_existing_objects_matched = expect_partial = assert_consumed


class Checkpoint:
    """Iterators, variables and models whose state is saved together.

    The state of an iterator is its position, not its elements. A Keras model is saved by its weights.
    """

    def __init__(self, **objects: Any) -> None:
        vars(self).update(objects)
        self._objects = objects
        self._count = 0

    def save(self, file_prefix: Any, options: Any = None) -> str:
        """Write `file_prefix-1`, and the next number with each call."""
        self._count += 1
        return self.write(f"{os.fspath(file_prefix)}-{self._count}")

    def write(self, file_prefix: Any, options: Any = None) -> str:
        """Write the state to this file atomically."""
        states, arrays = {}, {}
        for name, held in self._objects.items():
            if hasattr(held, "state_dict"):
                states[name] = held.state_dict()
            else:
                for at, array in enumerate(_weights(held)):
                    arrays[f"{name}/{at}"] = array
        path = Path(os.fspath(file_prefix))
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.unfinished")
        with writing_to(unfinished), unfinished.open("wb") as file:
            arrays["states"] = np.frombuffer(json.dumps(states).encode(), np.uint8)
            np.savez(file, **arrays)  # type: ignore[arg-type]
        unfinished.replace(path)
        return str(path)

    def restore(self, save_path: Any, options: Any = None) -> _Restored:
        """Restore the state of a file. None, as from `latest_checkpoint` before the first save, changes nothing."""
        if save_path is None:
            return _Restored()
        path = Path(os.fspath(save_path))
        if not path.exists():
            message = f"There is no checkpoint {path}."
            raise NotFoundError(message, hint="manager.latest_checkpoint names the newest one.")
        with np.load(path, allow_pickle=False) as saved:
            states = json.loads(saved["states"].tobytes())
            for name, held in self._objects.items():
                if name in states:
                    held.load_state_dict(states[name])
                elif f"{name}/0" in saved.files:
                    count = sum(known.startswith(f"{name}/") for known in saved.files)
                    _set_weights(held, [saved[f"{name}/{at}"] for at in range(count)])
        return _Restored()

    read = restore


def _weights(held: Any) -> list[np.ndarray]:
    if hasattr(held, "get_weights"):
        return [np.asarray(array) for array in held.get_weights()]
    if hasattr(held, "variables") and not callable(held.variables):  # an optimizer of Keras
        return [np.asarray(variable) for variable in held.variables]
    return [np.asarray(lowered(held.numpy() if hasattr(held, "numpy") else held))]


def _set_weights(held: Any, arrays: list[np.ndarray]) -> None:
    if hasattr(held, "set_weights"):
        held.set_weights(arrays)
    elif hasattr(held, "variables") and not callable(held.variables):
        for variable, array in zip(held.variables, arrays, strict=False):
            variable.assign(array)
    else:
        held.assign(arrays[0])


class CheckpointManager:
    """Checkpoints in a folder, of which the newest are kept."""

    def __init__(
        self, checkpoint: Any, directory: Any, max_to_keep: int | None, checkpoint_name: str = "ckpt", **other: Any
    ) -> None:
        self.checkpoint, self.directory = checkpoint, os.fspath(directory)
        self._kept, self._name = max_to_keep, checkpoint_name

    @property
    def checkpoints(self) -> list[str]:
        found = Path(self.directory).glob(f"{self._name}-*")
        numbered = [(int(path.name.rpartition("-")[2]), str(path)) for path in found if path.name[-1].isdigit()]
        return [path for _, path in sorted(numbered)]

    @property
    def latest_checkpoint(self) -> str | None:
        found = self.checkpoints
        return found[-1] if found else None

    def save(self, checkpoint_number: Any = None, **other: Any) -> str:
        """Write the next checkpoint, and remove surplus old ones."""
        last = self.latest_checkpoint
        number = int(last.rpartition("-")[2]) + 1 if last else 1
        number = number if checkpoint_number is None else int(checkpoint_number)
        made: str = self.checkpoint.write(Path(self.directory) / f"{self._name}-{number}")
        if self._kept is not None:
            for path in self.checkpoints[: -self._kept]:
                Path(path).unlink()
        return made

    def restore_or_initialize(self) -> str | None:
        """Restore the newest checkpoint, if there is one."""
        self.checkpoint.restore(self.latest_checkpoint)
        return self.latest_checkpoint


def latest_checkpoint(checkpoint_dir: Any, latest_filename: Any = None) -> str | None:
    """Return the newest checkpoint that a `CheckpointManager` wrote into a folder."""
    return CheckpointManager(Checkpoint(), checkpoint_dir, None).latest_checkpoint


__getattr__ = missing_in("tf.train", globals(), {"Saver": "Write tf.train.Checkpoint.", "Server": "Not there."})
