"""Differences between two content keys in words, and the reason why no entry in a folder belongs to a plan."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from pathlib import Path

from penstock.errors import PenstockError
from penstock.io import storage
from penstock.store.content_key.digest import FileVersion
from penstock.store.content_key.made_of import BELOW, PYTHON, KeyPart, MadeOf
from penstock.store.manifest import NAME, Manifest, read_manifest

_Step = tuple[KeyPart, ...]  # all parts of a step or of a setting; the first part names it
_NEW, _GONE = " is new", " is gone"
_REORDERED = ", in another order"  # of files, if it is unknown whether files were added or changed
_TOLD = 4  # differences printed in full; of the others only the number
_PLACE = "salt"  # position of a step in the plan: it changes if another step is added or removed


def differences(new: MadeOf, old: MadeOf) -> list[str]:
    """Return the parts that `new` has and `old` lacks or has differently; an empty list if the keys are equal.

    >>> from penstock.store.content_key.made_of import made_of
    >>> differences(made_of(seed=1), made_of(seed=2))
    ['seed = 1, was 2']
    """
    if new.key == old.key:
        return []
    of_files = [*_of_files(new.sources, old.sources)]
    found = [*of_files]
    steps = _steps(new), _steps(old)
    for alike, now, before in _aligned(*steps, _content):
        if not alike:
            found.extend(_of_steps(now, before))
    if of_files:
        found = [text for text in found if not text.endswith(_REORDERED)]
    elif not new.sources:
        found = [text.replace(_REORDERED, ", some of which changed") for text in found]
    if not found:  # the content is equal, only positions differ, which may change random numbers
        found = [f"{step[0].text}, in another place" for step in steps[0] if step not in steps[1]]
    return sorted(dict.fromkeys(_moved(found)), key=lambda text: not text.startswith(PYTHON))


def _moved(found: list[str]) -> list[str]:
    """Join "is new" and "is gone" of the same step to one text: the step moved."""
    new, gone = ({_unplaced(text): text for text in found if text.endswith(end)} for end in (_NEW, _GONE))
    both = new.keys() & gone.keys()
    kept = [text for text in found if not (text.endswith((_NEW, _GONE)) and _unplaced(text) in both)]
    return kept + [f"{text.removesuffix(_NEW)} moved" for name, text in new.items() if name in both]


def _unplaced(text: str) -> str:
    """Return the text without the line number of the step."""
    plain = text.removesuffix(_NEW).removesuffix(_GONE)
    return plain.rpartition(", ")[0] or plain


def _steps(made: MadeOf) -> list[_Step]:
    return [tuple(parts) for _, parts in groupby(made.parts, lambda part: part.step)]


def _kind(step: _Step) -> str:
    return step[0].step.partition("#")[0]


def _content(step: _Step) -> Hashable:
    """Return the content of a step, without its position in the plan."""
    return _kind(step), *((_inner(part), part.digest) for part in step if _inner(part) != _PLACE)


def _inner(part: KeyPart) -> str:
    return part.path.partition(BELOW)[2]


def _label(step: _Step) -> str:
    return _unplaced(step[0].text)


def _aligned(
    new: Sequence[_Step], old: Sequence[_Step], told_by: Callable[[_Step], Hashable]
) -> Iterator[tuple[bool, Sequence[_Step], Sequence[_Step]]]:
    """Yield (equal, new steps, old steps) for stretches in which `told_by` is equal, and for the others."""
    matcher = SequenceMatcher(None, [told_by(step) for step in old], [told_by(step) for step in new], autojunk=False)
    for tag, first, last, begin, end in matcher.get_opcodes():
        yield tag == "equal", new[begin:end], old[first:last]


def _of_steps(new: Sequence[_Step], old: Sequence[_Step]) -> Iterator[str]:
    """Yield the differences of steps with equal names, or at least of equal kind. Other steps are new or gone."""
    for _, now, before in _aligned(new, old, _label):
        left = list(before)
        for step in now:
            other = next((one for one in left if _kind(one) == _kind(step)), None)
            if other is None:
                yield f"{step[0].text}{_NEW}"
            else:
                left.remove(other)
                yield from _of_parts(step, other)
        yield from (f"{step[0].text}{_GONE}" for step in left)


def _of_parts(new: _Step, old: _Step) -> Iterator[str]:
    """Yield the differences between the parts of two steps.

    Parts that a function newly uses or no longer uses follow from its code. They are listed only if the code is
    unchanged.
    """
    now, before = ({_inner(part): part for part in step} for step in (new, old))
    others = {inner for inner in {**now, **before} if _other(now.get(inner), before.get(inner))} - {_PLACE}
    for inner in dict.fromkeys((*now, *before)):
        if inner not in others:
            continue
        if inner in now and inner in before:
            yield _changed(now[inner], before[inner])
        elif not any(inner.startswith(f"{outer}{BELOW}") for outer in others):
            part = now.get(inner) or before[inner]
            yield f"{part.text}{_place(part)}{_NEW if inner in now else _GONE}"


def _other(now: KeyPart | None, before: KeyPart | None) -> bool:
    return now is None or before is None or now.digest != before.digest


def _changed(part: KeyPart, other: KeyPart) -> str:
    """Return a text such as `batch_size = 64 (batch#1), was 32`. Long values and functions are not printed twice."""
    name, equals, _ = part.text.partition(" = ")
    before = other.text.removeprefix(f"{name} = ") if equals else other.text
    if _inner(part) == "files":
        return f"{part.text}{_place(part)}{_REORDERED}"
    if part.text == other.text or part.text.startswith(("function ", "lambda, ")):
        return f"{part.text}{_place(part)} changed"
    return f"{part.text}{_place(part)}, was {before}"


def _place(part: KeyPart) -> str:
    return f" ({part.step})" if BELOW in part.path else ""


def _of_files(new: Sequence[FileVersion], old: Sequence[FileVersion]) -> Iterator[str]:
    now, before = ({name: tuple(version) for name, *version in found} for found in (new, old))
    yield from _some([name for name in now if name not in before], "more")
    yield from _some([name for name in before if name not in now], "fewer")
    yield from _some([name for name in now if name in before and now[name] != before[name]], "changed")


def _some(names: Sequence[str], how: str) -> Iterator[str]:
    if names:
        first = names[0] if len(names) == 1 else f"the first {names[0]}"
        yield f"{len(names)} file{'s' if len(names) > 1 else ''} {how}: {first}"


def made_by(manifest: Manifest) -> MadeOf:
    """Return the content of an entry from its manifest. The manifest is untrusted input."""
    parts = (map(str, part) for part in manifest.made_of)
    return MadeOf(
        tuple(KeyPart(path, text if text.isprintable() else repr(text), digest) for path, text, digest in parts),
        tuple((*source,) for source in manifest.sources),
    )


def why_not(made: MadeOf, folder: str) -> str | None:
    """Return the entry of a folder that is most similar to `made`, and the differences; None if there is none."""
    others = [found for found in _manifests(folder) if found.key != made.key]
    if not others:
        return None
    lists = [differences(made, made_by(other)) for other in others]
    newest_first = sorted(zip(lists, others, strict=True), key=lambda pair: pair[1].created, reverse=True)
    differing, nearest = min(newest_first, key=lambda pair: len(pair[0]))
    return f"nearest is {nearest.key[:8]} of {nearest.created}; what differs: {in_a_line(differing)}"


def in_a_line(differing: list[str]) -> str:
    """Return the first differences, and the number of the others."""
    more = [f"{len(differing) - _TOLD} more"] if len(differing) > _TOLD else []
    return "; ".join([*differing[:_TOLD], *more])


def _manifests(folder: str) -> Iterator[Manifest]:
    if storage.is_url(folder):  # one request per entry would cost more than the log line is worth
        return
    try:
        folders = sorted(Path(folder).iterdir())
    except OSError:  # the folder does not exist yet, or is not readable
        return
    for entry in folders:
        try:
            if (entry / NAME).exists():
                yield read_manifest(str(entry))
        except (PenstockError, OSError):  # the entry is damaged, of another version, not an entry, or was just removed
            continue
