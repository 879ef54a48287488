"""assert_resumes_exactly: a checkpoint at every step, continued in a new iterator."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from penstock.runtime.run import Iterator
from penstock.testing.compare import assert_same_elements, token

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset


def assert_resumes_exactly(
    dataset: Dataset,
    *,
    epoch: int = 0,
    limit: int | None = None,
    executors: Sequence[str] = ("thread", "inline"),
    across: bool = True,
    ordered: bool = True,
) -> None:
    """Check that an iteration that is saved after any element and resumed elsewhere yields exactly the other elements.

    Each state is converted to JSON and back, pickled, restored on each executor, and saved again. The check costs up to
    four iterations for each element and pair of executors.

    Args:
        dataset: The data set.
        epoch: Number of the epoch. Default: 0.
        limit: Largest number of elements to check, for infinite data sets.
        executors: Executors to check.
        across: If True, a state is also restored on other executors than its own. Default: True.
        ordered: If False, the order may differ, as with `deterministic=False`. Default: True.

    Raises:
        AssertionError: If an element is missing, repeated or different.

    Example:
        >>> import penstock as ps
        >>> assert_resumes_exactly(ps.Dataset.range(5).shuffle(3).batch(2))
        >>> assert_resumes_exactly(ps.Dataset.range(3).repeat(), limit=7)
    """
    with dataset.iterator(epoch=epoch, executor="inline") as elements:
        wanted = list(islice(elements, limit))
    for saver in executors:
        with dataset.iterator(epoch=epoch, executor=saver) as elements:
            given: list[Any] = []
            while True:
                states = _copies(elements.state_dict())
                for restorer in executors if across else (saver,):
                    _continues(dataset, states, restorer, saver, given, wanted, ordered=ordered)
                if len(given) == len(wanted):
                    break
                given.append(next(elements))


def resumed(dataset: Dataset, state: Any, executor: str = "thread") -> Iterator:
    """Start an iteration from a state.

    Args:
        dataset: The data set.
        state: A state of an iterator over this data set.
        executor: As in `Dataset.iterator`. Default: `"thread"`.

    Returns:
        An iterator over the elements after the state.

    Example:
        >>> import penstock as ps
        >>> first = iter(ps.Dataset.range(3))
        >>> _ = next(first)
        >>> [int(x) for x in resumed(ps.Dataset.range(3), first.state_dict())]
        [1, 2]
    """
    found = dataset.iterator(executor=executor)
    found.load_state_dict(state)
    return found


def _copies(state: Any) -> dict[str, Any]:
    """The state as it comes back from a file of text and from one of bytes; once, where there is no difference."""
    text, content = json.loads(json.dumps(state)), pickle.loads(pickle.dumps(state))
    return {"JSON": text} if repr(content) == repr(text) else {"JSON": text, "pickle": content}


def _continues(
    dataset: Dataset,
    states: dict[str, Any],
    restorer: str,
    saver: str,
    given: list[Any],
    wanted: list[Any],
    *,
    ordered: bool,
) -> None:
    left = len(wanted) - len(given)
    for way, state in states.items():
        with resumed(dataset, state, restorer) as elements:
            again = json.loads(json.dumps(elements.state_dict()))
            rest = {"the rest": list(islice(elements, left if ordered else None))}
        if repr(again) != repr(state):
            with resumed(dataset, again, restorer) as elements:
                rest["the rest after saving again"] = list(islice(elements, left if ordered else None))
        for name, found in rest.items():
            try:
                _check(given, found, wanted, ordered=ordered)
            except AssertionError as error:
                message = (
                    f"saved on {saver!r} after {len(given)} elements, through {way}, "
                    f"restored on {restorer!r}: {name} differs: {error}"
                )
                raise AssertionError(message) from None


def _check(given: list[Any], rest: list[Any], wanted: list[Any], *, ordered: bool) -> None:
    if ordered:
        assert_same_elements(rest, wanted[len(given) :])
        return
    have, want = Counter(map(token, given + rest)), Counter(map(token, wanted))
    if have != want:
        message = f"{sum((want - have).values())} elements missing, {sum((have - want).values())} given twice"
        raise AssertionError(message)
