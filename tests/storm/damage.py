"""A damaged file gives elements and documented errors, each in its place, in bounded time and memory."""

from __future__ import annotations

import contextlib
import json
import resource
import shutil
import tempfile
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from tests.storm.formats import Format, formats, sound_files
from tests.storm.mutants import some_mutated
from tests.storm.time_limit import TimeLimit
from tests.storm.worker import Wrong

import penstock as ps
from penstock.errors import InvalidArgumentError, PenstockError
from penstock.testing import token

ADDRESSES = 6 << 30  # bytes of address space of a process: libraries use one GB of them
_GROWTH = 512 << 20  # bytes that one iteration over some kilobytes may add to the peak of resident memory
_CPU_SECONDS, _SECONDS = 20.0, 90.0  # for all iterations over one mutant
_MOST = 20_000  # places of an iteration over a file of some kilobytes
_TIMES = 20  # mutants of a case


def damage(seed: int) -> None:
    """Check some mutants of one format."""
    _bound()
    rng = Random(seed)
    name = rng.choice(sorted(formats()))
    for _ in range(_TIMES):
        mutant(name, rng.getrandbits(32))


def many(name: str, first: int, count: int) -> int:
    """Check mutants of a format. Return the number of mutants without any error."""
    _bound()
    return sum(mutant(name, number) for number in range(first, first + count))


def _bound() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, resource.getrlimit(resource.RLIMIT_AS)[1]))


def mutant(name: str, number: int) -> bool:
    """Check one mutant. Return True if it was read without an error. Raises Wrong."""
    chosen, (files, sound) = formats()[name], _sound(name)
    rng = Random(f"{name} {number}")
    folder = Path(tempfile.mkdtemp())
    try:
        changed = some_mutated(files, rng)
        for path, content in changed.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        limit, before = TimeLimit(_CPU_SECONDS, _SECONDS), _peak()
        found = _passes(chosen, folder, rng)
        wrong = _judged(chosen, sound, found, changed)
        limit.check()
        if _peak() - before > _GROWTH:
            wrong = f"it took {(_peak() - before) >> 20} MiB of memory"
        if wrong:
            raise Wrong(wrong)
        return not any(isinstance(place, PenstockError) for place in found)
    except Wrong as raised:
        script = f'from tests.storm.damage import mutant; mutant("{name}", {number})'
        raise Wrong(f"{raised}\n  a mutant of {name}: {script}") from raised
    finally:
        shutil.rmtree(folder)


@cache
def _sound(name: str) -> tuple[dict[str, bytes], list[str]]:
    """Return the files of a format, and the tokens of their elements."""
    folder = Path(tempfile.mkdtemp())
    try:
        files = sound_files(formats()[name], folder / "sound")
        found = _places(formats()[name].read(folder / "sound"), "thread")
    finally:
        shutil.rmtree(folder)
    if failed := [place for place in found if isinstance(place, Exception)]:
        raise Wrong(f"a sound file of {name} fails: {failed[0]}")
    return files, found


def _passes(chosen: Format, folder: Path, rng: Random) -> list[Any]:
    """Return the places of an iteration; others over the same file have to give the same."""
    try:
        dataset = chosen.read(folder)
    except PenstockError as error:
        if error.context.file is None and not isinstance(error, InvalidArgumentError):
            _named(error, folder)  # errors of arguments, such as a column's name, are in no file
        return [error]
    except Exception as error:
        raise Wrong(f"{type(error).__name__} where the data set is made: {error}") from error
    with contextlib.suppress(PenstockError):
        assert dataset.element_spec is not None
    found = _places(dataset, rng.choice(("inline", "thread")))
    if chosen.named:
        for error in found:
            if isinstance(error, PenstockError):
                _named(error, folder)
    if chosen.heals or (len(found) == 1 and isinstance(found[0], PenstockError)):
        return found  # the next iteration finds a repaired entry, or may not be able to save
    stop = rng.randint(0, len(found))
    for wanted, one in zip(_told(found), _told(_resumed(dataset, stop, rng)), strict=False):
        if wanted != one:
            raise Wrong(f"saved at place {stop} and continued it gives {one[:200]}, and in one pass {wanted[:200]}")
    with contextlib.suppress(PenstockError, TypeError):  # data sets without a length have none
        for _ in range(3):
            dataset[rng.randrange(max(len(dataset), 1))]
    return found


def _places(dataset: ps.Dataset, executor: str) -> list[Any]:
    """Return tokens, with errors in the places of the other elements."""
    try:
        elements = dataset.iterator(epoch=0, executor=executor)
    except PenstockError as error:
        return [error]
    with elements:
        return list(_walked(elements))


def _resumed(dataset: ps.Dataset, stop: int, rng: Random) -> list[Any]:
    with dataset.iterator(epoch=0, executor=rng.choice(("inline", "thread"))) as elements:
        found = list(islice(_walked(elements), stop))
        state = json.loads(json.dumps(elements.state_dict()))
    with dataset.iterator(epoch=0, executor="inline") as elements:
        elements.load_state_dict(state)
        return [*found, *_walked(elements)]


def _walked(elements: Any) -> Any:
    for _ in range(_MOST):
        try:
            element = next(elements)
        except StopIteration:
            return
        except PenstockError as error:
            yield error
        except Exception as error:
            raise Wrong(f"{type(error).__name__} instead of a documented error: {error}") from error
        else:
            yield token(element)
    raise Wrong(f"more than {_MOST} places")


def _told(places: list[Any]) -> list[str]:
    return [place if isinstance(place, str) else f"{type(place).__name__}: {place.message}" for place in places]


def _judged(chosen: Format, sound: list[str], found: list[Any], files: dict[str, bytes]) -> str | None:
    """Return the fault of the places of an iteration, or None."""
    errors = [place for place in found if isinstance(place, PenstockError)]
    elements = [place for place in found if isinstance(place, str)]
    if not chosen.foreign and (foreign := set(elements) - set(sound)):
        return f"an element that was never written: {foreign.pop()[:200]}"
    if chosen.whole and not errors and elements != sound:
        return f"{len(elements)} of {len(sound)} elements, and no error"
    if chosen.heals and errors:
        return f"what could be made again was not: {errors[0]}"
    if chosen.places is not None and len(files) == 1:
        wanted = chosen.places(*files.values())
        if len(found) != wanted:
            return f"{len(found)} places, and the file has {wanted}"
    return None


def _named(error: PenstockError, folder: Path) -> None:
    if error.context.file is None and str(folder) not in str(error):
        raise Wrong(f"an error without the file: {type(error).__name__}: {error}")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
