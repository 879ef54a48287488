"""Splits: the selection of examples from splits, with the syntax and the rounding of tfds."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, Protocol

from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.plan.node import check_int

NAME_OF_SPLIT = re.compile(r"[\w-]+")
_PART = re.compile(rf"(?P<name>{NAME_OF_SPLIT.pattern})(\[(?P<slice>[\d\w%:._-]+)\])?")
_EDGE = re.compile(r"((?P<value>-?[\d_.]+)(?P<unit>%|shard)?)?")
_HINT = 'For example "train", "train[:80%]", "train[100:200]", "train[-1shard:]", "train+test" or "all".'


class Counted(Protocol):
    """The object that a slice selects from."""

    @property
    def shard_lengths(self) -> tuple[int, ...]: ...


class SplitRange(NamedTuple):
    """The examples `start` to `stop`, without `stop`, of a split."""

    split: str
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


class AbstractSplit(ABC):
    """Some examples of a data set. The sum of two splits has the examples of the first, then those of the second."""

    @abstractmethod
    def parts(self, splits: Mapping[str, Counted]) -> list[SplitRange]:
        """Return the examples of each split. `splits` are those of the data set."""

    def __add__(self, other: Any) -> AbstractSplit:
        return _Sum(self, as_split(other))

    def __radd__(self, other: Any) -> AbstractSplit:
        return _Sum(as_split(other), self)


@dataclass(frozen=True)
class ReadInstruction(AbstractSplit):
    """A slice of a split, as the string "train[25%:]" describes it.

    Args:
        split_name: Name of the split.
        from_: Start of the slice. A negative number counts from the end.
        to: End of the slice. A negative number counts from the end.
        unit: Unit of `from_` and `to`: `"abs"` (examples), `"%"` or `"shard"`.
        rounding: `"closest"` rounds percents to the nearest example. `"pct1_dropremainder"` makes all percents equally
            large and drops remaining examples.

    Example:
        >>> from penstock.catalog.info import SplitInfo
        >>> train = SplitInfo("train", (60, 65), 1000)
        >>> ReadInstruction("train", from_=25, unit="%").parts({"train": train})
        [SplitRange(split='train', start=31, stop=125)]
    """

    split_name: str
    from_: float | None = None
    to: float | None = None
    unit: str = "abs"
    rounding: str = "closest"

    def __post_init__(self) -> None:
        if self.unit not in ("%", "abs", "shard"):
            message = f'unit must be "%", "abs" or "shard", got {self.unit!r}.'
            raise InvalidArgumentError(message, hint='"abs" counts examples.')
        if self.rounding not in ("closest", "pct1_dropremainder"):
            message = f'rounding must be "closest" or "pct1_dropremainder", got {self.rounding!r}.'
            raise InvalidArgumentError(message, hint="It says where a percent falls between two examples.")
        if self.unit == "%" and any(abs(edge or 0) > 100 for edge in (self.from_, self.to)):
            message = f"percents must be from -100 to 100, got {_edge(self.from_)}:{_edge(self.to)}."
            raise InvalidArgumentError(message, hint="100% is the whole split.")

    @classmethod
    def from_spec(cls, spec: Any) -> AbstractSplit:
        """Return the split that a string such as "train[:80%]+test" describes."""
        return as_split(spec)

    def __str__(self) -> str:
        if self.from_ is None and self.to is None:
            return self.split_name
        unit = "" if self.unit == "abs" else self.unit
        edges = (f"{edge:.15g}{unit}" if edge is not None else "" for edge in (self.from_, self.to))
        return f"{self.split_name}[{':'.join(edges)}]"

    def parts(self, splits: Mapping[str, Counted]) -> list[SplitRange]:
        lengths = known(splits, self.split_name).shard_lengths
        count = sum(lengths)
        start, stop = self._edges(count, lengths)
        if abs(start) > count or abs(stop) > count:
            raise InvalidArgumentError(f"the slice {str(self)!r} is out of range.", hint=what_there_is(splits))
        start, stop = (edge + count if edge < 0 else edge for edge in (start, stop))
        return [SplitRange(self.split_name, start, max(start, stop))]

    def _edges(self, count: int, lengths: tuple[int, ...]) -> tuple[int, int]:
        from_, to = self.from_, self.to
        if self.unit == "%":
            return (0 if from_ is None else self._share(from_, count)), (
                count if to is None else self._share(to, count)
            )
        start, stop = (None if edge is None else int(edge) for edge in (from_, to))
        if self.unit == "abs":
            return start or 0, (count if stop is None else stop)
        if any(abs(edge or 0) > len(lengths) for edge in (start, stop)):
            message = f"the slice {str(self)!r} is out of range."
            shards = "1 shard" if len(lengths) == 1 else f"{len(lengths)} shards, 0 to {len(lengths) - 1}"
            hint = f"{self.split_name!r} has {shards}."
            raise InvalidArgumentError(message, hint=hint)
        if stop is not None and stop <= 0 and (start or 0) < 0:
            stop += len(lengths)  # "[-1shard]" ends after the last shard, but 0 would mean the first
        return sum(lengths[: start or 0]), (count if stop is None else sum(lengths[:stop]))

    def _share(self, percent: float, count: int) -> int:
        if self.rounding == "closest":
            return round(percent * count / 100.0)
        if count < 100:
            message = f"with pct1_dropremainder a split needs at least 100 examples, {self.split_name!r} has {count}."
            raise InvalidArgumentError(message, hint='Use rounding="closest".')
        return int(percent * (count // 100))


@dataclass(frozen=True)
class _Sum(AbstractSplit):
    left: AbstractSplit
    right: AbstractSplit

    def parts(self, splits: Mapping[str, Counted]) -> list[SplitRange]:
        return self.left.parts(splits) + self.right.parts(splits)

    def __str__(self) -> str:
        return f"{self.left}+{self.right}"


@dataclass(frozen=True)
class _All(AbstractSplit):
    def parts(self, splits: Mapping[str, Counted]) -> list[SplitRange]:
        return [SplitRange(name, 0, sum(split.shard_lengths)) for name, split in splits.items()]

    def __str__(self) -> str:
        return "all"


@dataclass(frozen=True)
class _Even(AbstractSplit):
    whole: AbstractSplit
    index: int
    count: int
    drop_remainder: bool

    def parts(self, splits: Mapping[str, Counted]) -> list[SplitRange]:
        return [self._share(part) for part in self.whole.parts(splits)]

    def _share(self, part: SplitRange) -> SplitRange:
        each, over = divmod(len(part), self.count)
        start, stop = each * self.index, each * (self.index + 1)
        if not self.drop_remainder:
            start, stop = start + min(self.index, over), stop + min(self.index + 1, over)
        return SplitRange(part.split, part.start + start, part.start + stop)

    def __str__(self) -> str:
        return f"part {self.index} of {self.count} of {self.whole}"


def even_splits(split: Any, n: int, *, drop_remainder: bool = False) -> list[AbstractSplit]:
    """Divide a split into parts of the same size.

    The parts differ by one example at most. Each part of a sum, such as "train+test", contains its share of both.

    Args:
        split: A split, as in `load`.
        n: Number of parts.
        drop_remainder: If True, all parts have the same size, and remaining examples are dropped. Default: False.

    Returns:
        A list of splits for `load`.

    Example:
        >>> from penstock.catalog.info import SplitInfo
        >>> train = {"train": SplitInfo("train", (10,), 1000)}
        >>> [part.parts(train)[0][1:] for part in even_splits("train", 3)]
        [(0, 4), (4, 7), (7, 10)]
    """
    count = check_int("n", n, least=1, hint="It is the number of parts.")
    return [_Even(as_split(split), index, count, bool(drop_remainder)) for index in range(count)]


def subsplit_for_process(split: Any, rank: int, world_size: int, *, drop_remainder: bool = False) -> AbstractSplit:
    """Return the part of a split that one of several processes reads.

    Args:
        split: A split, as in `load`.
        rank: Index of the process, from 0.
        world_size: Number of processes.
        drop_remainder: As in `even_splits`.

    Returns:
        A split for `load`.

    Example:
        >>> str(subsplit_for_process("train", rank=1, world_size=4))
        'part 1 of 4 of train'
    """
    count = check_int("world_size", world_size, least=1, hint="It is the number of processes.")
    number = check_int("rank", rank, least=0, hint="Processes are counted from 0.")
    if number >= count:
        message = f"rank must be less than world_size={count}, got {number}."
        raise InvalidArgumentError(message, hint="Processes are counted from 0.")
    return even_splits(split, count, drop_remainder=drop_remainder)[number]


def as_split(spec: Any) -> AbstractSplit:
    """Return the `AbstractSplit` for a string, a `ReadInstruction` or another `AbstractSplit`.

    >>> str(as_split("train[:80%]+test"))
    'train[:80%]+test'
    """
    if isinstance(spec, AbstractSplit):
        return spec
    if not isinstance(spec, str):
        raise InvalidTypeError(f"a split must be text or a ReadInstruction, got {type(spec).__name__}.", hint=_HINT)
    return reduce(lambda left, right: left + right, [_parsed(part.strip(), spec) for part in spec.split("+")])


def _parsed(text: str, spec: str) -> AbstractSplit:
    found = _PART.fullmatch(text)
    if found is None:
        raise _not_a_split(spec)
    name, inner = found["name"], found["slice"]
    if name == "all":
        if inner:
            message = f'"all" cannot be sliced, got {spec!r}.'
            raise InvalidArgumentError(message, hint='Slice each split: "train[:10%]+test[:10%]".')
        return _All()
    if inner is None:
        return ReadInstruction(name)
    edges = [_EDGE.fullmatch(edge) for edge in inner.split(":")]
    if None in edges or not any(edge and edge[0] for edge in edges) or len(edges) > 2:
        raise _not_a_split(spec)
    first, last = edges[0], edges[-1]
    assert first is not None
    assert last is not None
    units = {edge["unit"] or "abs" for edge in (first, last) if edge["value"] is not None}
    unit = first["unit"] or last["unit"] or "abs"
    if len(units) > 1 or (len(edges) == 1 and unit != "shard"):
        raise _not_a_split(spec)
    try:
        start, stop = (_number(edge["value"], unit) for edge in (first, last))
    except ValueError:
        raise _not_a_split(spec) from None
    if len(edges) == 1:
        assert start is not None
        stop = start + 1
    return ReadInstruction(name, from_=start, to=stop, unit=unit)


def _number(text: str | None, unit: str) -> float | None:
    if text is None:
        return None
    return float(text) if unit == "%" else int(text)


def _edge(edge: float | None) -> str:
    return "" if edge is None else f"{edge:.15g}"


def _not_a_split(spec: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{spec!r} is not a split.", hint=_HINT)


def known(splits: Mapping[str, Any], name: str) -> Any:
    """Return the split of that name. Raises InvalidArgumentError for an unknown name."""
    if name not in splits:
        raise InvalidArgumentError(f"there is no split {name!r}.", hint=what_there_is(splits))
    return splits[name]


def what_there_is(splits: Mapping[str, Counted]) -> str:
    """Return a sentence with the splits of a data set and their sizes."""
    counts = [f"{name!r} with {sum(split.shard_lengths)} examples" for name, split in splits.items()]
    return f"There is {_and(counts)}." if counts else "The data set has no splits."


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
