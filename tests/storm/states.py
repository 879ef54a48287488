"""An edited state is refused with a documented error, or is as good as the original."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

from tests.storm.pipelines import EPOCHS, difference, executors, pipeline_of, tokens, wanted_of
from tests.storm.time_limit import TimeLimit
from tests.storm.worker import Skipped, Wrong

from penstock.errors import PenstockError

_EDITS = 6
_CPU_SECONDS, _SECONDS = 20.0, 90.0  # for a state of some hundred elements
_VALUES: tuple[Any, ...] = (None, True, 0, 1, -1, 2**31, 10**15, -(10**15), 2**70, 0.5, 1e400, "", "x", [], [1], {})


def states(seed: int) -> None:
    """Check one state of a random pipeline, edited in several ways."""
    rng = Random(seed)
    pipeline = pipeline_of(seed)
    epoch = rng.choice(EPOCHS)
    wanted = wanted_of(pipeline.dataset, epoch)
    if not wanted:
        raise Skipped("no elements")
    place = rng.randint(0, len(wanted))
    (executor,) = executors(rng, 1)
    with pipeline.dataset.iterator(epoch=epoch, executor=executor) as elements:
        for _ in zip(range(place), elements, strict=False):
            pass
        state = json.loads(json.dumps(elements.state_dict()))
    for _ in range(_EDITS):
        edited, told = _edited(state, rng)
        where = f"{pipeline.text}\n  epoch {epoch} on {executor}, saved at {place}, with {told}"
        limit = TimeLimit(_CPU_SECONDS, _SECONDS)
        try:
            with pipeline.dataset.iterator(executor=executor) as elements:
                elements.load_state_dict(edited)
                found = tokens(elements)
        except PenstockError:
            continue
        except Exception as raised:
            raise Wrong(f"{type(raised).__name__} instead of a documented error: {raised}\n  {where}") from raised
        if wrong := difference(found, wanted[place:]):
            raise Wrong(f"accepted, and {wrong}\n  {where}")
        try:
            limit.check()
        except Wrong as slow:
            raise Wrong(f"{slow}\n  {where}") from None


def _edited(state: Any, rng: Random) -> tuple[Any, str]:
    """Return a copy with one value exchanged, removed, doubled or moved, and a description of the change."""
    state = copy.deepcopy(state)
    places = list(_places(state, ()))
    path = rng.choice(places)
    holder: Any = state
    for step in path[:-1]:
        holder = holder[step]
    key, value = path[-1], holder[path[-1]]
    match rng.randrange(4):
        case 0:
            del holder[key]
            return state, f"{path} removed"
        case 1 if isinstance(value, int) and not isinstance(value, bool):
            holder[key] = value + rng.choice((-1, 1, 7))
        case 2 if isinstance(value, str) and value:
            at = rng.randrange(len(value))
            holder[key] = value[:at] + rng.choice("0x") + value[at + 1 :]
        case _:
            holder[key] = rng.choice(_VALUES)
    return state, f"{path} from {value!r:.80} to {holder[key]!r:.80}"


def _places(value: Any, path: tuple[Any, ...]) -> Any:
    """Return the paths of all values inside."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield (*path, key)
        yield from _places(part, (*path, key))
